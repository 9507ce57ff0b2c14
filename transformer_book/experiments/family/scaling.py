"""How the loss falls with parameters and tokens: a law, fitted, and the best size for a compute."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Num

from transformer.checks import check_choice, check_positive
from transformer_book.experiments.family.results import ScalingRun

Count = Literal["all", "non-embedding"]
Numbers = Float[np.ndarray, " n"]
Amount = int | float | Num[np.ndarray, "..."]
EXPONENTS = np.linspace(0.02, 1.5, 75)  # tried first; then finer around the best


@dataclass(frozen=True)
class Law:
    """L(N, D) = E + A N^-alpha + B D^-beta; Hoffmann et al. (2022), Eq. 2; chapter 15.

    N parameters, D tokens, losses in nats per token.
    """

    E: float
    A: float
    alpha: float
    B: float
    beta: float

    def loss(self, n_parameters: Amount, n_tokens: Amount) -> float | Float[np.ndarray, "..."]:
        return self.E + self.A * n_parameters**-self.alpha + self.B * n_tokens**-self.beta

    @property
    def size_exponent(self) -> float:
        """a of N_best ∝ C^a, where C = 6 N D: beta / (alpha + beta); Hoffmann et al., Eq. 4."""
        return self.beta / (self.alpha + self.beta)


def fit_law(
    runs: Sequence[ScalingRun],
    *,
    count: Count = "all",
    fallen: bool = True,
    E: float | None = None,
) -> Law:
    """The law with the least squares of relative errors; E, A and B are not negative.

    For each pair of exponents the law is linear in E, A and B: of a grid of pairs the best is
    taken, and again of finer grids around it. N counts all parameters or those outside of the
    embedding. Without ``fallen``, the losses are those on the way. ``E`` is fitted, too, unless it
    is given: of a language that we have made, it is the entropy, which we know.

    Raises ValueError for fewer than five runs, as there are five unknowns.
    """
    check_choice(get_args(Count), count=count)
    if len(runs) < 5:
        raise ValueError(f"runs must be at least five, got {len(runs)}")
    N, D, loss = _columns(runs, count, fallen)
    alphas = betas = EXPONENTS
    for finer in (0.03, 0.003, 0.0003, None):
        alpha, beta, (E_fitted, A, B) = _best_pair(N, D, loss, alphas, betas, E)
        if finer is not None:
            alphas, betas = (
                np.linspace(max(x - finer, 0.01), x + finer, 41) for x in (alpha, beta)
            )
    return Law(float(E_fitted), float(A), float(alpha), float(B), float(beta))


def bootstrap(
    runs: Sequence[ScalingRun],
    n: int = 100,
    *,
    seed: int = 0,
    count: Count = "all",
    fallen: bool = True,
    E: float | None = None,
) -> list[Law]:
    """``n`` laws, each fitted to as many seeds of each size and number of tokens, drawn anew.

    How far they differ is the noise of the seeds; a wrong form of the law is not seen in it.
    """
    check_positive(n=n)
    rng = np.random.default_rng(seed)
    cells = _cells(runs)
    drawn = (
        [cell[i] for cell in cells for i in rng.integers(len(cell), size=len(cell))]
        for _ in range(n)
    )
    return [fit_law(some, count=count, fallen=fallen, E=E) for some in drawn]


def best_sizes(
    runs: Sequence[ScalingRun], *, count: Count = "all", fallen: bool = True
) -> tuple[Numbers, Numbers]:
    """Amounts of compute C = 6 N D and the size N that reaches the lowest loss with each.

    Hoffmann et al. (2022), section 3.2: for each C, a parabola through the losses over log N, at
    the lowest and the two beside it; left out where the lowest is at an end. Between measured
    numbers of tokens, the loss lies on a line over log D. N counts all parameters or those outside
    of the embedding, in C as well. Without ``fallen``, the losses are those on the way.
    """
    check_choice(get_args(Count), count=count)
    curves: dict[float, list[tuple[float, float]]] = {}
    for cell in _cells(runs):
        N, D, loss = _columns(cell, count, fallen)
        curves.setdefault(N[0], []).append((D[0], loss.mean()))
    computes = [6 * N * D for N, curve in curves.items() for D, _ in curve]
    points: list[tuple[float, float]] = []
    for C in np.geomspace(min(computes), max(computes), 60):
        losses = {N: _between(curve, C / (6 * N)) for N, curve in curves.items()}
        best = _bottom({N: loss for N, loss in losses.items() if loss is not None})
        if best is not None:
            points.append((C, best))
    at, sizes = np.array(points).reshape(-1, 2).T
    return at, sizes


def power_of(x: Numbers, y: Numbers) -> float:
    """The exponent a of y ∝ x^a, by least squares of logarithms."""
    return float(np.polyfit(np.log(x), np.log(y), 1)[0])


def _columns(
    runs: Sequence[ScalingRun], count: Count, fallen: bool
) -> tuple[Numbers, Numbers, Numbers]:
    sizes = [run.n_parameters if count == "all" else run.n_non_embedding for run in runs]
    losses = [run.loss if fallen else run.loss_on_the_way for run in runs]
    columns = sizes, [run.n_tokens for run in runs], losses
    N, D, loss = (np.array(column, dtype=float) for column in columns)
    return N, D, loss


def _cells(runs: Sequence[ScalingRun]) -> list[list[ScalingRun]]:
    """The seeds of each size and number of tokens, together."""
    cells: dict[tuple[int, int], list[ScalingRun]] = {}
    for run in runs:
        cells.setdefault((run.n_parameters, run.n_tokens), []).append(run)
    return list(cells.values())


def _best_pair(
    N: Numbers,
    D: Numbers,
    loss: Numbers,
    alphas: Float[np.ndarray, " i"],
    betas: Float[np.ndarray, " j"],
    known_E: float | None,
) -> tuple[float, float, Float[np.ndarray, " 3"]]:
    """The exponents with the least squares of relative errors, and their E, A and B."""
    middle = np.exp(np.log(N).mean()), np.exp(np.log(D).mean())  # so that no column is tiny
    one = 1 / loss
    of_size = (N / middle[0]) ** -alphas[:, None] / loss  # (alphas, runs)
    of_tokens = (D / middle[1]) ** -betas[:, None] / loss
    shape = len(alphas), len(betas), len(loss)
    columns = [one, of_size[:, None], of_tokens[None]]
    X = np.stack([np.broadcast_to(column, shape) for column in columns], axis=-1)
    # what is known goes to the right side; of the rest the sum is to be 1 at every run
    right = np.ones(shape) if known_E is None else np.broadcast_to(1 - known_E * one, shape)
    free = X if known_E is None else X[..., 1:]
    Xt = free.swapaxes(-1, -2)
    solved = np.linalg.solve(Xt @ free, Xt @ right[..., None])[..., 0]  # (alphas, betas, unknown)
    errors = ((free @ solved[..., None])[..., 0] - right) ** 2
    squares = np.where((solved >= 0).all(axis=-1), errors.sum(axis=-1), np.inf)
    i, j = np.unravel_index(squares.argmin(), squares.shape)
    E, A, B = solved[i, j] if known_E is None else (known_E, *solved[i, j])
    parts = E, A * middle[0] ** alphas[i], B * middle[1] ** betas[j]
    return alphas[i], betas[j], np.array(parts)


def _between(curve: list[tuple[float, float]], n_tokens: float) -> float | None:
    """The loss after ``n_tokens``; None outside of what was measured."""
    D, losses = zip(*sorted(curve), strict=True)
    if not D[0] <= n_tokens <= D[-1]:
        return None
    return float(np.interp(np.log(n_tokens), np.log(D), losses))


def _bottom(losses: dict[float, float]) -> float | None:
    """The size at the lowest point of the parabola around the lowest loss."""
    sizes = sorted(losses)
    at = min(range(len(sizes)), key=lambda i: losses[sizes[i]], default=0)
    if not 0 < at < len(sizes) - 1:
        return None
    near = sizes[at - 1 : at + 2]
    a, b, _ = np.polyfit(np.log(near), [losses[N] for N in near], 2)
    return float(np.exp(-b / (2 * a)))
