"""One evening: what each part of the reader's file is worth, over five random starts."""

import contextlib
import io
import re
from collections.abc import Mapping
from functools import cache, partial
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from transformer.data.grammar.lexicon import NOUNS
from transformer_book.evening import PAGE, file_of
from transformer_book.experiments import Arm, Measures, Plan, experiment


class Stage(NamedTuple):
    """What is trained where: after the cell ``cell``, a new model of the class ``model``.

    ``without`` is what the file is to lose, as a pattern; its first group stays.
    """

    cell: str
    model: str = "Translator"
    n_steps: int = 400
    rate: float = 0.005
    without: str = r"$()"


STAGES = {
    "a dictionary": Stage("report", "Dictionary", rate=0.05),
    "a writer that hears nothing": Stage("writer"),
    "attention": Stage("cross"),
    "positions": Stage("solution-positions"),
    "the plus sign": Stage("plus"),
    "French asks itself, no mask": Stage("self-attention"),
    "the causal mask": Stage("solution-mask"),
    "English asks itself, replaced": Stage("encoder"),
    "English asks itself, added": Stage("solution-residual"),
    "four heads": Stage("heads", "FourHeads"),
    "feed-forward and norms": Stage("transformer", "Transformer"),
    "two layers": Stage("two-layers", "Transformer"),
    "a smaller start": Stage("scale", "Transformer"),
    "1,200 steps": Stage("final", "Transformer", n_steps=1200),
}

# whether a part that is missing is missed after more steps, too
LONGER = {
    f"{name}, 1,200 steps": STAGES[name]._replace(n_steps=1200)
    for name in (
        "the causal mask", "English asks itself, replaced", "English asks itself, added",
    )
}  # fmt: skip

# which of two parts that come together is worth what
APART = {
    "feed-forward alone": STAGES["feed-forward and norms"]._replace(
        without=r"\bself\.norm_\d(\(.*\))$"
    ),
}

MIRRORED = ("the dog sees the cat", "the cat sees the dog")


def source_of(stage: Stage) -> str:
    """The reader's file at this stage."""
    whole = file_of(stage.cell, f"report(train({stage.model}))")
    return re.sub(stage.without, r"\1", whole, flags=re.MULTILINE)


@cache
def names_of(source: str) -> dict[str, Any]:
    """What the file defines."""
    names: dict[str, Any] = {"__name__": "evening"}
    pairs = str(PAGE.with_name("pairs.tsv"))
    exec(compile(source.replace('"pairs.tsv"', repr(pairs)), "evening", "exec"), names)
    return names


def make(stage: Stage) -> nn.Module:
    """A new model of the stage's class."""
    return names_of(source_of(stage))[stage.model]()


def kin(rows: Tensor, number_of: Mapping[str, int]) -> float:
    """The share that nouns of its gender and number have of the five rows nearest to a noun's."""
    kinds = {
        number_of[word]: (noun.feminine, is_plural)
        for noun in NOUNS
        for is_plural, word in enumerate(noun.english)
        if word in number_of
    }
    rows = normalize(rows, dim=1)
    nearest = (rows @ rows.T).fill_diagonal_(-2.0).topk(5).indices.tolist()
    found = [kinds.get(other) == kind for i, kind in kinds.items() for other in nearest[i]]
    return sum(found) / len(found)


def learn(model: Any, plan: Plan, n_steps: int, *, stage: Stage) -> Measures:
    """Trains and tests as the page does, whose ``train`` makes its own model after the seed."""
    names = names_of(source_of(stage))
    with contextlib.redirect_stdout(io.StringIO()):
        model = names["train"](names[stage.model], n_steps=n_steps, rate=plan.lr, seed=plan.seed)
    test = names["test_pairs"]
    written = names["translate"](model, [source for source, _ in test])
    right = [line == target for line, (_, target) in zip(written, test, strict=True)]
    one, other = names["translate"](model, MIRRORED)
    with torch.no_grad():
        loss = names["loss_of"](model, test).item()
    measures = {"right": sum(right) / len(right), "loss": loss, "apart": float(one != other)}
    if stage.model == "Transformer":
        measures["kin"] = kin(model.src_embedding.rows.weight.detach(), names["english"])
    return measures


@experiment(
    "What is each part of the evening's translator worth?",
    measure="right",
    scale=1.0,
    chapter=0,
    widens=False,
    seeds=(0, 1, 2, 3, 4),
)
def evening() -> dict[str, Arm]:
    return {
        name: Arm(
            partial(make, stage),
            learn=partial(learn, stage=stage),
            rates=(stage.rate,),
            steps=(stage.n_steps,),
        )
        for name, stage in (STAGES | LONGER | APART).items()
    }
