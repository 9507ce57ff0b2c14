"""What people get wrong, done on purpose to what is right; each flaw has its hint.

One that gives the reader's numbers is the reader's.
"""

import copy
import math
from collections.abc import Callable, Iterable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.embedding import Embedding
from transformer.layers import FeedForward, LayerNorm, Residual
from transformer.model import DecoderLayer, Encoder, EncoderLayer
from transformer.multihead import MultiHeadAttention
from transformer.positional import Start, sinusoidal_encoding
from transformer_book.exam.weights import SIZES

Change = Callable[[nn.Module], object]  # of the package's heads, layer or model
ALL = slice(None)


def flaw_of(
    books: Iterable[nn.Module], flaws: dict[str, Change], agrees: Callable[[nn.Module], bool]
) -> str:
    """The hint of the first of ``flaws`` that makes one of ``books`` agree.

    Returns "" if none does, or if a book agrees as it is: then a flaw changes nothing in it.
    """
    books = [*books]
    for book in books if not any(map(agrees, books)) else ():
        for hint, change in flaws.items():
            flawed = copy.deepcopy(book)
            change(flawed)
            if agrees(flawed):
                return f"Look at this: {hint}"
    return ""


def put(kind: type[nn.Module], name: str, instead: Callable, which: slice = ALL) -> Change:
    """Has ``instead(part, …)`` do what ``name`` does in those parts that are of this kind."""

    def change(module: nn.Module) -> None:
        parts = [part for part in module.modules() if isinstance(part, kind)]
        for part in parts[which]:
            setattr(part, name, partial(instead, part))

    return change


def _both(one: Change, other: Change) -> Change:
    return lambda module: (one(module), other(module))


def softly(
    scale: Callable[[int], float] = lambda d_k: d_k**-0.5,
    dim: int = -1,
    see: Callable[[Tensor], Tensor] = lambda mask: mask,
    after: bool = False,
    fill: float = -math.inf,
) -> Callable[..., Tensor]:
    """Attention with one thing done wrongly."""

    def wrong(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        scores = q @ k.mT * scale(q.size(-1))
        if mask is None:
            return scores.softmax(dim) @ v
        mask = see(mask)
        if after:
            return (scores.softmax(dim) * mask) @ v
        return scores.masked_fill(~mask, fill).softmax(dim) @ v

    return wrong


def _attend(attention: Callable[..., Tensor]) -> Change:
    return put(
        MultiHeadAttention, "attend", lambda heads, q, k, v, mask, bias: attention(q, k, v, mask)
    )


def _cut_into(n_heads: Callable[[MultiHeadAttention], int]) -> Change:
    def split(heads: MultiHeadAttention, x: Tensor) -> Tensor:
        return x.unflatten(-1, (n_heads(heads), -1)).transpose(1, 2)

    return put(MultiHeadAttention, "split", split)


SPLIT_BY_VIEW = put(
    MultiHeadAttention, "split", lambda heads, x: x.reshape(len(x), heads.n_heads, x.size(1), -1)
)
MERGED_BY_VIEW = put(MultiHeadAttention, "merge", lambda heads, x: x.reshape(len(x), x.size(2), -1))
HEADS: dict[str, Change] = {
    "the scores are not divided by √d_k (section 4.1)": _attend(softly(scale=lambda d_k: 1.0)),
    "divide by √d_k, where d_k is the width of one head, d_model / n_heads (section 5.2)": _attend(
        softly(scale=lambda d_k: SIZES["d_model"] ** -0.5)
    ),
    "divide by √d_k, not by d_k itself (section 4.1)": _attend(softly(scale=lambda d_k: 1 / d_k)),
    "the softmax runs over the queries; it should run over the keys (section 3.7)": _attend(
        softly(dim=-2)
    ),
    "softmax(dim=1) runs over the heads here; dim=-1 is the keys (section 3.7)": _attend(
        softly(dim=1)
    ),
    "this is one head as wide as the model; are the rows cut into heads? (section 5.2)": (
        _cut_into(lambda heads: 1)
    ),
    "these are d_model / n_heads heads; there should be n_heads of them (section 5.2)": (
        _cut_into(lambda heads: heads.d_k)
    ),
    "the rows are cut by a view straight to (B, n_heads, T, d_k), and view before transpose mixes "
    "places; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)": SPLIT_BY_VIEW,
    "view before transpose mixes places, here both where the rows are cut into heads and where "
    "they are put together; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)":
        _both(SPLIT_BY_VIEW, MERGED_BY_VIEW),
    "the heads are put back without their transpose; transpose(1, 2) comes before the reshape "
    "(section 5.4)": MERGED_BY_VIEW,
    "W_o is not used; it mixes what the heads say (section 5.2)": (
        put(nn.Linear, "forward", lambda W_o, rows: rows, which=slice(-1, None))
    ),
}  # fmt: skip

WHERE = {
    EncoderLayer: ("self-attention", "the feed-forward network"),
    DecoderLayer: ("self-attention", "the look at the memory", "the feed-forward network"),
}
SUMS: dict[str, Callable[[Residual, Tensor, Callable[[Tensor], Tensor]], Tensor]] = {
    "around {0} the plus sign is missing: x + … (section 7.2)": (
        lambda add, x, sublayer: sublayer(add.norm(x)) if add.pre else add.norm(sublayer(x))
    ),
    "at {0} you add the normed rows; add x as it came in (section 7.4)": (
        lambda add, x, sublayer: add.norm(x) + sublayer(add.norm(x))
    ),
    "at {0} the norm is taken of the answer; take it of the whole sum, or of what goes in "
    "(section 7.4)": lambda add, x, sublayer: x + add.norm(sublayer(x)),
    "at {0} the norm is made, but not used (section 7.3)": (
        lambda add, x, sublayer: x + sublayer(x)
    ),
    "at {0} the norm is taken of x before the sum, and the sub-layer does not get it "
    "(section 7.4)": lambda add, x, sublayer: add.norm(x) + sublayer(x),
}


def _norm(instead: Callable[[LayerNorm, Tensor], Tensor]) -> Change:
    return put(LayerNorm, "forward", instead)


def _norm_over(dim: int | tuple[int, ...], n_less: int = 0) -> Change:
    def forward(norm: LayerNorm, x: Tensor) -> Tensor:
        variance = x.var(dim, correction=n_less, keepdim=True)
        normed = (x - x.mean(dim, keepdim=True)) / (variance + norm.eps).sqrt()
        return normed * norm.weight + norm.bias

    return _norm(forward)


def _bend(activation: Callable[[Tensor], Tensor]) -> Change:
    return put(FeedForward, "activation", lambda network, x: activation(x))


ANYWHERE: dict[str, Change] = {
    "the norm runs over the places; take mean and variance over the features of each place, "
    "dim=-1 (section 7.3)": _norm_over(1),
    "the norm runs over places and features at once; take it for each place alone, dim=-1 "
    "(section 7.3)": _norm_over((1, 2)),
    "the variance divides by d_model - 1; in a LayerNorm it divides by d_model (section 7.3)": (
        _norm_over(-1, n_less=1)
    ),
    "the norm does not use its gain and its bias (section 7.3)": (
        _norm(lambda norm, x: F.layer_norm(x, x.shape[-1:]))
    ),
    "the norm does not take the mean away (section 7.3)": (
        _norm(lambda norm, x: F.rms_norm(x, x.shape[-1:], norm.weight) + norm.bias)
    ),
    "nothing bends between W_1 and W_2; ReLU belongs there (section 7.5)": _bend(lambda x: x),
    "GELU stands where the paper has ReLU (section 7.5)": _bend(F.gelu),
    "tanh stands where the paper has ReLU (section 7.5)": _bend(torch.tanh),
}


def layer_flaws(kind: type[EncoderLayer | DecoderLayer]) -> dict[str, Change]:
    """The flaws of a layer of this kind: those of its sums, of all or of one, and the others."""
    which = {"the sub-layers": ALL}
    which |= {name: slice(i, i + 1) for i, name in enumerate(WHERE[kind])}
    of_the_sums = {
        hint.format(name): put(Residual, "forward", instead, sums)
        for hint, instead in SUMS.items()
        for name, sums in which.items()
    }
    return of_the_sums | ANYWHERE


ROOT = math.sqrt(SIZES["d_model"])
SOURCE, TARGET = slice(0, 1), slice(1, 2)


def _embed(which: slice = ALL, *, rows: float = ROOT, positions: float = 1.0) -> Change:
    """Other factors of the rows, and of the positions, than √d_model and 1."""

    def forward(embedding: Embedding, ids: Tensor, start: Start = 0) -> Tensor:
        places = sinusoidal_encoding(ids.size(1), SIZES["d_model"])
        return rows * embedding.tokens(ids) + positions * places

    return put(Embedding, "forward", forward, which)


def _without_last_norm(stack: str) -> Change:
    return lambda model: setattr(getattr(model, stack), "norm", nn.Identity())


WORDS_FOR_MEMORY = put(Encoder, "forward", lambda encoder, x, mask: x)
MODEL: dict[str, Change] = {
    "the rows of the embeddings are not multiplied by √d_model (section 8.1)": _embed(rows=1.0),
    "the rows of the source are not multiplied by √d_model (section 8.1)": _embed(SOURCE, rows=1.0),
    "the rows of the target are not multiplied by √d_model (section 8.1)": _embed(TARGET, rows=1.0),
    "the rows are divided by √d_model; multiply (section 8.1)": _embed(rows=1 / ROOT),
    "the rows are multiplied by d_model; its root is enough (section 8.1)": _embed(rows=ROOT**2),
    "√d_model multiplies the positions, too; multiply the rows, then add (section 8.1)": (
        _embed(positions=ROOT)
    ),
    "the words of the source have no positions (section 6.1)": _embed(SOURCE, positions=0.0),
    "the words of the target have no positions (section 6.1)": _embed(TARGET, positions=0.0),
    "no word has its position (section 6.1)": _embed(positions=0.0),
    "the decoder looks at the embedded source; give it what the encoder made of it "
    "(section 8.3)": WORDS_FOR_MEMORY,
    "the encoder gets the bare rows of its words; √d_model and the positions are missing "
    "(section 8.1)": _embed(SOURCE, rows=1.0, positions=0.0),
    "the decoder gets the bare rows of its words; √d_model and the positions are missing "
    "(section 8.1)": _embed(TARGET, rows=1.0, positions=0.0),
    "the decoder looks at the bare rows of the source; give it what the encoder made of them "
    "(section 8.3)": _both(_embed(SOURCE, rows=1.0, positions=0.0), WORDS_FOR_MEMORY),
    "the last norm of the encoder is not used (section 7.4)": _without_last_norm("encoder"),
    "the last norm of the decoder is not used (section 7.4)": _without_last_norm("decoder"),
    "the last norms of both stacks are not used (section 7.4)": (
        _both(_without_last_norm("encoder"), _without_last_norm("decoder"))
    ),
}
