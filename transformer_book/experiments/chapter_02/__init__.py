"""Chapter 2: how much of the gradient reaches each word; scores and equal weights, trained on."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import nn

from transformer.recurrent import AttentionSeq2Seq, Seq2Seq
from transformer_book.experiments.cells import chapter
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.experiment import learn

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_02"
PATTERNS = ("imports*", "translator-model*")
RATES = (0.0025, 0.005, 0.01, 0.02)  # of the recurrent translators
STEPS = (500, 1000, 2000)


def reach_of(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    """How much of the gradient at target word 24 reaches each of 24 source words, untrained.

    What the chapter's cell ``reach`` measures, for whatever can encode words: of word 24 to word 1,
    and of the word with most to the word with least.
    """
    model = make()
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
    yield (
        0,
        {
            "last_over_first": (by_word[-1] / by_word[0]).item(),
            "most_over_least": (by_word.amax() / by_word.amin()).item(),
        },
    )


def reach_arms() -> dict[str, Arm]:
    first, second = chapter(1, *PATTERNS), chapter(2, *PATTERNS)
    one, two = first.names(), second.names()
    code = Arm(
        make=one.translator,
        learn=reach_of,
        rates=(0.0,),
        steps=(0,),
        code=first.code(ME),
        chapter=2,
    )
    look = replace(code, make=two.translator, code=second.code(ME))
    return {
        "code": code,
        "attention": look,
        "equal weights": replace(look, make=lambda: two.translator(two.EqualWeights)),
    }


def score_arms() -> dict[str, Arm]:
    cells = chapter(2, *PATTERNS)
    page, code = cells.names(), cells.code(ME)
    make = page.translator

    def from_dot() -> nn.Module:  # the general score begins as the dot product
        model = make(score="general")
        nn.init.eye_(model.score.W.weight)
        return model

    additive = Arm(make=make, learn=learn, rates=RATES, steps=STEPS, code=code, chapter=2)
    return {
        "additive": additive,
        "dot": replace(additive, make=lambda: make(score="dot")),
        "general": replace(additive, make=lambda: make(score="general")),
        "general, begun as dot": replace(additive, make=from_dot),
        "equal weights": replace(additive, make=lambda: make(page.EqualWeights)),
        "only the best word": replace(additive, make=lambda: make(page.OnlyTheBest), steps=(2000,)),
    }


reach = Experiment(
    path=HERE / "reach.json",
    question="Through a code, how much more gradient has the last of 24 words than the first?",
    measure="last_over_first",
    arms=reach_arms,
    seeds=tuple(range(5)),
    widens=False,
    seconds=0.1,
)
scores = Experiment(
    path=HERE / "scores.json",
    question="How well do scores and equal weights translate, trained until little changes?",
    measure="exact",
    scale=1.0,
    judged_by=("exact", "bleu"),
    arms=score_arms,
    seconds=100.0,
)
