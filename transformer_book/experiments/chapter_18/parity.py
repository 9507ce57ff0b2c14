"""Chapter 18: the parity of ten bits, with steps and without, trained longer."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.family import DecoderOnly, FamilyConfig
from transformer.masks import causal_mask
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments import Arm, Measures, Plan, experiment

BITS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 16, 24)  # at which a parity is asked; 10 are learnt from
N_BITS, NOT_ASKED = 10, -100  # a label that cross_entropy leaves out


class Bits(DecoderOnly):
    """A small GPT with rotary positions; ids 1 and 2 are the bits, 3 even, 4 odd, 5 <bos>."""

    def __init__(self) -> None:
        sizes: dict[str, Any] = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 64}
        kind: dict[str, Any] = {"max_len": 100, "position": "rotary", "tie_embeddings": False}
        super().__init__(FamilyConfig(6, **sizes, **kind))

    def forward(self, tokens: Tensor) -> Tensor:  # nothing is padded
        x = self.embedding(tokens)
        seen = causal_mask(tokens.size(1), device=tokens.device)
        return self.output(self.run(x, seen))


def without_steps(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """<bos>, bit, bit, …, and the parity after each bit as the label."""
    bits = torch.randint(2, (16, N_BITS), generator=g)
    bos, not_asked = torch.full((16, 1), 5), torch.full((16, 1), NOT_ASKED)
    text, answers = torch.cat([bos, 1 + bits], dim=1), 3 + bits.cumsum(dim=1) % 2
    return text, torch.cat([not_asked, answers], dim=1)


def with_steps(g: torch.Generator) -> tuple[Tensor, Tensor]:
    """<bos>, bit, answer, bit, answer, …; the labels are the answers."""
    text, labels = without_steps(g)
    not_asked = torch.full_like(labels, NOT_ASKED)
    bits_and_answers = torch.stack([text, labels], dim=-1)[:, 1:].flatten(1)
    asked = torch.stack([labels, not_asked], dim=-1)[:, 1:].flatten(1)
    text = torch.cat([text[:, :1], bits_and_answers], dim=1)
    return text, torch.cat([labels[:, :1], asked], dim=1)


@torch.no_grad()
def answers_of(model: nn.Module, bits: Tensor, steps: bool) -> Tensor:
    """The parities that the model says after each of ``bits``, 0 and 1; its own steps are read."""
    text = bits.new_full((len(bits), 1), 5)  # <bos>
    if not steps:
        return model(torch.cat([text, 1 + bits], dim=1))[:, 1:, 3:5].argmax(dim=-1)
    for bit in bits.T:
        text = torch.cat([text, 1 + bit[:, None]], dim=1)
        own_answer = 3 + model(text)[:, -1, 3:5].argmax(dim=-1)
        text = torch.cat([text, own_answer[:, None]], dim=1)
    return text[:, 2::2] - 3


def _train(model: nn.Module, plan: Plan, n_steps: int, steps: bool) -> nn.Module:
    batch_of = with_steps if steps else without_steps
    generator = torch.Generator().manual_seed(plan.seed)
    rate_of = linear_schedule(plan.lr, warmup=30, n_steps=n_steps)  # which counts from 1

    def loss_of(step: int) -> torch.Tensor:
        x, labels = (part.to(default_device()) for part in batch_of(generator))
        return cross_entropy(model(x).mT, labels, ignore_index=NOT_ASKED)

    minimise(loss_of, model.parameters(), n_steps=n_steps, lr=lambda step: rate_of(step + 1))
    return model.eval()


def learn_parity(model: nn.Module, plan: Plan, n_steps: int, *, steps: bool) -> Measures:
    """The share of right parities after so many bits: "bit 10", say, of rows of 24."""
    _train(model, plan, n_steps, steps)
    generator = torch.Generator().manual_seed(1000 + plan.seed)
    bits = torch.randint(2, (500, max(BITS)), generator=generator).to(default_device())
    right = answers_of(model, bits, steps) == bits.cumsum(dim=1) % 2
    return {f"bit {n}": right[:, n - 1].float().mean().item() for n in BITS}


@experiment(
    "Is the parity of ten bits ever learnt without steps?",
    measure="bit 10",
    scale=1.0,
    rates=(0.003, 0.006, 0.012, 0.024),
)
def parity() -> dict[str, Arm]:
    def make() -> nn.Module:
        return Bits().to(default_device())

    without, steps = (partial(learn_parity, steps=written) for written in (False, True))
    return {
        "without steps": Arm(make, learn=without, steps=(375, 750, 1500, 3000)),
        "with steps": Arm(make, learn=steps, steps=(84, 168, 375, 750)),
    }
