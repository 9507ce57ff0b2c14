"""Chapter 18: a small GPT that may write steps, rewarded for right answers alone.

A text is ten bits, "?", then "so" and the parity at once, or first the parity after each bit. All
answers in the texts are right, but few texts have steps.
"""

import copy
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.tokens import PAD_ID
from transformer.decoding import sample
from transformer.family import DecoderOnly, FamilyConfig
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments import Arm, Measures, Plan, experiment

WORDS = ("", "0", "1", "even", "odd", "?", "so", ".")  # of the ids; 0 is <pad>
ASK, SO, END = 5, 6, 7
N_BITS, N_QUESTIONS, GROUP = 10, 16, 8  # of a step: 16 questions, 8 texts for each
WITH_STEPS, PRETRAINED = 0.2, 400  # the share of texts; steps of training
STEPS = (0, 10, 20, 40)  # of rewards
LONG = (*STEPS, 80, 160, 320)
FEW = (0.02, 0.05, 0.1)  # shares of texts with steps
EARLY = 100  # steps of pretraining, after which steps are written, but not yet right
Advantages = Callable[[Tensor], Tensor]  # rewards (questions, group) -> as many


def questions(g: torch.Generator, n: int) -> tuple[Tensor, Tensor]:
    """Ten bits and "?", and the parity after each bit, as ids: (n, 11) and (n, 10)."""
    bits = torch.randint(2, (n, N_BITS), generator=g)
    return torch.cat([1 + bits, torch.full((n, 1), ASK)], dim=1), 3 + bits.cumsum(dim=1) % 2


def texts(g: torch.Generator, n: int, share: float) -> Tensor:
    """Questions with right answers, of which a share is written with steps."""
    asked, parities = questions(g, n)
    so, end = torch.full((n, 1), SO), torch.full((n, 1), END)
    at_once = torch.cat([so, parities[:, -1:], end], dim=1)
    steps = torch.cat([parities, at_once], dim=1)
    at_once = torch.cat([at_once, torch.full((n, N_BITS), PAD_ID)], dim=1)
    has_steps = torch.rand(n, 1, generator=g) < share
    return torch.cat([asked, torch.where(has_steps, steps, at_once)], dim=1)


def small_writer() -> DecoderOnly:
    """Two blocks of today."""
    sizes = {"d_model": 32, "n_heads": 4, "n_layers": 2, "d_ff": 86, "max_len": 3 * N_BITS}
    return DecoderOnly(FamilyConfig.modern(len(WORDS), **sizes)).to(default_device())


def pretrained(seed: int, share: float = WITH_STEPS, n_steps: int = PRETRAINED) -> DecoderOnly:
    """A model that has learnt from texts what follows "?"."""
    torch.manual_seed(seed)
    model, g = small_writer(), torch.Generator().manual_seed(seed)
    rate_of = linear_schedule(0.006, warmup=30, n_steps=n_steps)

    def loss_of(step: int) -> Tensor:
        return text_loss(model, texts(g, 64, share))

    minimise(loss_of, model.parameters(), n_steps=n_steps, lr=lambda i: rate_of(i + 1), clip_norm=1)
    return model


def text_loss(model: nn.Module, rows: Tensor) -> Tensor:
    """The loss of what follows "?", in nats a word."""
    rows = rows.to(default_device())
    labels = rows[:, 1:].clone()
    labels[:, :N_BITS] = PAD_ID
    return cross_entropy(model(rows[:, :-1]).mT, labels, ignore_index=PAD_ID)


@torch.no_grad()
def write(model: DecoderOnly, asked: Tensor) -> Tensor:
    """What the model draws after each question, to "." or as long as steps are."""
    prompts = asked[:, :-1].to(default_device())
    return sample(model, prompts, bos_id=ASK, eos_id=END, max_len=N_BITS + 3, temperature=1.0)


def is_right(written: Tensor, parities: Tensor) -> Tensor:
    """Whether the word after the first "so" is the parity of all bits."""
    said = written == SO
    after = (said.int().argmax(dim=1, keepdim=True) + 1).clamp(max=written.size(1) - 1)
    answer = written.gather(1, after)[:, 0]
    return said.any(dim=1) & (answer == parities[:, -1].to(written.device))


def log_probability(model: DecoderOnly, asked: Tensor, written: Tensor) -> Tensor:
    """Of each written text, given its question."""
    rows = torch.cat([asked.to(written.device), written], dim=1)
    log_p = model(rows[:, :-1])[:, N_BITS:].log_softmax(dim=-1)
    chosen = log_p.gather(-1, written[..., None])[..., 0]
    return (chosen * (written != PAD_ID)).sum(dim=1)


def less_the_mean(rewards: Tensor) -> Tensor:
    """By how much each text was better than those that were written for the same question."""
    return rewards - rewards.mean(dim=1, keepdim=True)


def reward_loss(
    model: DecoderOnly, g: torch.Generator, *, coin: bool, advantages: Advantages
) -> Tensor:
    """Texts are drawn and judged; those better than their group shall become likelier."""
    asked, parities = (x.repeat_interleave(GROUP, dim=0) for x in questions(g, N_QUESTIONS))
    written = write(model, asked)
    tossed = torch.randint(2, (len(asked),), generator=g).to(written.device)
    rewards = tossed.float() if coin else is_right(written, parities).float()
    better = advantages(rewards.view(-1, GROUP)).flatten()
    return -(better * log_probability(model, asked, written)).mean()


def judged(model: DecoderOnly, n: int = 300) -> Measures:
    """Shares of new questions that are right and that are answered with steps; the length."""
    torch.manual_seed(999)
    asked, parities = questions(torch.Generator().manual_seed(999), n)
    written = write(model, asked)
    right, stepped = is_right(written, parities), written[:, 0] != SO
    found = {"right": right, "with steps": stepped, "words": (written != PAD_ID).sum(dim=1)}
    measures: Measures = {name: x.float().mean().item() for name, x in found.items()}
    some = right[stepped].float()
    return measures | {"right of these": some.mean().item() if len(some) else None}


def rewarded(
    model: DecoderOnly,
    *,
    lr: float,
    seed: int,
    steps: tuple[int, ...] = STEPS,
    kind: str = "right answers",
    advantages: Advantages = less_the_mean,
) -> Iterator[tuple[int, Measures]]:
    """Goes on with a model, which is changed; gives what it was worth after each of ``steps``.

    ``kind``: "right answers" are rewarded, or "a coin" decides; or the model reads "more texts".
    """
    g = torch.Generator().manual_seed(1000 + seed)
    adam = torch.optim.Adam(model.parameters(), lr=lr, fused=True)
    for step in range(max(steps) + 1):
        if step in steps:
            yield step, judged(model)
        torch.manual_seed(10_000 * seed + step)
        if kind == "more texts":
            loss = text_loss(model, texts(g, N_QUESTIONS * GROUP, WITH_STEPS))
        else:
            loss = reward_loss(model, g, coin=kind == "a coin", advantages=advantages)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()


@cache
def _start(seed: int, share: float, n_steps: int) -> DecoderOnly:
    return pretrained(seed, share, n_steps)


def curve(
    _: nn.Module,
    plan: Plan,
    *,
    kind: str = "right answers",
    share: float = WITH_STEPS,
    n_steps: int = PRETRAINED,
) -> dict[int, Measures]:
    """A model that was pretrained once for each seed, rewarded at the plan's rate."""
    model = copy.deepcopy(_start(plan.seed, share, n_steps))
    return dict(rewarded(model, lr=plan.lr, seed=plan.seed, steps=plan.steps, kind=kind))


@experiment(
    "Does a reward for right answers bring a model to write steps?",
    measure="right",
    scale=1.0,
    rates=(0.001, 0.002),
    steps=STEPS,
    widens=False,
)
def rewards() -> dict[str, Arm]:
    def arm(*, plan: dict[str, Any] | None = None, **how: Any) -> Arm:
        return Arm(small_writer, curve=partial(curve, **how), **plan or {})

    right = "right answers"
    few: dict[str, Any] = {"rates": (0.001,), "steps": LONG[:-1], "seeds": tuple(range(4))}
    return (
        {
            right: arm(),
            "a coin": arm(kind="a coin", plan={"seeds": tuple(range(9))}),
            "more texts": arm(kind="more texts"),
            f"{right}, steps never read": arm(share=0.0),
        }
        | {
            f"{right}, rate {lr:g}": arm(plan={"rates": (lr,), "steps": LONG})
            for lr in (0.001, 0.002)
        }
        | {f"{right}, steps in {share:g}": arm(share=share, plan=few) for share in FEW}
        | {f"{right}, steps still wrong": arm(n_steps=EARLY, plan=few)}
    )
