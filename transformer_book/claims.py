"""Claims that are executed where they are made, and what "equal" means in them."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from IPython.display import display
from torch import Tensor

# How a claim stands in a notebook: an output of this type, beside the line "✓ …" as plain text,
# which is what Jupyter, Colab and GitHub show of it.
MIME = "application/vnd.transformer-book.claim+json"
KINDS = ("identity", "theorem", "experiment")
BUDGET = ("seeds", "models", "steps")


@dataclass(frozen=True, repr=False)
class Claim:
    """A sentence that held when its cell ran, its kind, and what an experiment was made of.

    An *identity* computes one thing in two ways, or counts; a *theorem* tests on examples what is
    true of all cases; an *experiment* measures what could have come out otherwise, with so many
    random ``seeds`` or trained ``models``, of so many training ``steps``.

    Raises ValueError for a text that is empty or longer than one line, for an unknown kind, and
    for a budget that is no positive number or belongs to no experiment.
    """

    text: str
    kind: str
    seeds: int | None = None
    models: int | None = None
    steps: int | None = None

    def __post_init__(self):
        is_text = isinstance(self.text, str) and self.text.strip()
        if not is_text or len(self.text.splitlines()) > 1:
            raise ValueError(f"text must be one line that states the claim, got {self.text!r}")
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {self.kind!r}")
        for name, number in self.budget.items():
            if type(number) is not int or number < 1:
                raise ValueError(f"{name} must be a positive number of {name}, got {number!r}")
            if self.kind != "experiment":
                raise ValueError(f"kind must be experiment where {name} are given, got {self.kind}")

    @property
    def budget(self) -> dict[str, int]:
        """What is known of ``seeds``, ``models`` and ``steps``."""
        return {name: getattr(self, name) for name in BUDGET if getattr(self, name) is not None}

    @property
    def description(self) -> str:
        """The kind with its budget, as the ledger shows it: "experiment, 3 seeds, 200 steps"."""
        numbers = (f"{n:,} {name if n > 1 else name[:-1]}" for name, n in self.budget.items())
        return ", ".join([self.kind, *numbers])

    @property
    def anchor(self) -> str:
        """Its address in the book's pages, of letters and digits: "One, √2" is claim-one-2."""
        return "-".join(["claim", *re.findall("[a-z0-9]+", self.text.lower())])

    def __repr__(self) -> str:
        return f"✓ {self.text}"

    def _repr_mimebundle_(self, include=None, exclude=None) -> dict[str, Any]:
        """What a kernel sends to the notebook: the line to be shown, and the data to be read."""
        data = {name: value for name, value in asdict(self).items() if value is not None}
        return {"text/plain": repr(self), MIME: data}


def claim(
    text: str,
    holds: bool | np.bool_ | Tensor,
    kind: str | None = None,
    *,
    seeds: int | None = None,
    models: int | None = None,
    steps: int | None = None,
) -> None:
    """Show ``✓ text`` if ``holds``, else raise AssertionError with the text.

    ``kind`` is "identity", "theorem" or "experiment"; a number of ``seeds``, ``models`` or
    ``steps`` says by itself that it is an experiment. It stands third and without its name, for
    a claim is a line among few. What is shown is a ``Claim``, which the book's ledger, its pages
    and its rehearsal read with ``claims_of``.

    Raises TypeError if ``holds`` is not one truth value: a list, a number or a forgotten call is
    nearly always true, and a claim that cannot fail is worth nothing. Raises ValueError for a
    text that is not one line, and where no kind is said.
    """
    if kind is None and (seeds or models or steps):
        kind = "experiment"
    made = Claim(text, kind or "", seeds, models, steps)
    if isinstance(holds, Tensor) and holds.dtype == torch.bool and holds.dim() == 0:
        holds = bool(holds)
    if not isinstance(holds, bool | np.bool_):
        raise TypeError(f"holds must be one truth value, got {type(holds).__name__}: {holds!r}")
    if not holds:
        raise AssertionError(text)
    display(made)


def claims_of(outputs: Iterable[Mapping[str, Any]]) -> list[Claim]:
    """The claims among the outputs of a cell, in their order; the one reader of what is shown."""
    return [Claim(**output["data"][MIME]) for output in outputs if MIME in output.get("data", {})]


def close(a: Tensor, b: Tensor, *, tolerance: float = 1e-5) -> bool:
    """Whether a and b differ by no more than ``tolerance (1 + 10 |b|)`` in any entry.

    NaN is close to nothing, NaN included. Raises ValueError where the shapes differ: a broadcast
    would compare what was not meant.
    """
    if a.shape != b.shape:
        raise ValueError(f"b must have the shape of a, {tuple(a.shape)}, got {tuple(b.shape)}")
    return torch.allclose(a, b, rtol=10 * tolerance, atol=tolerance)
