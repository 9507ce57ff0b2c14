"""Chapter 13: what a training loses where gradients or weights have 16 bits."""

from functools import partial
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import make_batch
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import train_translator
from transformer_book.experiments.translator.teaching import new_translator, taught

POWERS = (0, -4, -8, -12)  # of two, by which the loss is multiplied
BREAKS = (-9, -10, -11, -12)  # where it breaks
WAYS = {"float16": "rounded", "zeros alone": "zeros_alone", "digits alone": "digits_alone"}
RATE = 0.016  # the best of three in each of the arms that tried three
EARLY, WARM_UP = 20, 50  # the first steps are the same however many follow the warm-up


# The small translator of chapter 9
small = partial(
    new_translator, d_model=32, n_encoder_layers=1, n_decoder_layers=1, d_ff=64, norm="pre"
)
small_post = partial(small, norm="post")


def page() -> SimpleNamespace:
    """The chapter's ways to compute with 16 bits."""
    return chapter(13, "imports*", "half-*").names()


def rounded(power: int, back: str = "rounded", make: Make = small) -> nn.Module:
    """A translator in the page's float16, whose loss is multiplied by two to the ``power``."""
    cell = page()
    return cell.in_float16(make(), 2.0**power, getattr(cell, back))


def gradients(model: nn.Module) -> Tensor:
    """The gradients of all parameters, after the loss of 64 sentences."""
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


def learn(model: nn.Module, plan: Plan, n_steps: int, *, plain: Make = small) -> Measures:
    """The share of sentences that are translated without a fault, and that of zeros."""
    return taught(model, plan, n_steps) | {"zeros": round(zeros(model, plain()), 5)}


@experiment(
    "How many zeros among its gradients does a training bear, and which weights?",
    measure="exact",
    scale=1.0,
    learn=learn,
    rates=(0.008, RATE, 0.032),
    steps=(800,),
    widens=False,
)
def half() -> dict[str, Arm | Make]:
    """The small translator in the page's float16, with the loss ever smaller.

    And with a backward pass that has only float16's zeros, or only its digits.
    """
    cell = page()
    arms: dict[str, Arm | Make] = {
        "float32": small,
        "weights in bfloat16": lambda: cell.with_bfloat16_weights(small()),
    }
    for power in POWERS:
        arms[f"float16, scale 2^{power}"] = partial(rounded, power)
    for power in BREAKS:
        for way, back in WAYS.items():
            one_rate = Arm(partial(rounded, power, back), rates=(RATE,))
            arms.setdefault(f"{way}, scale 2^{power}", one_rate)
    return arms


def learn_first(model: nn.Module, plan: Plan, n_steps: int, *, make: Make) -> Measures:
    """The share of zeros in the first steps of a training; ``make`` makes another such model."""
    plain, calls, found = small(), 0, 0.0

    def look(model: nn.Module, _: object) -> None:
        nonlocal calls, found
        if calls == n_steps:
            model_now = make()
            model_now.load_state_dict(model.state_dict())
            found = zeros(model_now, plain)
        calls += 1

    model.register_forward_pre_hook(look)
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=WARM_UP)
    return {"zeros": round(found, 5)}


@experiment(
    "How many gradients are zero in the first steps?",
    measure="zeros",
    scale=1.0,
    rates=(RATE,),
    steps=(EARLY,),
    widens=False,
)
def half_first() -> dict[str, Arm]:
    page()
    makes = {
        f"float16, scale 2^{power}": partial(rounded, power)
        for power in sorted({*POWERS, *BREAKS}, reverse=True)
    }
    return {name: Arm(make, learn=partial(learn_first, make=make)) for name, make in makes.items()}


@experiment(
    "Do zeros break post-LN, too, and do more steps help?",
    measure="exact",
    scale=1.0,
    learn=learn,
    rates=(0.008,),
    steps=(800,),
    widens=False,
)
def half_neighbours() -> dict[str, Arm]:
    """Half precision in post-LN; and in pre-LN for three times as many steps."""
    page()
    at_post = partial(Arm, learn=partial(learn, plain=small_post))
    arms = {"post-LN, float32": at_post(small_post)}
    for way, back in WAYS.items():
        arms[f"post-LN, {way}, scale 2^-12"] = at_post(partial(rounded, -12, back, small_post))
    longer = Arm(partial(rounded, -10), rates=(RATE,), steps=(2400,))
    return arms | {"longer, float16, scale 2^-10": longer}
