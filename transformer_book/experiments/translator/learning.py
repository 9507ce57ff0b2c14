"""One training and one test for every stage of the translator."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import Batch, BucketedBatches, pad
from transformer.data.grammar import AlignedPair
from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID, UNK_ID, Example
from transformer.decoding import greedy_decode
from transformer.decoding.protocol import Decodable
from transformer.metrics import bleu, exact_match
from transformer.training.objective import linear_schedule
from transformer_book.descent import minimise
from transformer_book.experiments.translator.data import MAX_LEN, corpus

LONG = 8  # words of a source that counts as long
N_STEPS = 800  # the same for every translator of the book, but where a name says otherwise


@dataclass(frozen=True)
class Judged:
    """How well a translator does on sentences that it has not learnt from.

    Shares between 0 and 1, but for ``bleu``, which goes to 100. ``exact``: translated without a
    fault; ``exact_long``: of the sources of eight words and more. Of the mirrored pairs,
    ``both_right``: both sentences without a fault; ``same_for_both``: the same French for both.
    """

    exact: float
    exact_long: float
    bleu: float
    both_right: float
    same_for_both: float


def next_word_loss(logits: Float[Tensor, "B T vocab"], batch: Batch) -> Tensor:
    """The loss in nats a word, padding left out."""
    return cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD_ID)


def train_translator(
    model: nn.Module,
    *,
    lr: float,
    seed: int,
    n_steps: int = N_STEPS,
    examples: Sequence[Example] | None = None,
    loss: Callable[[Tensor, Batch], Tensor] = next_word_loss,
) -> list[float]:
    """Teaches ``model(src, tgt) -> logits`` the corpus; returns the loss of each step, in nats.

    Adam on batches of 32 sentences of similar length. The rate rises to ``lr`` in 50 steps and
    falls to zero in a straight line; gradients longer than 1 are cut to 1. Chapter 9 has the
    reasons. The model stays where it is, by default on the CPU: so small a model makes a GPU wait
    for Python most of the time. ``examples`` and ``loss(logits, batch)`` may be others.

    Raises ValueError for an ``lr`` that is not positive and fewer than 50 steps.
    """
    device = next(model.parameters()).device
    rate_of = linear_schedule(lr, warmup=50, n_steps=n_steps)  # which counts from 1
    batches = BucketedBatches(
        corpus().examples if examples is None else examples, batch_size=32, seed=seed
    )
    model.train()

    def loss_of(step: int) -> Tensor:
        batch = batches(step).to(device)
        return loss(model(*batch.inputs), batch)

    return minimise(
        loss_of,
        model.parameters(),
        n_steps=n_steps,
        lr=lambda step: rate_of(step + 1),
        clip_norm=1.0,
    )


def judge(model: nn.Module, pairs: Sequence[AlignedPair] | None = None) -> Judged:
    """How well ``model`` translates ``pairs``, by default the corpus's test, and its mirrored ones.

    At each step it writes the likeliest word. All it needs is ``model(src, tgt)``, which returns
    the logits of the word after each of ``tgt``. The same goes faster with what is
    :class:`~transformer.decoding.protocol.Decodable`. All sources are padded to the longest one,
    which a model without a padding mask can tell.

    Raises ValueError if no source of ``pairs`` is long.
    """
    pairs = corpus().test if pairs is None else pairs
    is_long = [len(pair.source) >= LONG for pair in pairs]
    if not any(is_long):
        raise ValueError(f"pairs must hold a source of {LONG} words or more, got none")
    written, right = _attempt(model, pairs)
    (one, one_right), (other, other_right) = (
        _attempt(model, side) for side in zip(*corpus().mirrored, strict=True)
    )
    return Judged(
        exact=_share(right),
        exact_long=_share([r for r, long in zip(right, is_long, strict=True) if long]),
        bleu=bleu(
            hypotheses=[corpus().french.decode(ids) for ids in written],
            references=[" ".join(pair.target) for pair in pairs],
            tokenize="none",
        ).score,
        both_right=_share([a and b for a, b in zip(one_right, other_right, strict=True)]),
        same_for_both=_share([a == b for a, b in zip(one, other, strict=True)]),
    )


def write(model: nn.Module, sentences: Sequence[str]) -> list[str]:
    """The French that ``model`` writes for English sentences, the likeliest word at each step.

    Raises ValueError for a single str, and for a word that the grammar does not have.
    """
    if isinstance(sentences, str):
        raise ValueError(f"sentences must be a list of sentences, got the str {sentences!r:.60}")
    english, french = corpus().english, corpus().french
    sources = []
    for sentence in sentences:
        ids = english.encode(sentence)
        if UNK_ID in ids:
            word = sentence.split()[ids.index(UNK_ID)]
            raise ValueError(f"sentences must be of the grammar's words, got {word!r}")
        sources.append([*ids, EOS_ID])
    return [french.decode(ids) for ids in _written(model, pad(sources))]


def _attempt(model: nn.Module, pairs: Sequence[AlignedPair]) -> tuple[list[list[int]], list[bool]]:
    """What ``model`` writes for each source, as ids, and whether that is the target."""
    sources, targets = zip(*corpus().encode(pairs), strict=True)
    written = _written(model, pad(sources))
    both = zip(written, targets, strict=True)
    return written, [exact_match([ids], [target]) == 1 for ids, target in both]


def _share(answers: Sequence[bool]) -> float:
    return sum(answers) / len(answers)


def _written(model: nn.Module, src: Int[Tensor, "B S"]) -> list[list[int]]:
    """The ids that ``model`` writes for each source, up to its <eos>, without the padding."""
    decodable = model if isinstance(model, Decodable) else _Called(model)
    device = next((p.device for p in model.parameters()), torch.device("cpu"))
    tokens = greedy_decode(decodable, src.to(device), bos_id=BOS_ID, eos_id=EOS_ID, max_len=MAX_LEN)
    return [[i for i in row if i != PAD_ID] for row in tokens.tolist()]


@dataclass
class _Source:
    """The memory of a model that has none: the source itself, which is read anew each time."""

    src: Int[Tensor, "B S"]

    def select(self, rows: Int[Tensor, " N"]) -> "_Source":
        return _Source(self.src[rows])


class _Called(nn.Module):
    """A ``Decodable`` of a model that has ``model(src, tgt)`` alone."""

    pad_id, max_len, takes_cache = PAD_ID, MAX_LEN, False

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model = model

    @property
    def tgt_vocab_size(self) -> int:
        return len(corpus().french)

    def encode(self, src: Int[Tensor, "B S"]) -> _Source:
        return _Source(src)

    def decode(self, tgt: Int[Tensor, "B T"], memory: _Source) -> Float[Tensor, "B T vocab"]:
        return self.model(memory.src, tgt)

    def start_decoding(self, src: Int[Tensor, "B S"], *, max_len: int) -> NoReturn:
        raise NotImplementedError("a model that can only be called has no cache")

    def decode_next(self, tokens: Int[Tensor, " B"], state: Any) -> NoReturn:
        raise NotImplementedError("a model that can only be called has no cache")
