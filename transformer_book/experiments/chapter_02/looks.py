"""Chapter 2: where a translator looks, and what these looks decide, from five starts."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import torch
from torch import Tensor

from transformer.data.batches import make_batch
from transformer.data.grammar import function_words
from transformer.metrics import alignment_from_attention
from transformer.recurrent import AttentionSeq2Seq
from transformer_book.experiments.cells import Cells, chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import N_STEPS, judge, write
from transformer_book.experiments.translator.results import stored

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_02.looks"
PLACES = {"both": [0, 1], "the": [0], "noun": [1]}


def cells() -> Cells:
    return chapter(2, "imports*", "translator-model*", "train-loop", "exchange-states")


@torch.no_grad()
def exchanged(model: AttentionSeq2Seq, page: SimpleNamespace) -> Measures:
    """How many articles follow the states that are put into the memory, and where it looked."""
    is_la, weights = page.is_la, model.attend(model.start(model.encode(page.asked))).mean(dim=0)
    found = {"weight_the": weights[0].item(), "weight_noun": weights[1].item()}
    other, control = is_la[:, None] != is_la, []
    for name, places in PLACES.items():
        changed = (page.says_la(model, places) != is_la[:, None]).float()
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
        """Of each linked target word: its place, the word, its partners, where most weight lies."""
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


def kept_if_hard(model: AttentionSeq2Seq, page: SimpleNamespace) -> float:
    """Of the sentences that ``model`` translates rightly, the share that stay so."""
    hard = page.translator(page.OnlyTheBest)
    hard.load_state_dict(model.state_dict())
    sources = [" ".join(pair.source) for pair in corpus().test]
    right = [corpus().french.decode(tgt) for _, tgt in corpus().encode(corpus().test)]
    soft_hard = zip(write(model, sources), write(hard, sources), right, strict=True)
    stays = [two == three for one, two, three in soft_hard if one == three]
    return sum(stays) / len(stays)


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """One training by the page's loop."""
    page = cells().names()
    model = page.train(make, plan.lr, plan.seed)
    found: Measures = {"exact": judge(model).exact, "kept": kept_if_hard(model, page)}
    found |= exchanged(model, page) | aligned(model)
    yield N_STEPS, {name: round(x, 4) for name, x in found.items() if x is not None}


def arms() -> dict[str, Arm]:
    return {
        "attention": Arm(
            make=cells().names().translator,
            learn=learn,
            rates=(stored("attention at every word").lr,),
            steps=(N_STEPS,),
            code=cells().code(ME),
            chapter=2,
        )
    }


looks = Experiment(
    path=HERE / "looks.json",
    question="Which states decide between le and la, and how often is the look at the partner?",
    measure="both",
    arms=arms,
    seeds=tuple(range(5)),
    widens=False,
    seconds=20.0,
)
