"""What training makes small, and how fast: loss, optimiser, learning rate (chapter 9)."""

import math
from collections.abc import Callable, Iterable

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.checks import check_finite_and_positive, check_positive, check_share

Schedule = Callable[[int], float]


def smoothed_cross_entropy(
    logits: Float[Tensor, "B T vocab"],
    labels: Int[Tensor, "B T"],
    *,
    smoothing: float = 0.1,
    pad_id: int | None = 0,
) -> Float[Tensor, ""]:
    """Σ over labels of -Σ_w q(w) log p(w), in nats; q(w) = (1 - ε) [w is the label] + ε / vocab.

    ε is ``smoothing``: Szegedy et al. (2016), section 7; Vaswani et al. (2017), section 5.4;
    chapter 9. A label equal to ``pad_id`` counts nothing; at None it is -100, which is no token, as
    in PyTorch. Half-precision logits are summed in float32.

    Raises ValueError for a ``smoothing`` outside [0, 1).
    """
    check_share(smoothing=smoothing)
    if labels.shape != logits.shape[:-1]:
        wanted = tuple(logits.shape[:-1])
        raise ValueError(f"labels must have shape {wanted}, got {tuple(labels.shape)}")
    if logits.itemsize < 4:
        logits = logits.float()
    return F.cross_entropy(
        logits.flatten(0, 1),
        labels.flatten().long(),
        ignore_index=_no_label(pad_id),
        label_smoothing=smoothing,
        reduction="sum",
    )


def count_labels(labels: Int[Tensor, "B T"], *, pad_id: int | None = 0) -> int:
    """How many labels have a loss, which are those other than ``pad_id``; chapter 9."""
    return int((labels != _no_label(pad_id)).sum())


def _no_label(pad_id: int | None) -> int:
    return -100 if pad_id is None else pad_id


def paper_schedule(d_model: int, *, warmup: int = 4000, factor: float = 1.0) -> Schedule:
    """factor · d_model^-½ · min(step^-½, step · warmup^-1½), Vaswani et al. (2017), Eq. 3.

    Chapter 9. Steps count from 1, and at step 0 the rate is 0; the highest, at step ``warmup``, is
    factor / √(d_model · warmup).
    """
    check_positive(d_model=d_model, warmup=warmup)
    return lambda step: factor * d_model**-0.5 * min(max(step, 1) ** -0.5, step * warmup**-1.5)


def warmup_schedule(peak: float, *, warmup: int) -> Schedule:
    """:func:`paper_schedule` by its highest rate: up to ``peak`` in ``warmup`` steps, then √-decay.

    Raises ValueError for a ``peak`` that is not positive and finite.
    """
    check_finite_and_positive(peak=peak)
    return paper_schedule(1, warmup=warmup, factor=peak * math.sqrt(warmup))


def linear_schedule(peak: float, *, warmup: int, n_steps: int) -> Schedule:
    """Up to ``peak`` in ``warmup`` steps, then down in a straight line; chapter 11.

    It is 0 from the step after ``n_steps`` on, so that the last one still learns.

    Raises ValueError for a ``peak`` that is not positive and finite, and ``warmup`` > ``n_steps``.
    """
    check_finite_and_positive(peak=peak)
    check_positive(warmup=warmup, n_steps=n_steps)
    if warmup > n_steps:
        raise ValueError(f"warmup must be at most n_steps = {n_steps}, got {warmup}")
    n_down = n_steps + 1 - warmup
    return lambda step: peak * min(step / warmup, max(0, n_steps + 1 - step) / n_down)


def paper_optimizer(parameters: Iterable[nn.Parameter]) -> torch.optim.Adam:
    """Adam with β₁ = 0.9, β₂ = 0.98, ε = 10⁻⁹, Vaswani et al. (2017), section 5.3.

    The learning rate is 0 until ``fit`` sets it, at every step, to what its ``schedule`` says.
    PyTorch's ``LambdaLR`` multiplies by a schedule instead, and wants an Adam with ``lr=1.0``.
    """
    return torch.optim.Adam(parameters, lr=0.0, betas=(0.9, 0.98), eps=1e-9, fused=True)
