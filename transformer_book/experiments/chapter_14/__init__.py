"""Chapter 14: what one layer can copy, and what hides a word, trained longer."""

import math
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.tokens import PAD_ID
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14"
LENGTHS = range(5, 11)  # words that come twice; the chapter takes turns, as here
Batch = tuple[Tensor, Tensor]  # tokens and labels
BatchOf = Callable[[torch.Generator, int], Batch]

# What is asked again: induction heads


def _loss(model: nn.Module, batch: Batch, not_asked: int) -> Tensor:
    x, labels = (part.to(default_device()) for part in batch)
    return cross_entropy(model(x).mT, labels, ignore_index=not_asked)


def _train(
    model: nn.Module, batch_of: BatchOf, plan: Plan, n_steps: int, not_asked: int
) -> nn.Module:
    """The chapter's ``train_together``, for one model: its batches, its schedule, its Adam."""
    generator = torch.Generator().manual_seed(plan.seed)
    rate_of = linear_schedule(plan.lr, warmup=30, n_steps=n_steps)  # which counts from 1

    def loss_of(step: int) -> Tensor:
        return _loss(model, batch_of(generator, LENGTHS[step % len(LENGTHS)]), not_asked)

    minimise(loss_of, model.parameters(), n_steps=n_steps, lr=lambda step: rate_of(step + 1))
    return model.eval()


def learn_to_copy(
    make: Make, plan: Plan, *, cell: SimpleNamespace
) -> Iterator[tuple[int, Measures]]:
    """The loss of what is asked in new rows, in nats, the mean over all lengths."""

    def train(model: nn.Module, n_steps: int) -> Measures:
        _train(model, cell.twice, plan, n_steps, cell.NOT_ASKED)
        exam = torch.Generator().manual_seed(1000 + plan.seed)
        with torch.no_grad():
            rows = [cell.twice(exam, n, 200) for n in LENGTHS]
            losses = [_loss(model, batch, cell.NOT_ASKED).item() for batch in rows]
        return {"loss": sum(losses) / len(losses)}

    yield from one_for_each(make, plan, train)


def _copier(cell: SimpleNamespace, n_layers: int) -> nn.Module:
    return cell.Copier(n_layers).to(default_device())


def induction_arms() -> dict[str, Arm]:
    cells = chapter(14, "imports*", "copier", "copier-batch")
    cell = cells.names()
    return {
        name: Arm(
            make=partial(_copier, cell, n_layers),
            learn=partial(learn_to_copy, cell=cell),
            rates=(0.005, 0.01, 0.02, 0.04),
            steps=(375, 750, 1500, 3000),
            code=cells.code(ME),
            chapter=14,
        )
        for name, n_layers in (("one layer", 1), ("two layers", 2))
    }


# What stands in the place of a word that is asked for


def learn_and_tune(
    make: Make, plan: Plan, *, cell: SimpleNamespace, always_mask: bool
) -> Iterator[tuple[int, Measures]]:
    """Pretrained at the chapter's rate for so many steps; then tuned at the plan's, 50 steps.

    "right": on the test, the mean over the three sets of 120 labels. The rate is chosen by what is
    right in the sets that are not learnt from. "loss": of the words asked for, in the last steps.
    """

    def train(model: nn.Module, n_steps: int) -> Measures:
        loss = _pretrain(model, cell, plan.seed, n_steps, always_mask)
        shares = []
        for i, few in enumerate(cell.few):
            others = [other for j, other in enumerate(cell.few) if j != i]
            tuned = _tuned(model, cell, plan, few)
            asked = others if plan.sweep else [(cell.test_rows, cell.test_labels)]
            with torch.no_grad():
                shares += [(tuned(x).argmax(dim=-1) == y).float().mean().item() for x, y in asked]
        return {"right": sum(shares) / len(shares), "loss": loss}

    yield from one_for_each(make, plan, train)


def _pretrain(
    model: nn.Module, cell: SimpleNamespace, seed: int, n_steps: int, always_mask: bool
) -> float:
    """The chapter's ``pretrained``; with ``always_mask`` nothing but <mask> is put in."""
    generator = torch.Generator().manual_seed(seed)
    rate_of = linear_schedule(0.01, warmup=50, n_steps=n_steps)

    def loss_of(step: int) -> Tensor:
        batch = cell.hidden_batch(generator)
        asked = batch.labels != PAD_ID
        tokens = batch.tokens.masked_fill(asked, cell.MASK) if always_mask else batch.tokens
        return cross_entropy(model(tokens).mT, batch.labels, ignore_index=PAD_ID)

    losses = minimise(
        loss_of,
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
        clip_norm=1.0,
    )
    return sum(losses[-50:]) / len(losses[-50:])


def _tuned(start: nn.Module, cell: SimpleNamespace, plan: Plan, few: Batch) -> nn.Module:
    """The chapter's ``fine_tuned``: a copy, 50 steps on all rows at once."""
    torch.manual_seed(plan.seed)
    model, (tokens, labels) = cell.Classifier(start), few
    rate_of = linear_schedule(plan.lr, warmup=5, n_steps=50)
    minimise(
        lambda step: cross_entropy(model(tokens), labels),
        model.parameters(),
        n_steps=50,
        lr=lambda step: rate_of(step + 1),
    )
    return model


def masking_arms() -> dict[str, Arm]:
    needed = ("gpt-text", "numbers-bert", "bert-train", "tune-data", "tune")
    cells = chapter(14, "imports*", *needed)
    cell = cells.names()
    return {
        name: Arm(
            make=lambda: cell.EncoderOnly(cell.bert).to(default_device()),
            learn=partial(learn_and_tune, cell=cell, always_mask=always_mask),
            rates=(0.002, 0.006, 0.02),
            steps=(320, 1000, 2000),
            code=cells.code(ME),
            chapter=14,
        )
        for name, always_mask in (("80 %, 10 %, 10 %", False), ("100 % <mask>", True))
    }


induction = Experiment(
    path=HERE / "induction.json",
    question="How well does one layer of attention copy, trained until it learns no more?",
    measure="loss",
    scale=math.log(24),
    lower_is_better=True,
    arms=induction_arms,
    seconds=30.0,
)
masking = Experiment(
    path=HERE / "masking.json",
    question="Is it better to hide eight in ten of the words asked for, or all of them?",
    measure="right",
    scale=1.0,
    arms=masking_arms,
    seeds=tuple(range(5)),
    seconds=60.0,
)
