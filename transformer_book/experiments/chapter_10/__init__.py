"""Chapter 10: what wider beams, a length penalty and the dice make of one translator."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor, nn

from transformer import Transformer, TransformerConfig
from transformer.data.batches import make_batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.decoding import sample
from transformer.decoding.limits import Limits
from transformer.decoding.search import search_beams
from transformer_book.experiments.cells import code_of
from transformer_book.experiments.experiment import Arm, Experiment, Make, Plan
from transformer_book.experiments.imports import Import
from transformer_book.experiments.learning import one_for_each
from transformer_book.experiments.runs import Measures
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import train_translator

HERE, ME = Path(__file__).parent, "transformer_book.experiments.chapter_10"
WIDTHS, PENALTIES, MAX_LEN = (1, 2, 4, 8, 16, 32), (0.6, 2.0), 20
DRAWS, EXACT = 5, 20  # draws of each source; sources that are searched exactly
RATE = 0.005  # the rate of the book's translators, chapter 9
Found = tuple[float, list[int]]


def make() -> Transformer:
    config = TransformerConfig(
        len(corpus().english),
        len(corpus().french),
        d_model=64,
        n_heads=4,
        n_encoder_layers=2,
        n_decoder_layers=2,
        d_ff=128,
        dropout=0.0,
        norm="pre",
    )
    return Transformer(config)


def likeliest(model: Transformer, source: Tensor, best: Found) -> Found:
    """The sentence of the highest probability; ``best`` is a bound, or what has been found."""
    memory = model.encode(source[None])

    def go_on(words: list[int], log_p: float, best: Found) -> Found:
        if words[-1] == EOS_ID or len(words) > MAX_LEN:
            return log_p, words
        logits = model.decode(torch.tensor([words], device=source.device), memory)[0, -1]
        each = logits.log_softmax(dim=-1).sort(descending=True)
        for q, word in zip(each.values.tolist(), each.indices.tolist(), strict=True):
            if log_p + q <= best[0]:  # and so are all that follow
                break
            best = max(best, go_on([*words, word], log_p + q, best), key=lambda found: found[0])
        return best

    return go_on([BOS_ID], 0.0, best)


@torch.no_grad()
def measured(model: Transformer) -> Measures:
    """Of each width the share of right sentences, tokens and log-probability; and the rest."""
    device = next(model.parameters()).device
    test = make_batch(corpus().encode(corpus().test)).to(device)
    limits = Limits(BOS_ID, EOS_ID, MAX_LEN)
    found: Measures = {}

    def look(name: str, written: Tensor, times: int = 1) -> Tensor:
        labels = test.labels.repeat_interleave(times, dim=0)
        at = nn.functional.pad(written, (0, max(0, labels.size(1) - written.size(1))))
        wanted = nn.functional.pad(labels, (0, at.size(1) - labels.size(1)))
        n_tokens = (written != PAD_ID).sum(dim=-1).double()
        found[f"right {name}"] = (at == wanted).all(dim=-1).double().mean().item()
        found[f"tokens {name}"] = n_tokens.mean().item()
        return n_tokens

    for K in WIDTHS:
        written, log_p = search_beams(model, test.src, limits, beam_size=K).best()
        lengths = look(f"{K}", written)
        found[f"log_p {K}"] = log_p.mean().item()
        if K == 4:
            few, by_4 = lengths[:EXACT].mean().item(), log_p[:EXACT]
        for alpha in PENALTIES if K in (4, 16) else ():
            beams = search_beams(model, test.src, limits, beam_size=K)
            look(f"{K}, α = {alpha}", beams.best(alpha)[0])
    sources = [row[row != PAD_ID] for row in test.src[:EXACT]]
    bounds = (log_p[:EXACT] - 1e-3).tolist()  # at least what the widest search has found
    exact = [likeliest(model, s, (bound, [])) for s, bound in zip(sources, bounds, strict=True)]
    best = torch.tensor([log_p for log_p, _ in exact], device=device)
    found["missed by 4"] = (best > by_4 + 0.01).double().mean().item()
    found["missed by 32"] = (best > log_p[:EXACT] + 0.01).double().mean().item()
    found["tokens 4, of few"] = few
    found["tokens likeliest, of few"] = sum(len(words) - 1 for _, words in exact) / EXACT
    g = torch.Generator(device).manual_seed(0)
    many = test.src.repeat_interleave(DRAWS, dim=0)
    drawn = sample(model, many, bos_id=BOS_ID, eos_id=EOS_ID, max_len=MAX_LEN, generator=g)
    look("drawn", drawn, DRAWS)
    found["tokens of a reference"] = (test.labels != PAD_ID).sum().item() / len(test.labels)
    return found


def learn(make: Make, plan: Plan) -> Iterator[tuple[int, Measures]]:
    def train(model: nn.Module, n_steps: int) -> Measures:
        train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
        assert isinstance(model, Transformer)
        return measured(model.eval())

    yield from one_for_each(make, plan, train)


def arms() -> dict[str, Arm]:
    code = code_of([], [Import(ME)])
    short = Arm(make=make, learn=learn, rates=(RATE,), steps=(200,), code=code, chapter=10)
    return {
        "200 steps": short,
        "800 steps": replace(short, steps=(800,), seeds=(0, 1, 2)),
    }


beams = Experiment(
    path=HERE / "beams.json",
    question="What do wider beams, a penalty and the dice make of an unsure translator?",
    measure="right 4",
    scale=1.0,
    arms=arms,
    seeds=tuple(range(6)),
    widens=False,
    seconds=30.0,
)
