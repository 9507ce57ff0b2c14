"""Chapter 10: what wider beams, a length penalty and the dice make of one translator."""

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from transformer import Transformer
from transformer.data.batches import Batch, make_batch
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer.decoding import sample
from transformer.decoding.limits import Limits
from transformer.decoding.search import search_beams
from transformer_book.experiments import Arm, Make, Measures, Plan, experiment
from transformer_book.experiments.translator import trained
from transformer_book.experiments.translator.data import corpus
from transformer_book.experiments.translator.learning import train_translator
from transformer_book.experiments.translator.teaching import new_translator

WIDTHS, PENALTIES, MAX_LEN = (1, 2, 4, 8, 16, 32), (0.6, 2.0), 20
DRAWS, EXACT = 5, 20  # draws of each source; sources that are searched exactly
CHANCES: dict[str, dict[str, Any]] = {
    "τ = 0.1": {"temperature": 0.1},
    "τ = 0.5": {"temperature": 0.5},
    "τ = 1": {},
    "top-p 0.5": {"top_p": 0.5},
}
PLACES = 9  # the first words of a sentence, of which each is read and written
Found = tuple[float, list[int]]


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


def as_long_as(written: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Returns both with padding to the length of the longer."""
    length = max(written.size(1), labels.size(1))
    at, wanted = (nn.functional.pad(x, (0, length - x.size(1))) for x in (written, labels))
    return at, wanted


def of_searching(model: Transformer, test: Batch) -> Measures:
    """The share of right sentences, tokens and log-probability, by width and penalty.

    And, of what 16 beams have wrong, the share that the model finds likelier than the reference. A
    search goes on while an unfinished sentence could still win. "K ended" is one that stops at K.
    """
    limits = Limits(BOS_ID, EOS_ID, MAX_LEN)
    found: Measures = {}

    def look(name: str, written: Tensor) -> Tensor:
        at, wanted = as_long_as(written, test.labels)
        right = (at == wanted).all(dim=-1)
        found[f"right {name}"] = right.double().mean().item()
        found[f"tokens {name}"] = (written != PAD_ID).sum(dim=-1).double().mean().item()
        return right

    def beside_greedy(name: str, greedy: Tensor, *, alpha: float, early: bool) -> None:
        rows: list[int] = []  # of each step, which reads one word of each beam
        with model.tgt_embedding.register_forward_hook(lambda *given: rows.append(len(given[2]))):
            right = look(name, search(4, alpha, early)[0])
        found[f"lost {name}"] = (greedy & ~right).sum().item()
        found[f"gained {name}"] = (right & ~greedy).sum().item()
        found[f"steps {name}"] = sum(rows) / 4 / len(test.labels)

    def search(K: int, alpha: float = 0.0, early: bool = False) -> tuple[Tensor, Tensor]:
        how: dict[str, Any] = {"length_penalty": alpha, "early_stopping": early}
        return search_beams(model, test.src, limits, beam_size=K, **how).best()

    log_p = model(*test.inputs).log_softmax(dim=-1).gather(2, test.labels[..., None])[..., 0]
    of_reference = log_p.masked_fill(test.labels == PAD_ID, 0.0).sum(dim=-1)
    right = {}
    for K in WIDTHS:
        written, log_p = search(K)
        right[K] = look(f"{K}", written)
        found[f"log_p {K}"] = log_p.mean().item()
        if K == 16:
            found["prefers its error"] = (log_p > of_reference)[~right[K]].double().mean().item()
            look("16, K ended", search(16, early=True)[0])
            for alpha in PENALTIES:
                look(f"16, α = {alpha}", search(K, alpha)[0])
    for alpha in (0.0, *PENALTIES):
        name = f"4, α = {alpha}"
        beside_greedy(name, right[1], alpha=alpha, early=False)
        beside_greedy(f"{name}, K ended", right[1], alpha=alpha, early=True)
    found["tokens of a reference"] = (test.labels != PAD_ID).sum().item() / len(test.labels)
    return found


def of_exact_search(model: Transformer, test: Batch) -> Measures:
    """Measures of a few sentences: the likeliest's length, and how often 4 and 32 beams miss it."""
    src, limits = test.src[:EXACT], Limits(BOS_ID, EOS_ID, MAX_LEN)
    (by_4, log_p_4), (_, log_p_32) = (
        search_beams(model, src, limits, beam_size=K).best() for K in (4, 32)
    )
    sources = [row[row != PAD_ID] for row in src]
    bounds = (log_p_32 - 1e-3).tolist()  # at least what the widest search has found
    exact = [likeliest(model, s, (bound, [])) for s, bound in zip(sources, bounds, strict=True)]
    best = torch.tensor([log_p for log_p, _ in exact], device=src.device)
    return {
        "missed by 4": (best > log_p_4 + 0.01).double().mean().item(),
        "missed by 32": (best > log_p_32 + 0.01).double().mean().item(),
        "tokens 4, of few": (by_4 != PAD_ID).sum().item() / EXACT,
        "tokens likeliest, of few": sum(len(words) - 1 for _, words in exact) / EXACT,
    }


def of_drawing(model: Transformer, test: Batch) -> Measures:
    """What five draws of each source give: how many differ, how many are right, whether any is."""
    found: Measures = {}
    many = test.src.repeat_interleave(DRAWS, dim=0)
    labels = test.labels.repeat_interleave(DRAWS, dim=0)
    for name, options in CHANCES.items():
        g = torch.Generator(test.src.device).manual_seed(0)
        ends: dict[str, Any] = {"bos_id": BOS_ID, "eos_id": EOS_ID, "max_len": MAX_LEN}
        written = sample(model, many, **ends, generator=g, **options)
        at, wanted = as_long_as(written, labels)
        right = (at == wanted).all(dim=-1).view(-1, DRAWS)
        rows = [tuple(row) for row in written.tolist()]
        groups = [rows[i : i + DRAWS] for i in range(0, len(rows), DRAWS)]
        found[f"different {name}"] = sum(len(set(group)) for group in groups) / len(rows)
        found[f"right {name}"] = right.double().mean().item()
        found[f"any right {name}"] = right.any(dim=1).double().mean().item()
        found[f"tokens {name}"] = (written != PAD_ID).sum().item() / len(rows)
    return found


def of_its_own_words(model: Transformer, test: Batch) -> Measures:
    """How often a word is right, given the true words (forced) or the model's own (free).

    At each place; and right after the first error of a sentence.
    """
    forced = model(*test.inputs).argmax(dim=-1) == test.labels
    limits = Limits(BOS_ID, EOS_ID, MAX_LEN)
    at, _ = as_long_as(search_beams(model, test.src, limits, beam_size=1).best()[0], test.labels)
    free, real = at[:, : test.labels.size(1)] == test.labels, test.labels != PAD_ID
    found: Measures = {}
    for t in range(PLACES):
        found[f"forced {t + 1}"] = forced[:, t][real[:, t]].double().mean().item()
        found[f"free {t + 1}"] = free[:, t][real[:, t]].double().mean().item()
    before = ((~forced & real).cumsum(dim=1) == 1) & ~forced & real  # the first error
    after = before.roll(1, dims=1) & real
    after[:, 0] = False
    found["forced after an error"] = forced[after].double().mean().item()
    found["free after an error"] = free[after].double().mean().item()
    return found


@torch.no_grad()
def measured(model: Transformer, *, exact: bool) -> Measures:
    """What searching, drawing and its own words make of a translator, on the book's test."""
    device = next(model.parameters()).device
    test = make_batch(corpus().encode(corpus().test)).to(device)
    parts = [of_searching, of_drawing, of_its_own_words, *([of_exact_search] if exact else [])]
    return {name: x for part in parts for name, x in part(model, test).items()}


def learn(model: Transformer, plan: Plan, n_steps: int, *, exact: bool = False) -> Measures:
    """What is measured of a translator after its training."""
    train_translator(model, lr=plan.lr, seed=plan.seed, n_steps=n_steps)
    return measured(model.eval(), exact=exact)


def of_chapter_9(model: Transformer, plan: Plan, n_steps: int) -> Measures:
    """What is measured of the stored translators of chapter 9, which are trained already."""
    return measured(trained(plan.seed), exact=False)


@experiment(
    "What do wider beams, a penalty and the dice make of an unsure translator?",
    measure="right 4",
    scale=1.0,
    learn=learn,
    rates=(0.005,),  # that of the book's translators, chapter 9
    steps=(200,),
    widens=False,
)
def beams() -> dict[str, Arm | Make]:
    of_200 = partial(learn, exact=True)
    return {
        "200 steps": Arm(new_translator, learn=of_200, seeds=tuple(range(6))),
        "400 steps": Arm(new_translator, steps=(400,)),
        "800 steps": Arm(new_translator, steps=(800,)),
        "2,000 steps": Arm(
            new_translator, learn=of_chapter_9, steps=(2000,), seeds=tuple(range(10))
        ),
        "100 steps": Arm(new_translator, steps=(100,)),
        "200 steps, rate 0.002": Arm(new_translator, rates=(0.002,)),
        "200 steps, post-LN": partial(new_translator, norm="post"),
    }
