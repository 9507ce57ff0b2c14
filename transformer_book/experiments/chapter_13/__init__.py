"""Chapter 13: what a training loses where gradients or weights have 16 bits."""

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.config import TransformerConfig
from transformer.data.batches import make_batch
from transformer.model import Transformer
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.teaching import taught

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_13"
POWERS = (0, -4, -8, -12)  # of two, by which the loss is multiplied


def small() -> Transformer:
    """The small translator of chapter 9."""
    config = TransformerConfig(
        len(corpus().english),
        len(corpus().french),
        d_model=32,
        n_heads=4,
        n_encoder_layers=1,
        n_decoder_layers=1,
        d_ff=64,
        dropout=0.0,
        norm="pre",
        max_len=64,
    )
    return Transformer(config)


def gradients(model: nn.Module) -> Tensor:
    """Of all parameters, after the loss of 64 sentences."""
    batch = make_batch(corpus().encode(corpus().tuning[:64]))
    batch = batch.to(next(model.parameters()).device)
    model.zero_grad()
    logits = model(*batch.inputs)
    cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=0).backward()
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


def zeros(model: nn.Module) -> float:
    """The share of a trained model's gradients that are zero, and would not be in float32."""
    here = gradients(model)
    for layer in model.modules():
        vars(layer).pop("forward", None)  # back to the layer's own
    full = gradients(model)
    return ((here == 0) & (full != 0)).sum().item() / (full != 0).sum().item()


def learn(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of sentences that are translated without a fault, and that of zeros."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        return taught(model, plan, n_steps) | {"zeros": round(zeros(model), 5)}

    yield from one_for_each(make, plan, train)


def _in_float16(cell: SimpleNamespace, scale: float) -> nn.Module:
    return cell.in_float16(small(), scale)


def _made(cell: SimpleNamespace) -> Iterator[tuple[str, Callable[[], nn.Module]]]:
    yield "float32", small
    yield "weights in bfloat16", lambda: cell.with_bfloat16_weights(small())
    for power in POWERS:
        yield f"float16, scale 2^{power}", partial(_in_float16, cell, 2.0**power)


def half_arms() -> dict[str, Arm]:
    """The small translator of chapter 9 in the page's float16, with the loss ever smaller."""
    cells = chapter(13, "imports*", "half-*")
    common = partial(Arm, learn=learn, rates=(0.008, 0.016, 0.032), steps=(800,), chapter=13)
    code = cells.code(ME)
    return {name: common(make=make, code=code) for name, make in _made(cells.names())}


half = Experiment(
    path=HERE / "half.json",
    question="How many zeros among its gradients does a training bear, and which weights?",
    measure="exact",
    scale=1.0,
    arms=half_arms,
    widens=False,
    seconds=30.0,
)
