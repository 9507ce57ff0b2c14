"""Chapter 2: how far the gradient reaches; scores and equal weights; where a translator looks."""

from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import torch
from torch import Tensor, nn

from transformer.data.batches import make_batch
from transformer.data.grammar import function_words
from transformer.metrics import alignment_from_attention
from transformer.recurrent import AttentionSeq2Seq, Seq2Seq
from transformer_book.experiments import Arm, Make, Measures, Plan, chapter, experiment
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.experiment import learn
from transformer_book.experiments.translator.learning import N_STEPS, judge, train_translator, write
from transformer_book.experiments.translator.results import stored

TRANSLATORS = ("imports*", "translator-model*")


def page() -> SimpleNamespace:
    """The chapter's translators, and the sentences whose states it exchanges."""
    return chapter(2, *TRANSLATORS, "exchange-states").names()


# How much of the gradient reaches each word


def reach_of(model: Any, plan: Plan, n_steps: int) -> Measures:
    """How much of the gradient at target word 24 reaches each of 24 source words, untrained.

    What the chapter's cell ``reach`` measures, for whatever can encode words: of word 24 to word 1,
    and of the word with most to the word with least.
    """
    if not isinstance(model, Seq2Seq | AttentionSeq2Seq):
        raise ValueError(f"make must make a recurrent translator, got a {type(model).__name__}")
    src, tgt = torch.randint(4, 14, (2, 16, 24))  # no padding, no <eos>
    vectors = model.src_embedding(src).detach().requires_grad_()
    # the model asks its table for the words; a hook hands it these vectors instead
    hook = model.src_embedding.register_forward_hook(lambda *_: vectors)
    memory = model.encode(src)
    hook.remove()
    last = model.decode(tgt, memory)[:, -1]
    (gradient,) = torch.autograd.grad(last.gather(1, tgt[:, -1:]).sum(), vectors)
    by_word = gradient.norm(dim=-1).mean(dim=0)
    return {
        "last_over_first": (by_word[-1] / by_word[0]).item(),
        "most_over_least": (by_word.amax() / by_word.amin()).item(),
    }


@experiment(
    "Through a code, how much more gradient has the last of 24 words than the first?",
    measure="last_over_first",
    learn=reach_of,
    rates=(0.0,),
    steps=(0,),
    seeds=tuple(range(5)),
    widens=False,
)
def reach() -> dict[str, Make]:
    one, two = chapter(1, *TRANSLATORS).names(), page()
    return {
        "code": one.translator,
        "attention": two.translator,
        "equal weights": partial(two.translator, two.EqualWeights),
    }


# Scores and equal weights, trained on


@experiment(
    "How well do scores and equal weights translate, trained until little changes?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    learn=learn,
    rates=(0.0025, 0.005, 0.01, 0.02),
    steps=(500, 1000, 2000),
)
def scores() -> dict[str, Arm | Make]:
    cell = page()
    make = cell.translator

    def from_dot() -> nn.Module:  # the general score begins as the dot product
        model = make(score="general")
        nn.init.eye_(model.score.W.weight)
        return model

    return {
        "additive": make,
        "dot": partial(make, score="dot"),
        "general": partial(make, score="general"),
        "general, begun as dot": from_dot,
        "equal weights": partial(make, cell.EqualWeights),
        "only the best word": Arm(partial(make, cell.OnlyTheBest), steps=(2000,)),
    }


# Where a translator looks, and what these looks decide

PLACES = {"both": [0, 1], "the": [0], "noun": [1]}


@torch.no_grad()
def exchanged(model: AttentionSeq2Seq, cell: SimpleNamespace) -> Measures:
    """How many articles follow the states that are put into the memory, and where it looked."""
    is_la, weights = cell.is_la, model.attend(model.start(model.encode(cell.asked))).mean(dim=0)
    found = {"weight_the": weights[0].item(), "weight_noun": weights[1].item()}
    other, control = is_la[:, None] != is_la, []
    for name, places in PLACES.items():
        changed = (cell.says_la(model, places) != is_la[:, None]).float()
        found[name] = changed[other].mean().item()
        control.append(changed[~other].mean().item())
    return found | {"control": max(control)}


@torch.no_grad()
def aligned(model: AttentionSeq2Seq) -> Measures:
    """The share of linked words that look most at a partner; a row too late; off the diagonal.

    Of those that do not, the shares that look one or two words to the right and to the left; and
    to the right of those that are no articles or other words before a noun.
    """
    test = make_batch(corpus().encode(corpus().test))
    weights = model.alignment(*test.inputs)

    kinds = function_words.THE, function_words.A, *function_words.OTHERS
    before_nouns = {word for kind in kinds for word in kind.french} | {"l'"}

    def looks(weights: Tensor) -> Iterator[tuple[int, str, set[int], int]]:
        """Gives each linked target word's place, the word, its partners, where most weight lies."""
        predicted = alignment_from_attention(weights, src=test.src, tgt=test.tgt)
        for pair, found in zip(corpus().test, predicted, strict=True):
            for j, t in sorted(found):
                if partners := {i for i, target in pair.alignment if target == t}:
                    yield t, pair.target[t], partners, j

    def share(answers: Iterator[bool] | list[bool]) -> float:
        answers = list(answers)
        return sum(answers) / len(answers)

    missed = [(word, j, p) for _, word, p, j in looks(weights) if j not in p]
    return {
        "aligned": share(j in p for _, _, p, j in looks(weights)),
        "late": share(j in p for _, _, p, j in looks(weights.roll(-1, dims=1))),
        "off_diagonal": share(j in p for t, _, p, j in looks(weights) if t not in p),
        "missed_right": share(j - max(p) in (1, 2) for _, j, p in missed),
        "missed_left": share(min(p) - j in (1, 2) for _, j, p in missed),
        "others_right": share(
            j - max(p) in (1, 2) for word, j, p in missed if word not in before_nouns
        ),
    }


def kept_if_hard(model: AttentionSeq2Seq, cell: SimpleNamespace) -> float:
    """The share of the sentences that ``model`` translates rightly which stay right."""
    hard = cell.translator(cell.OnlyTheBest)
    hard.load_state_dict(model.state_dict())
    sources = [" ".join(pair.source) for pair in corpus().test]
    right = [corpus().french.decode(tgt) for _, tgt in corpus().encode(corpus().test)]
    soft_hard = zip(write(model, sources), write(hard, sources), right, strict=True)
    stays = [two == three for one, two, three in soft_hard if one == three]
    return sum(stays) / len(stays)


def learn_to_look(model: Any, plan: Plan, n_steps: int) -> Measures:
    """Whether it is right, what its looks decide, and where it looks."""
    cell = page()
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    found: Measures = {"exact": judge(model).exact, "kept": kept_if_hard(model, cell)}
    found |= exchanged(model, cell) | aligned(model)
    return {name: round(x, 4) for name, x in found.items() if x is not None}


@experiment(
    "Which states decide between le and la, and how often is the look at the partner?",
    measure="both",
    learn=learn_to_look,
    steps=(N_STEPS,),
    seeds=tuple(range(5)),
    widens=False,
)
def looks() -> dict[str, Arm]:
    rate = stored("attention at every word").lr
    return {"attention": Arm(page().translator, rates=(rate,))}
