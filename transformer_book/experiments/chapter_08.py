"""Chapter 8: with and without recurrence; where words start and how far a step moves them."""

import math
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import BucketedBatches
from transformer.data.tokens import PAD_ID
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.experiment import learn
from transformer_book.experiments.translator.teaching import new_translator, scores

EQUAL = 84  # hidden numbers: 222,728 parameters; the Transformer has 221,568, half a percent less
FACTOR = math.sqrt(64)  # of the chapter's translator
JUDGED: dict[str, Any] = {"measure": "exact", "scale": 1.0, "judged_by": ("exact", "bleu")}


def page() -> SimpleNamespace:
    """The chapter's translators."""
    return chapter(8, "imports*", "translator-model*").names()


@experiment(
    "Does the Transformer stay ahead of recurrence at equal parameters, and for long?",
    learn=learn,
    rates=(0.0025, 0.005, 0.01),
    steps=(500, 1000, 2000),
    **JUDGED,
)
def recurrence() -> dict[str, Make]:
    """The chapter's Transformer; chapter 2's translator with the factor, as large and as given."""
    cell = page()
    return {
        "Transformer": cell.whole_model,
        "recurrent": cell.recurrent_with_factor,
        "recurrent, as many parameters": partial(cell.recurrent_with_factor, hidden_size=EQUAL),
    }


# Start and step, each as the factor has it or not


def tables_of(model: Any) -> list[Tensor]:
    """The two tables of embeddings."""
    return [each.tokens.weight for each in (model.src_embedding, model.tgt_embedding)]


@torch.no_grad()
def lengthened(model: Any, times: float) -> Any:
    """``model``, its tables ``times`` as large."""
    for table in tables_of(model):
        table.mul_(times)
    return model


def begun(times: float) -> Any:
    """The chapter's Transformer without the factor, its tables ``times`` as large at the start."""
    model: Any = page().whole_model()
    model.src_embedding.scale = model.tgt_embedding.scale = 1.0
    return lengthened(model, times)


def train(model: nn.Module, *, lr: float, seed: int, n_steps: int, times: float) -> None:
    """Trains as the book's translators are taught, with steps of the tables ``times`` as large."""
    model.to(default_device()).train()
    tables = tables_of(model)
    others = [p for p in model.parameters() if not any(p is table for table in tables)]
    groups: list[dict[str, Any]] = [{"params": others}, {"params": tables}]
    adam = torch.optim.Adam(groups, fused=True)
    rate_of = linear_schedule(lr, warmup=50, n_steps=n_steps)
    batches = BucketedBatches(corpus().examples, batch_size=32, seed=seed)
    for step in range(n_steps):
        rate = rate_of(step + 1)
        adam.param_groups[0]["lr"], adam.param_groups[1]["lr"] = rate, times * rate
        batch = batches(step).to(default_device())
        logits = model(*batch.inputs)
        loss = cross_entropy(logits.mT, batch.labels, ignore_index=PAD_ID)
        adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        adam.step()


def learn_in_steps(model: nn.Module, plan: Plan, n_steps: int, *, times: float) -> Measures:
    """How well it translates, as the book's other translators are judged."""
    train(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, times=times)
    return scores(model, plan)


def four_cells(begun: Callable[[float], nn.Module]) -> dict[str, Arm]:
    """Short and long words, in small and in large steps."""
    return {
        f"{words} words, {steps} steps": Arm(
            partial(begun, start), learn=partial(learn_in_steps, times=times)
        )
        for words, start in (("short", 1.0), ("long", FACTOR))
        for steps, times in (("small", 1.0), ("large", FACTOR))
    }


@experiment(
    "Is it the words' size at the start, or the size of their steps, that √d_model gives?",
    rates=(0.003, 0.005, 0.008),
    steps=(800,),
    seeds=tuple(range(5)),
    tuning_seeds=(100, 101),
    **JUDGED,
)
def start_and_step() -> dict[str, Arm]:
    page()
    return four_cells(begun)


# The same in post-LN, in the reader's own model, and in chapter 7's

POST = "the package's post-LN, short words, small steps"
SEVEN = "chapter 7's translator, large steps"  # its words are long: nn.Embedding starts so


class _Table(nn.Embedding):
    """A table that is its embedding's tokens, too."""

    @property
    def tokens(self) -> nn.Embedding:
        return self


def _undo(table: nn.Module, given: tuple[Tensor, ...], rows: Tensor) -> Tensor:
    return rows / FACTOR


def reader_page() -> SimpleNamespace:
    """The reader's own model."""
    return chapter(9, "imports*", "my-model*").names()


def mine(times: float) -> Any:
    """The reader's model without the factor, its tables ``times`` as large at the start."""
    model: Any = reader_page().MyTransformer(len(corpus().english), len(corpus().french))
    for embedding in (model.src_embedding, model.tgt_embedding):
        embedding.tokens.register_forward_hook(_undo)
    return lengthened(model, times)


def post() -> Any:
    """The package's Transformer, as the chapter's of the stored runs, but post-LN; no factor."""
    model: Any = new_translator(norm="post")
    model.src_embedding.scale = model.tgt_embedding.scale = 1.0
    return model


def seventh(make: Make) -> Any:
    """Chapter 7's translator as it is."""
    model: Any = make()
    for side in ("src_embedding", "tgt_embedding"):
        table = _Table(*getattr(model, side).weight.shape)
        table.load_state_dict(getattr(model, side).state_dict())
        setattr(model, side, table)
    return model


@experiment(
    "Do start and step count in post-LN, too, and what do large steps give chapter 7's?",
    rates=(0.002, 0.003, 0.005, 0.008),
    steps=(800,),
    widens=False,
    **JUDGED,
)
def elsewhere() -> dict[str, Arm]:
    """The reader's model in all four cells; of the two others one cell."""
    reader_page()
    before = chapter(7, "imports*", "translator-model*").names()
    large, small = (partial(learn_in_steps, times=times) for times in (FACTOR, 1.0))
    return {f"yours, {name}": arm for name, arm in four_cells(mine).items()} | {
        SEVEN: Arm(partial(seventh, before.Translator), learn=large, rates=(0.005,)),
        POST: Arm(post, learn=small, rates=(0.0005, 0.001, 0.002, 0.003)),
    }
