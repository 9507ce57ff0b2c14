"""Chapter 18: many answers to one question, against one answer of a model of four times the size.

The task and the small model are those of section 18.2, the parity of ten bits, which may be written
with steps or said at once.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn.functional import pad

from transformer.decoding import sample
from transformer.family import DecoderOnly, FamilyConfig
from transformer.runtime import default_device
from transformer.training.objective import linear_schedule
from transformer_book import minimise
from transformer_book.experiments import Arm, Measures, Plan, experiment
from transformer_book.experiments.chapter_18.rewards import (
    ASK,
    END,
    N_BITS,
    SO,
    WITH_STEPS,
    WORDS,
    is_right,
    rewarded,
    text_loss,
    texts,
)

EVEN, BOTH = 3, 7  # the id of "even"; that of "even" and of "odd" together
LONGEST = N_BITS + 3  # words: steps, "so", the answer, "."
SMALL, LARGE = 32, 64  # channels; the large model multiplies four times as much a word
MOST = {SMALL: 32, LARGE: 8}  # answers to each question, equal arithmetic
OTHERS = (0.5, 1.5)  # temperatures beside 1, with eight answers
FEW = 8  # answers in a sweep, and at these temperatures
PRETRAINED = {SMALL: 0.006, LARGE: 0.003}  # rates, before rewards
ROUNDS = (0, 10, 20, 40)


def writer(width: int) -> DecoderOnly:
    """Section 18.2's model, of any width."""
    sizes = {"d_model": width, "n_heads": 4, "n_layers": 2, "d_ff": 86 * width // 32}
    config = FamilyConfig.modern(len(WORDS), max_len=3 * N_BITS, **sizes)
    return DecoderOnly(config).to(default_device())


def multiplications(width: int) -> int:
    """Multiplications with weights for each word read or written; attention has a tenth as many."""
    return 2 * (4 * width**2 + 3 * width * (86 * width // 32)) + len(WORDS) * width


def half_of_all(*, tuning: bool) -> tuple[Int[Tensor, "512 11"], Int[Tensor, "512 10"]]:
    """The half of the 1,024 questions to report on, or the other, and the parity after each bit.

    In either half every second answer is "even".
    """
    bits = (torch.arange(2**N_BITS)[:, None] >> torch.arange(N_BITS)) & 1
    bits = bits[torch.randperm(len(bits), generator=torch.Generator().manual_seed(0))]
    odd = bits.sum(dim=1) % 2 == 1
    half = torch.cat([rows[tuning::2] for rows in (bits[~odd], bits[odd])])
    asked = torch.cat([1 + half, torch.full((len(half), 1), ASK)], dim=1)
    return asked, EVEN + half.cumsum(dim=1) % 2


def is_sound(asked: Int[Tensor, "B 11"], written: Int[Tensor, "B 13"]) -> Bool[Tensor, " B"]:
    """Whether each step follows from the step before it and one bit, and the answer is the last.

    What says its answer at once has no steps, and is not sound.
    """
    steps, bits = written[:, :N_BITS] - EVEN, asked[:, :N_BITS] - 1
    before = pad(steps[:, :-1], (1, 0))
    follow = (steps == (before + bits) % 2).all(dim=1)
    return follow & (written[:, N_BITS] == SO) & (written[:, N_BITS + 1] == EVEN + steps[:, -1])


@dataclass(frozen=True)
class Tries:
    """Several texts for each question, and what each is."""

    right: Bool[Tensor, "questions tries"]
    wrong: Bool[Tensor, "questions tries"]  # the other answer; a text may have none
    stepped: Bool[Tensor, "questions tries"]
    sound: Bool[Tensor, "questions tries"]
    words: Int[Tensor, "questions tries"]

    def of(self, n: int) -> "Tries":
        """Returns the tries in groups of n: (questions · tries / n, n)."""
        return Tries(*(x.reshape(-1, n) for x in vars(self).values()))


@torch.no_grad()
def tries(
    model: DecoderOnly, asked: Tensor, parities: Tensor, n: int, *, temperature: float = 1.0
) -> Tries:
    """n texts for each question, each drawn for itself."""
    asked, parities = (
        x.repeat_interleave(n, dim=0).to(default_device()) for x in (asked, parities)
    )
    ends: dict[str, Any] = {"bos_id": ASK, "eos_id": END, "max_len": LONGEST}
    written = sample(model, asked[:, :-1], temperature=temperature, **ends)
    written = pad(written, (0, LONGEST - written.size(1)))
    found = (
        is_right(written, parities),
        is_right(written, BOTH - parities),
        written[:, 0] != SO,
        is_sound(asked, written),
        (written != 0).sum(dim=1),
    )
    return Tries(*(x.view(-1, n) for x in found))


def voted(right: Tensor, wrong: Tensor) -> Tensor:
    """For each row 1 where right answers are more than wrong ones, ½ where they are as many."""
    n_right, n_wrong = right.sum(dim=1), wrong.sum(dim=1)
    tie = (n_right == n_wrong) & (n_right > 0)
    return (n_right > n_wrong).float() + tie.float() / 2


def chosen(some: Tries) -> dict[str, Tensor]:
    """For each row how right the answer is that each way to choose takes from it.

    ``vote``: the most frequent answer. ``vote of steps``: of texts with steps, where there are any.
    ``checked``: one whose every step is sound, where there is one, else the vote.
    ``any``: whether one is right, which nobody can choose who doesn't know the answer.
    """
    vote = voted(some.right, some.wrong)
    answers = (some.right | some.wrong) & some.stepped
    stepped = voted(some.right & some.stepped, some.wrong & some.stepped)
    return {
        "vote": vote,
        "vote of steps": torch.where(answers.any(dim=1), stepped, vote),
        "checked": torch.where(some.sound.any(dim=1), (some.sound & some.right).any(dim=1), vote),
        "any": some.right.any(dim=1).float(),
    }


def asked_often(model: DecoderOnly, width: int, *, tuning: bool, fast: bool) -> Measures:
    """Shares of right answers, by way of choosing and number of tries; and what the texts are.

    ``misled``: of questions, the share whose wrong answer is the more frequent in all tries.
    """
    questions = half_of_all(tuning=tuning)
    torch.manual_seed(999)
    whole = tries(model, *questions, FEW if tuning else MOST[width])
    found: Measures = {
        "once": whole.right.float().mean().item(),
        "with steps": whole.stepped.float().mean().item(),
        "words": whole.words.float().mean().item(),
        "misled": (whole.wrong.sum(dim=1) > whole.right.sum(dim=1)).float().mean().item(),
    }
    for name, chosen_texts in (("steps right", whole.stepped), ("at once right", ~whole.stepped)):
        own = whole.right[chosen_texts]
        found[name] = own.float().mean().item() if len(own) else None
    n = 2
    while n <= whole.right.size(1):
        for name, right in chosen(whole.of(n)).items():
            found[f"{name} {n}"] = right.float().mean().item()
        n *= 2
    for temperature in () if fast or tuning else OTHERS:
        some = tries(model, *questions, FEW, temperature=temperature)
        found[f"once at {temperature}"] = some.right.float().mean().item()
        found[f"vote {FEW} at {temperature}"] = voted(some.right, some.wrong).mean().item()
    return {name: None if x is None else round(x, 4) for name, x in found.items()}


def hasty_texts(g: torch.Generator, n: int, share: float) -> Tensor:
    """The same texts, but what is said at once is a guess by the last bit: "odd" where it is 1."""
    rows = texts(g, n, share)
    at_once = rows[:, N_BITS + 1] == SO
    guess = EVEN + rows[:, N_BITS - 1] - 1
    rows[:, N_BITS + 2] = torch.where(at_once, guess, rows[:, N_BITS + 2])
    return rows


def pretrain(
    model: DecoderOnly, *, lr: float, seed: int, n_steps: int, share: float, hasty: bool = False
) -> None:
    """Trains as section 18.2 does, at any rate and for any number of batches of 64 texts."""
    g, draw = torch.Generator().manual_seed(seed), hasty_texts if hasty else texts
    rate_of = linear_schedule(lr, warmup=min(30, n_steps // 4), n_steps=n_steps)

    def loss_of(step: int) -> Tensor:
        return text_loss(model, draw(g, 64, share))

    minimise(loss_of, model.parameters(), n_steps=n_steps, lr=lambda i: rate_of(i + 1), clip_norm=1)


def learn_texts(
    model: Any, plan: Plan, n_steps: int, *, width: int, share: float, hasty: bool = False
) -> Measures:
    """What a model answers after so many batches of texts."""
    pretrain(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps, share=share, hasty=hasty)
    return asked_often(model, width, tuning=plan.sweep, fast=False)


def curve_of_rewards(model: Any, plan: Plan, *, width: int) -> dict[int, Measures]:
    """400 batches of texts, then the plan's rounds of rewards, as section 18.2 gives them."""
    pretrain(model, lr=PRETRAINED[width], seed=plan.seed, n_steps=400, share=WITH_STEPS)
    return {
        rounds: asked_often(model, width, tuning=plan.sweep, fast=True)
        for rounds, _ in rewarded(model, lr=plan.lr, seed=plan.seed, steps=plan.steps)
    }


@experiment(
    "What do many answers to one question buy, beside a model of four times the size?",
    measure="once",
    scale=1.0,
    seeds=tuple(range(5)),
    tuning_seeds=(100, 101),
    widens=False,
)
def thinking() -> dict[str, Arm]:
    def arm(width: int, rates: tuple[float, ...], n_steps: int, learn: Any, **other: Any) -> Arm:
        how = partial(learn, width=width)
        return Arm(partial(writer, width), learn=how, rates=rates, steps=(n_steps,), **other)

    def rewarded_arm(width: int, *rates: float) -> Arm:
        how = partial(curve_of_rewards, width=width)
        return Arm(partial(writer, width), curve=how, rates=rates, steps=ROUNDS)

    few, all_steps = (partial(learn_texts, share=share) for share in (WITH_STEPS, 1.0))
    slow, middle, fast = (0.003, 0.006, 0.012), (0.006, 0.012, 0.024), (0.012, 0.024, 0.048)
    ten = tuple(range(10))  # where each start comes to something else
    hasty = partial(learn_texts, share=WITH_STEPS, hasty=True)
    return {
        "small, few steps": arm(SMALL, slow, 400, few),
        "large, few steps": arm(LARGE, (0.0015, *slow), 400, few),
        "large, few steps, 100 batches": arm(LARGE, (*slow, 0.024), 100, few),
        "small, few steps, 100 batches": arm(SMALL, middle, 100, few),
        "small, rewarded": rewarded_arm(SMALL, 0.001),
        "large, rewarded": rewarded_arm(LARGE, 0.0005, 0.001),
        "small, all steps, 60 batches": arm(SMALL, (0.006, *fast), 60, all_steps),
        "small, all steps, 80 batches": arm(SMALL, fast, 80, all_steps, seeds=ten),
        "small, all steps, 100 batches": arm(SMALL, fast, 100, all_steps),
        "large, all steps, 80 batches": arm(LARGE, middle, 80, all_steps, seeds=ten),
        "large, all steps, 20 batches": arm(LARGE, middle, 20, all_steps),
        "small, hasty": arm(SMALL, (PRETRAINED[SMALL],), 400, hasty),
        "large, hasty": arm(LARGE, (PRETRAINED[LARGE],), 400, hasty),
    }
