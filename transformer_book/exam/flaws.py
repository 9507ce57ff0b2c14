"""What people get wrong, done on purpose to what is right; each flaw has its hint.

One that gives the reader's numbers is the reader's.
"""

import copy
import math
from collections.abc import Callable, Iterable
from functools import partial

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


def _attend_with(scale: float) -> Change:
    """Attention whose scores are multiplied by ``scale`` and not divided by the root of d_k."""

    def attend(heads: MultiHeadAttention, q, k, v, mask, bias) -> Tensor:
        scores = q @ k.mT * scale
        scores = scores if mask is None else scores.masked_fill(~mask, -math.inf)
        return scores.softmax(-1) @ v

    return put(MultiHeadAttention, "attend", attend)


SPLIT_BY_VIEW = put(
    MultiHeadAttention, "split", lambda heads, x: x.reshape(len(x), heads.n_heads, x.size(1), -1)
)
MERGED_BY_VIEW = put(MultiHeadAttention, "merge", lambda heads, x: x.reshape(len(x), x.size(2), -1))
HEADS: dict[str, Change] = {
    "the scores are not divided by √d_k (section 4.1)": _attend_with(1.0),
    "divide by √d_k, where d_k is the width of one head, d_model / n_heads (section 5.2)": (
        _attend_with(SIZES["d_model"] ** -0.5)
    ),
    "this is one head as wide as the model; are the rows cut into heads? (section 5.2)": (
        put(MultiHeadAttention, "split", lambda heads, x: x[:, None])
    ),
    "the rows are cut by a view straight to (B, n_heads, T, d_k), and view before transpose mixes "
    "places; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)": SPLIT_BY_VIEW,
    "view before transpose mixes places, here both where the rows are cut into heads and where "
    "they are put together; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)":
        lambda heads: (SPLIT_BY_VIEW(heads), MERGED_BY_VIEW(heads)),
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
}


def _unbiased_norm(norm: LayerNorm, x: Tensor) -> Tensor:
    normed = (x - x.mean(-1, keepdim=True)) / (x.var(-1, keepdim=True) + norm.eps).sqrt()
    return normed * norm.weight + norm.bias


ANYWHERE: dict[str, Change] = {
    "the variance divides by d_model - 1; in a LayerNorm it divides by d_model (section 7.3)": (
        put(LayerNorm, "forward", _unbiased_norm)
    ),
    "nothing bends between W_1 and W_2; ReLU belongs there (section 7.5)": (
        put(FeedForward, "activation", lambda network, x: x)
    ),
    "GELU stands where the paper has ReLU (section 7.5)": (
        put(FeedForward, "activation", lambda network, x: F.gelu(x))
    ),
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


def _embed(rows: float, positions: float) -> Change:
    """Multiplies the rows and the positions by other factors than √d_model and 1."""

    def forward(embedding: Embedding, ids: Tensor, start: Start = 0) -> Tensor:
        places = sinusoidal_encoding(ids.size(1), SIZES["d_model"])
        return rows * embedding.tokens(ids) + positions * places

    return put(Embedding, "forward", forward)


MODEL: dict[str, Change] = {
    "the rows of the embeddings are not multiplied by √d_model (section 8.1)": _embed(1.0, 1.0),
    "√d_model multiplies the positions, too; multiply the rows, then add (section 8.1)": (
        _embed(ROOT, ROOT)
    ),
    "no word has its position (section 6.1)": _embed(ROOT, 0.0),
    "the decoder looks at the embedded source; give it what the encoder made of it "
    "(section 8.3)": put(Encoder, "forward", lambda encoder, x, mask: x),
}
