"""Chapter 18: a small translator taught by sentences, or by what a large one thinks of them.

The large one is chapter 9's, which has read 26,000 pairs of sentences. The small one has a fifth of
its parameters, and but where an arm says otherwise, 2,000 of these pairs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import cross_entropy

from transformer import Transformer
from transformer.data.batches import Batch, make_batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, Example
from transformer.decoding import greedy_decode
from transformer.runtime import default_device
from transformer_book.experiments import Arm, Measures, Plan, experiment
from transformer_book.experiments.translator import trained
from transformer_book.experiments.translator.data import MAX_LEN, corpus
from transformer_book.experiments.translator.learning import judge, next_word_loss, train_translator
from transformer_book.experiments.translator.teaching import new_translator, pairs_of

FEW, STEPS, LONGER = 2000, 800, 2400
N_TEACHERS = 10  # that chapter 9 has stored; each seed has its own
RATES = (0.005, 0.01, 0.02, 0.04)
TEACHERS_RATE = 0.005  # chapter 9's, for a teacher that has read no more than its pupil


@dataclass(frozen=True)
class Lesson:
    """What a pupil learns from: ``pairs`` of sentences, the first so many.

    With ``translated`` the French is the teacher's. With a ``temperature`` it learns from the
    teacher's distributions, mixed with the sentences' own words by ``soft`` to one; ``evened``, all
    words but the right one share what the teacher leaves them. ``equal``: the teacher has read no
    more than these pairs.
    """

    pairs: int = FEW
    temperature: float | None = None
    soft: float = 1.0
    evened: bool = False
    translated: bool = False
    equal: bool = False


def small(width: int = 32) -> Transformer:
    """A block on either side."""
    layers = {"n_encoder_layers": 1, "n_decoder_layers": 1}
    return new_translator(d_model=width, n_heads=2, d_ff=2 * width, max_len=2 * MAX_LEN, **layers)


def evened_out(p: Float[Tensor, "N vocab"], labels: Int[Tensor, " N"]) -> Float[Tensor, "N vocab"]:
    """The label keeps its probability, and all other words have the rest in equal parts."""
    right = p.gather(1, labels[:, None])
    return ((1 - right) / (p.size(1) - 1)).expand_as(p).scatter(1, labels[:, None], right)


def soft_loss(
    logits: Float[Tensor, "N vocab"], target: Float[Tensor, "N vocab"], temperature: float
) -> Tensor:
    """Against the distributions ``target``, in nats; Hinton et al. (2015), section 2.

    Its gradient is smaller by about τ², which the factor makes up for.
    """
    return temperature**2 * cross_entropy(logits / temperature, target)


def teach(
    model: Transformer,
    examples: Sequence[Example],
    *,
    lr: float,
    seed: int,
    n_steps: int,
    teacher: Transformer | None = None,
    lesson: Lesson | None = None,
) -> Transformer:
    """Trained as the book's translators are; with a teacher, by what it says of each next word."""
    lesson = lesson or Lesson()

    def loss(logits: Tensor, batch: Batch) -> Tensor:
        hard = next_word_loss(logits, batch)
        if teacher is None or lesson.temperature is None:
            return hard
        real = batch.labels != PAD_ID
        with torch.no_grad():
            target = (teacher(*batch.inputs)[real] / lesson.temperature).softmax(dim=-1)
        target = evened_out(target, batch.labels[real]) if lesson.evened else target
        soft = soft_loss(logits[real], target, lesson.temperature)
        return lesson.soft * soft + (1 - lesson.soft) * hard

    model.to(default_device())
    train_translator(model, lr=lr, seed=seed, n_steps=n_steps, examples=examples, loss=loss)
    return model.eval()


@torch.no_grad()
def translated(teacher: Transformer, examples: Sequence[Example]) -> list[Example]:
    """The same sources, with what the teacher writes, the likeliest word at each step."""
    found: list[Example] = []
    for i in range(0, len(examples), 500):
        some = examples[i : i + 500]
        src = make_batch(some).src.to(default_device())
        written = greedy_decode(teacher, src, bos_id=BOS_ID, eos_id=EOS_ID, max_len=MAX_LEN)
        for (source, _), row in zip(some, written.tolist(), strict=True):
            found.append((source, [BOS_ID, *(word for word in row if word != PAD_ID)]))
    return found


@cache
def teacher_of(seed: int, pairs: int | None) -> Transformer:
    """Chapter 9's from this seed, or one of its size that has read so many pairs."""
    if pairs is None:
        return trained(seed % N_TEACHERS)
    torch.manual_seed(seed)
    known = corpus().examples[:pairs]
    return teach(new_translator(), known, lr=TEACHERS_RATE, seed=seed, n_steps=STEPS)


@cache
def lessons_of(seed: int, pairs: int) -> list[Example]:
    return translated(teacher_of(seed, None), corpus().examples[:pairs])


def learn(model: Any, plan: Plan, n_steps: int, *, lesson: Lesson) -> Measures:
    """Shares of sentences without a fault, of the pupil's and of its teacher's; BLEU."""
    soft = lesson.temperature is not None
    teacher = teacher_of(plan.seed, lesson.pairs if lesson.equal else None) if soft else None
    known = corpus().examples[: lesson.pairs]
    examples = lessons_of(plan.seed, lesson.pairs) if lesson.translated else known
    how: dict[str, Any] = {"lr": plan.lr, "seed": plan.seed, "n_steps": n_steps}
    teach(model, examples, teacher=teacher, lesson=lesson, **how)
    scores = judge(model, pairs_of(plan))
    found: Measures = {"exact": round(scores.exact, 4), "bleu": round(scores.bleu, 2)}
    if teacher and not plan.sweep:
        found["teacher"] = round(judge(teacher).exact, 4)
    if lesson.translated:
        both = zip(examples, known, strict=True)
        found["as the data"] = round(sum(a == b for a, b in both) / len(known), 4)
    return found


def arm(lesson: Lesson, *, width: int = 32, **plan: Any) -> Arm:
    """A pupil with this lesson."""
    return Arm(partial(small, width), learn=partial(learn, lesson=lesson), **plan)


@experiment(
    "What does a small translator learn from a large one that the data don't tell it?",
    measure="exact",
    scale=1.0,
    rates=RATES,
    steps=(STEPS,),
    seeds=tuple(range(5)),
    widens=False,
)
def distilling() -> dict[str, Arm]:
    alone, all_pairs, four = Lesson(), len(corpus().train), partial(Lesson, temperature=4.0)
    longer: dict[str, Any] = {"steps": (LONGER,), "rates": RATES[:3], "seeds": (0, 1, 2)}
    return {
        "data": arm(alone),
        "τ = 1": arm(Lesson(temperature=1.0)),
        "τ = 2": arm(Lesson(temperature=2.0)),
        "τ = 4": arm(four()),
        "τ = 8": arm(Lesson(temperature=8.0)),
        "τ = 4, half data": arm(four(soft=0.5)),
        "τ = 4, evened": arm(four(evened=True)),
        "τ = 2, evened": arm(Lesson(temperature=2.0, evened=True)),
        "τ = 4, equal teacher": arm(four(equal=True)),
        "translations": arm(Lesson(translated=True), rates=RATES[1:2]),
        "all English translated": arm(Lesson(pairs=all_pairs, translated=True)),
        "all data": arm(Lesson(pairs=all_pairs)),
        "all data, τ = 4": arm(four(pairs=all_pairs)),
        "data, 2,400 steps": arm(alone, **longer),
        "τ = 4, 2,400 steps": arm(four(), **longer),
        "data, width 16": arm(alone, width=16),
        "τ = 4, width 16": arm(four(), width=16),
    }
