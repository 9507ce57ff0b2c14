"""Chapter 14: what attention copies by, what hides a word, and when a word agrees with another."""

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
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
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment

LENGTHS = range(5, 11)  # words that come twice, as in the chapter
N, ROWS = 8, 300  # words that are different in a text, and texts
Rows = tuple[Tensor, Tensor]  # tokens and labels

# What is asked again: induction heads


def copying_page() -> SimpleNamespace:
    """The chapter's models of attention alone, their task, and its training loop."""
    return chapter(14, "imports*", definitions=("train", "copier", "copier-batch")).names()


def learn_to_copy(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """The loss of what is asked in new texts, in nats, and what is right, means over all lengths.

    The chapter's training, but for its limit to the gradient, with which one layer learns slower.
    """
    cell = copying_page()
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


@experiment(
    "How well does one layer of attention copy, trained until it learns no more?",
    measure="loss",
    scale=math.log(24),
    lower_is_better=True,
    learn=learn_to_copy,
    rates=(0.005, 0.01, 0.02, 0.04),
    steps=(375, 750, 1500, 3000),
)
def induction() -> dict[str, Arm | Make]:
    Copier = copying_page().Copier
    wide = partial(Copier, 1, 128, 8)
    return {
        "one layer": partial(Copier, 1),
        "two layers": partial(Copier, 2),
        "four times as wide": Arm(wide, rates=(0.0025, 0.005, 0.01), steps=(1500, 3000)),
    }


# The same when a look is forbidden or a note is moved


def _closed(length: int, *looks: tuple[int, int]) -> Tensor:
    closed = torch.zeros(length, length, dtype=torch.bool)
    for row, column in looks:
        closed[row, column] = True
    return closed


def looks_closed(cell: SimpleNamespace, model: nn.Module) -> Measures:
    """The share of words that are copied, with a look closed for all words, or that beside it."""
    text = cell.twice(N, ROWS)
    back = torch.arange(2 * N - 1)[:, None] - torch.arange(2 * N - 1)
    free = torch.zeros_like(back, dtype=torch.bool)
    masks = {
        "free": (free, free),
        "no note": (back == 1, free),
        "no note, beside": (back == 2, free),
        "no look": (free, back == N - 1),
        "no look, beside": (free, back == N - 2),
    }
    found = {}
    for name, closed in masks.items():
        right = model(text[:, :-1], closed)[:, N:].argmax(dim=-1) == text[:, N + 1 :]
        found[name] = right.float().mean().item()
    return found


def one_again(cell: SimpleNamespace, model: nn.Module) -> Measures:
    """Measures of texts in which one of N words comes again, so that the answer is 1 to N - 1 back.

    "near" and "far": the share that is right up to 3 places back, and beyond. "moved": the share
    that copies another word instead, since that one has got the note. ``N // 2`` pairs are asked,
    as in the chapter's prompt, and both places of the note are among them.
    """
    words = cell.twice(N, ROWS)[:, :N]
    right: dict[int, list[bool]] = {}
    for row, place in zip(words, torch.arange(ROWS) % (N - 1), strict=True):
        told = model(torch.cat([row, row[place : place + 1]])[None])[0, -1].argmax()
        right.setdefault(N - 1 - int(place), []).append(bool(told == row[place + 1]))
    moved, free = [], _closed(N + 1)
    pairs = [(i, j) for i in range(0, N, 2) for j in range(i + 2, N, 2)]
    for number, row in enumerate(words):
        i, j = pairs[number % len(pairs)]  # the words that come first in two pairs
        others = [(j + 1, column) for column in range(j + 2) if column != i]
        closed = _closed(N + 1, (i + 1, i), *others), free
        told = model(torch.cat([row, row[i : i + 1]])[None], closed)[0, -1].argmax()
        moved.append(bool(told == row[j + 1]))
    near, far = (
        [hit for back, hits in right.items() if (back <= 3) == is_near for hit in hits]
        for is_near in (True, False)
    )
    shares = {"near": near, "far": far, "moved": moved}
    return {name: sum(hits) / len(hits) for name, hits in shares.items()}


def learn_and_forbid(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    """What the page's copier does with its looks."""
    cell = copying_page()
    cell.train(model, cell.copying, lr=plan.lr, n_steps=n_steps, warm_up=30)
    torch.manual_seed(1000 + plan.seed)
    with torch.no_grad():
        return looks_closed(cell, model) | one_again(cell, model)


@experiment(
    "By which looks do two layers of attention copy what followed a word last time?",
    measure="free",
    scale=math.log(24),
    learn=learn_and_forbid,
    rates=(0.02,),
    steps=(375,),
    seeds=tuple(range(5)),
    widens=False,
)
def looks_forbidden() -> dict[str, Make]:
    return {"two layers": partial(copying_page().Copier, 2)}


# A task with few labels; what stands in the place of a word that is asked for


def task_page() -> SimpleNamespace:
    """The chapter's sentences, its BERT, and the task with few labels."""
    cells = "gpt-text", "questions", "bert-model", "tune-data", "tune"
    return chapter(14, "imports*", *cells).names()


def new_bert() -> nn.Module:
    """The chapter's BERT, but with learned positions, which BERT has."""
    cell = task_page()
    return cell.EncoderOnly(replace(cell.bert, position="learned"))


def tuned_right(start: nn.Module, plan: Plan, n_steps: int) -> float:
    """The share that is right on the test, the mean over the three sets of 120 labels.

    Each set has a training of its own, all from the same ``start``. The rate is chosen by what is
    right in the sets that are not learnt from.
    """
    cell, shares = task_page(), []
    for i, few in enumerate(cell.few):
        others = [other for j, other in enumerate(cell.few) if j != i]
        asked = others if plan.sweep else [(cell.test_rows, cell.test_labels)]
        model = _tuned(start, plan, few, n_steps)
        with torch.no_grad():
            shares += [(model(x).argmax(dim=-1) == y).float().mean().item() for x, y in asked]
    return sum(shares) / len(shares)


def _tuned(start: nn.Module, plan: Plan, few: Rows, n_steps: int) -> nn.Module:
    """Tunes as the chapter does, without a limit to the gradient: all rows at once in each step."""
    torch.manual_seed(plan.seed)
    model, (tokens, labels) = task_page().Classifier(start), few
    rate_of = linear_schedule(plan.lr, warmup=5, n_steps=n_steps)  # which counts from 1
    minimise(
        lambda step: cross_entropy(model(tokens), labels),
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
    )
    return model


def learn_labels(model: nn.Module, plan: Plan, n_steps: int) -> Measures:
    return {"right": tuned_right(model, plan, n_steps)}


@experiment(
    "How well is a task of 120 labels learnt without pretraining?",
    measure="right",
    scale=1.0,
    learn=learn_labels,
    rates=(0.002, 0.006, 0.02),
    steps=(50, 200),
    seeds=tuple(range(5)),
)
def labels() -> dict[str, Make]:
    task_page()
    return {"from scratch": new_bert}


def learn_and_tune(
    model: nn.Module, plan: Plan, n_steps: int, *, always_mask: bool = False
) -> Measures:
    """Pretrained at the chapter's rate for so many steps; then tuned at the plan's, 50 steps.

    "loss": of the words asked for, in the last steps.
    """
    loss = _pretrain(model, plan.seed, n_steps, always_mask)
    return {"right": tuned_right(model, plan, 50), "loss": loss}


def _pretrain(model: nn.Module, seed: int, n_steps: int, always_mask: bool) -> float:
    """Trains as the chapter's BERT is; with ``always_mask`` nothing but <mask> is put in."""
    cell, generator = task_page(), torch.Generator().manual_seed(seed)
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


@experiment(
    "Is it better to hide eight in ten of the words asked for, or all of them?",
    measure="right",
    scale=1.0,
    learn=learn_and_tune,
    rates=(0.002, 0.006, 0.02),
    steps=(320, 1000, 2000),
    seeds=tuple(range(5)),
)
def masking() -> dict[str, Arm | Make]:
    task_page()
    return {
        "80 %, 10 %, 10 %": new_bert,
        "100 % <mask>": Arm(new_bert, learn=partial(learn_and_tune, always_mask=True)),
    }


# Number that another word tells, to a GPT before and to a BERT behind


def agree(
    model: nn.Module,
    plan: Plan,
    *,
    cell: SimpleNamespace,
    loss_of: Callable[[nn.Module], Tensor],
    agrees: Callable[[nn.Module], float],
) -> dict[int, Measures]:
    """The chapter's training, looked into on the way."""
    points: dict[int, Measures] = {}

    def look(step: int) -> None:
        if step in plan.steps:
            points[step] = {"right": agrees(model)}

    cell.train(model, loss_of, lr=plan.lr, n_steps=max(plan.steps), look=look)
    look(max(plan.steps))
    return points


@experiment(
    "When does a word come to agree with one that is not beside it?",
    measure="right",
    scale=1.0,
    widens=False,
)
def agreement() -> dict[str, Arm]:
    written = "gpt-text", "gpt-parts", "questions"
    filled = "bert-model", "your-turn-hide", "solution-your-turn-hide", "use-hide"
    defined = "train", "next-words", "agreement"
    gpt = chapter(14, "imports*", *written, definitions=defined).names()
    bert = chapter(14, "imports*", *written, *filled, definitions=("train", "gap")).names()
    return {
        "GPT: the verb after its noun": Arm(
            partial(gpt.DecoderOnly, gpt.gpt),
            curve=partial(agree, cell=gpt, loss_of=gpt.next_words, agrees=gpt.verb_agrees),
            rates=(0.008,),
            steps=(0, 100, 200, 400, 600),
        ),
        "BERT: the noun before its verb": Arm(
            partial(bert.EncoderOnly, bert.bert),
            curve=partial(agree, cell=bert, loss_of=bert.hidden_words, agrees=bert.gap_agrees),
            rates=(0.006,),
            steps=(0, 200, 400, 600, 800, 1000),
        ),
    }
