"""Chapter 13: what a training loses where gradients or weights have 16 bits."""

from collections.abc import Iterable
from functools import partial
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.config import NormOrder, TransformerConfig
from transformer.data.batches import make_batch
from transformer.model import Transformer
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import train_translator
from transformer_book.experiments.translator.teaching import taught

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_13"
CELLS = "imports*", "half-*"
POWERS = (0, -4, -8, -12)  # of two, by which the loss is multiplied
BREAKS = (-9, -10, -11, -12)  # where it breaks
WAYS = {"float16": "rounded", "zeros alone": "zeros_alone", "digits alone": "digits_alone"}
RATE = 0.016  # the best of three in each of the arms that tried three
EARLY, WARM_UP = 20, 50  # the first steps are the same however many follow the warm-up


def small(norm: NormOrder = "pre") -> Transformer:
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
        norm=norm,
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


def zeros(model: nn.Module, plain: nn.Module) -> float:
    """The share of a model's gradients that are zero, and are not in ``plain``, in float32."""
    plain.load_state_dict(model.state_dict())
    here, full = gradients(model), gradients(plain)
    return ((here == 0) & (full != 0)).sum().item() / (full != 0).sum().item()


def learn(make: Make, plan: Plan, *, plain: Make = small) -> Iterable[tuple[int, Measures]]:
    """The share of sentences that are translated without a fault, and that of zeros."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        return taught(model, plan, n_steps) | {"zeros": round(zeros(model, plain()), 5)}

    yield from one_for_each(make, plan, train)


def learn_first(make: Make, plan: Plan) -> Iterable[tuple[int, Measures]]:
    """The share of zeros in the first steps of a training."""
    model, plain, calls, found = make(), small(), 0, 0.0

    def look(model: nn.Module, _: object) -> None:
        nonlocal calls, found
        if calls == EARLY:
            model_now = make()
            model_now.load_state_dict(model.state_dict())
            found = zeros(model_now, plain)
        calls += 1

    model.register_forward_pre_hook(look)
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=WARM_UP)
    yield EARLY, {"zeros": round(found, 5)}


def rounded(power: int, back: str = "rounded", make: Make = small) -> nn.Module:
    """A translator in the page's float16, whose loss is multiplied by two to the ``power``."""
    cell = chapter(13, *CELLS).names()
    model: nn.Module = cell.in_float16(make(), 2.0**power, getattr(cell, back))
    return model


def half_arms() -> dict[str, Arm]:
    """The small translator in the page's float16, with the loss ever smaller.

    And with a backward pass that has only float16's zeros, or only its digits.
    """
    cells = chapter(13, *CELLS)
    common = partial(Arm, learn=learn, steps=(800,), chapter=13, code=cells.code(ME))
    three = partial(common, rates=(0.008, RATE, 0.032))
    arms = {
        "float32": three(make=small),
        "weights in bfloat16": three(make=lambda: cells.names().with_bfloat16_weights(small())),
    }
    for power in POWERS:
        arms[f"float16, scale 2^{power}"] = three(make=partial(rounded, power))
    for power in BREAKS:
        for way, back in WAYS.items():
            make = partial(rounded, power, back)
            arms.setdefault(f"{way}, scale 2^{power}", common(make=make, rates=(RATE,)))
    return arms


def first_arms() -> dict[str, Arm]:
    code = chapter(13, *CELLS).code(ME)
    common = partial(Arm, learn=learn_first, rates=(RATE,), steps=(EARLY,), chapter=13, code=code)
    return {
        f"float16, scale 2^{power}": common(make=partial(rounded, power))
        for power in sorted({*POWERS, *BREAKS}, reverse=True)
    }


def neighbour_arms() -> dict[str, Arm]:
    """The same in post-LN; and pre-LN for three times as many steps."""
    code = chapter(13, *CELLS).code(ME)
    post = partial(small, "post")
    at_post = partial(
        Arm,
        learn=partial(learn, plain=post),
        rates=(0.008,),
        steps=(800,),
        chapter=13,
        code=code,
    )
    arms = {"post-LN, float32": at_post(make=post)}
    for way, back in WAYS.items():
        make = partial(rounded, -12, back, post)
        arms[f"post-LN, {way}, scale 2^-12"] = at_post(make=make)
    longer = partial(Arm, learn=learn, rates=(RATE,), steps=(2400,), chapter=13, code=code)
    return arms | {"longer, float16, scale 2^-10": longer(make=partial(rounded, -10))}


half = Experiment(
    path=HERE / "half.json",
    question="How many zeros among its gradients does a training bear, and which weights?",
    measure="exact",
    scale=1.0,
    arms=half_arms,
    widens=False,
    seconds=10.0,
)
half_first = Experiment(
    path=HERE / "half_first.json",
    question="How many gradients are zero in the first steps?",
    measure="zeros",
    scale=1.0,
    arms=first_arms,
    widens=False,
    seconds=1.0,
)
half_neighbours = Experiment(
    path=HERE / "half_neighbours.json",
    question="Do zeros break post-LN, too, and do more steps help?",
    measure="exact",
    scale=1.0,
    arms=neighbour_arms,
    widens=False,
    seconds=10.0,
)
