"""Chapter 14: what one layer can copy, and what hides a word, trained longer."""

import math
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from statistics import mean
from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import pad
from transformer.data.tokens import PAD_ID
from transformer.family.masking import mask_words
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_14"
LENGTHS = range(5, 11)  # words that come twice, as in the chapter
Batch = tuple[Tensor, Tensor]  # tokens and labels

# What is asked again: induction heads


def of_the_copiers() -> Cells:
    """The chapter's models of attention alone, their task, and its training loop."""
    return chapter(14, "imports*", definitions=("train", "copier", "copier-batch"))


def learn_to_copy(
    make: Make, plan: Plan, *, cell: SimpleNamespace
) -> Iterator[tuple[int, Measures]]:
    """The loss of what is asked in new texts, in nats, and what is right, means over all lengths.

    The chapter's training, but for its limit to the gradient, with which one layer learns slower.
    """

    def train(model: nn.Module, n_steps: int) -> Measures:
        rate_of = linear_schedule(plan.lr, warmup=30, n_steps=n_steps)  # which counts from 1
        minimise(
            lambda step: cell.copying(model),
            model.parameters(),
            n_steps=n_steps,
            lr=lambda step: rate_of(step + 1),
        )
        torch.manual_seed(1000 + plan.seed)
        losses, shares = [], []
        for n in LENGTHS:
            text = cell.twice(n, 200)
            with torch.no_grad():
                logits = model(text[:, :-1])[:, n:]
            losses.append(cross_entropy(logits.mT, text[:, n + 1 :]).item())
            right = logits.argmax(dim=-1) == text[:, n + 1 :]
            shares.append(right.float().mean().item())
        return {"loss": mean(losses), "right": mean(shares)}

    yield from one_for_each(make, plan, train)


def induction_arms() -> dict[str, Arm]:
    cells = of_the_copiers()
    cell = cells.names()
    rates, steps = (0.005, 0.01, 0.02, 0.04), (375, 750, 1500, 3000)
    kinds = {
        "one layer": (partial(cell.Copier, 1), rates, steps),
        "two layers": (partial(cell.Copier, 2), rates, steps),
        "four times as wide": (
            partial(cell.Copier, 1, 128, 8),
            (0.0025, 0.005, 0.01),
            (1500, 3000),
        ),
    }
    return {
        name: Arm(
            make=make,
            learn=partial(learn_to_copy, cell=cell),
            rates=rates,
            steps=steps,
            code=cells.code(ME),
            chapter=14,
        )
        for name, (make, rates, steps) in kinds.items()
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
    """As the chapter's BERT; with ``always_mask`` nothing but <mask> is put in."""
    generator = torch.Generator().manual_seed(seed)
    rate_of = linear_schedule(0.01, warmup=50, n_steps=n_steps)

    def loss_of(step: int) -> Tensor:
        drawn = torch.randint(len(cell.sentences), (64,), generator=generator)
        whole, n_words = pad([cell.sentences[i] for i in drawn]), cell.MASK + 1
        batch = mask_words(
            whole, vocab_size=n_words, mask_id=cell.MASK, share=0.4, generator=generator
        )
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
    """As the chapter's, without a limit to the gradient: 50 steps on all rows at once."""
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


def of_the_task() -> Cells:
    """The chapter's sentences, its BERT, and the task with few labels."""
    return chapter(14, "imports*", "gpt-text", "questions", "bert-model", "tune-data", "tune")


def new_bert(cell: SimpleNamespace) -> nn.Module:
    """As the chapter's, but with learned positions, which BERT has."""
    bert: nn.Module = cell.EncoderOnly(replace(cell.bert, position="learned"))
    return bert


def masking_arms() -> dict[str, Arm]:
    cells = of_the_task()
    cell = cells.names()
    return {
        name: Arm(
            make=partial(new_bert, cell),
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
