"""What people get wrong in heads, layers and the model, done to the package's own on purpose.

Each flaw has its hint. One that gives the reader's numbers is the reader's.
"""

import copy
import math
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer.layers import FeedForward, LayerNorm, Residual
from transformer.model import DecoderLayer, EncoderLayer, Transformer
from transformer.multihead import MultiHeadAttention
from transformer_book.exam.reader import far

Change = Callable[[Any], None]  # of a layer, or of a model
Sublayer = Callable[[Tensor], Tensor]
WHERE = {
    EncoderLayer: ("self-attention", "the feed-forward network"),
    DecoderLayer: ("self-attention", "the look at the memory", "the feed-forward network"),
}


# in multi-head attention of 8 features and 2 heads: hint -> what is otherwise in ``flawed_heads``
HEADS: dict[str, dict[str, Any]] = {
    "the scores are not divided by √d_k (section 4.1)": {"divide": lambda d_k, h: 1.0},
    "divide by √d_k, where d_k is the width of one head, d_model / n_heads (section 5.2)": {
        "divide": lambda d_k, h: math.sqrt(d_k * h)
    },
    "divide by √d_k, not by d_k itself (section 4.1)": {"divide": lambda d_k, h: d_k},
    "the softmax runs over the queries; it should run over the keys (section 3.7)": {"dim": -2},
    "softmax(dim=1) runs over the heads here; dim=-1 is the keys (section 3.7)": {"dim": 1},
    "this is one head as wide as the model; are the rows cut into heads? (section 5.2)": {
        "n_heads": lambda d_model, h: 1
    },
    "these are d_model / n_heads heads; there should be n_heads of them (section 5.2)": {
        "n_heads": lambda d_model, h: d_model // h
    },
    "the rows are cut by a view straight to (B, n_heads, T, d_k), and view before transpose mixes "
    "places; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)": {
        "cut": False
    },
    "view before transpose mixes places, here both where the rows are cut into heads and where "
    "they are put together; cut with view(B, T, n_heads, d_k), then transpose(1, 2) (section 5.4)":
        {"cut": False, "merge": False},
    "the heads are put back without their transpose; transpose(1, 2) comes before the reshape "
    "(section 5.4)": {"merge": False},
    "W_o is not used; it mixes what the heads say (section 5.2)": {"last": False},
}  # fmt: skip


def flaw_of_heads(book: MultiHeadAttention, x: Tensor, memory: Tensor, answers: Tensor) -> str:
    """The hint of the first flaw that gives these answers; "" if none does."""
    for hint, flaw in HEADS.items():
        if not far(flawed_heads(book, x, memory, **flaw), answers):
            return hint
    return ""


def flawed_heads(
    book: MultiHeadAttention,
    x: Tensor,
    memory: Tensor,
    *,
    n_heads: Callable[[int, int], int] = lambda d_model, h: h,
    divide: Callable[[int, int], float] = lambda d_k, h: math.sqrt(d_k),
    dim: int = -1,
    cut: bool = True,
    merge: bool = True,
    last: bool = True,
) -> Tensor:
    """The answers of ``book``, with what one may get wrong as arguments."""
    h = n_heads(book.d_model, book.n_heads)

    def split(rows: Tensor) -> Tensor:
        if not cut:
            return rows.reshape(len(rows), h, rows.size(1), -1)
        return rows.unflatten(-1, (h, -1)).transpose(1, 2)

    q, k, v = split(book.W_q(x)), split(book.W_k(memory)), split(book.W_v(memory))
    answers = (q @ k.mT / divide(q.size(-1), h)).softmax(dim) @ v
    rows = answers.transpose(1, 2).flatten(2) if merge else answers.reshape(x.shape)
    return book.W_o(rows) if last else rows


def layer_flaws(layer: EncoderLayer | DecoderLayer) -> Iterator[tuple[str, nn.Module]]:
    """Copies of ``layer`` with one flaw each, beside what to say of it."""
    names = WHERE[type(layer)]
    for hint, change_sum in SUMS.items():
        everywhere = copy.deepcopy(layer)
        _change_sums(everywhere, range(len(names)), change_sum)
        yield hint.format("the sub-layers"), everywhere
        for i, name in enumerate(names):
            changed = copy.deepcopy(layer)
            _change_sums(changed, (i,), change_sum)
            yield hint.format(name), changed
    for hint, change in CHANGES.items():
        changed = copy.deepcopy(layer)
        change(changed)
        yield hint, changed


def _change_sums(layer: nn.Module, which: Iterable[int], change_sum: Callable) -> None:
    residuals = [m for m in layer.modules() if isinstance(m, Residual)]
    for i in which:
        residual = residuals[i]
        residual.forward = partial(change_sum, residual.norm, residual.pre)  # type: ignore[method-assign]


def _nothing_added(norm: nn.Module, pre: bool, x: Tensor, sublayer: Sublayer) -> Tensor:
    return sublayer(norm(x)) if pre else norm(sublayer(x))


def _normed_added(norm: nn.Module, pre: bool, x: Tensor, sublayer: Sublayer) -> Tensor:
    return norm(x) + sublayer(norm(x))


def _norm_of_the_answer(norm: nn.Module, pre: bool, x: Tensor, sublayer: Sublayer) -> Tensor:
    return x + norm(sublayer(x))


def _no_norm(norm: nn.Module, pre: bool, x: Tensor, sublayer: Sublayer) -> Tensor:
    return x + sublayer(x)


def _norm_beside(norm: nn.Module, pre: bool, x: Tensor, sublayer: Sublayer) -> Tensor:
    return norm(x) + sublayer(x)


SUMS = {
    "around {0} the plus sign is missing: x + … (section 7.2)": _nothing_added,
    "at {0} you add the normed rows; add x as it came in (section 7.4)": _normed_added,
    "at {0} the norm is taken of the answer; take it of the whole sum, or of what goes in "
    "(section 7.4)": _norm_of_the_answer,
    "at {0} the norm is made, but not used (section 7.3)": _no_norm,
    "at {0} the norm is taken of x before the sum, and the sub-layer does not get it "
    "(section 7.4)": _norm_beside,
}


def _norms(how: Callable[[LayerNorm, Tensor], Tensor]) -> Change:
    def change(layer: nn.Module) -> None:
        for residual in (m for m in layer.modules() if isinstance(m, Residual)):
            norm: Any = residual.norm
            norm.forward = partial(how, norm)

    return change


def _over(dim: int | tuple[int, ...], norm: LayerNorm, x: Tensor, *, n: int = 0) -> Tensor:
    spread = x.var(dim, correction=n, keepdim=True)
    normed = (x - x.mean(dim, keepdim=True)) / (spread + 1e-5).sqrt()
    return normed * norm.weight + norm.bias


def _bend(activation: Callable[[Tensor], Tensor]) -> Change:
    def change(layer: nn.Module) -> None:
        for network in (m for m in layer.modules() if isinstance(m, FeedForward)):
            network.activation = activation

    return change


CHANGES: dict[str, Change] = {
    "the norm runs over the places; take mean and variance over the features of each place, "
    "dim=-1 (section 7.3)": _norms(partial(_over, 1)),
    "the norm runs over places and features at once; take it for each place alone, dim=-1 "
    "(section 7.3)": _norms(partial(_over, (1, 2))),
    "the variance divides by d_model - 1; in a LayerNorm it divides by d_model (section 7.3)": (
        _norms(partial(_over, -1, n=1))
    ),
    "the norm does not use its gain and its bias (section 7.3)": _norms(
        lambda norm, x: F.layer_norm(x, x.shape[-1:])
    ),
    "the norm does not take the mean away (section 7.3)": _norms(
        lambda norm, x: F.rms_norm(x, x.shape[-1:], norm.weight) + norm.bias
    ),
    "nothing bends between W_1 and W_2; ReLU belongs there (section 7.5)": _bend(lambda x: x),
    "GELU stands where the paper has ReLU (section 7.5)": _bend(F.gelu),
    "tanh stands where the paper has ReLU (section 7.5)": _bend(torch.tanh),
}


def _scale(factor: float, which: str = "st") -> Change:
    def change(model: Transformer) -> None:
        if "s" in which:
            model.src_embedding.scale *= factor
        if "t" in which:
            model.tgt_embedding.scale *= factor

    return change


def _places(which: str, factor: float) -> Change:
    def change(model: Transformer) -> None:
        for name in which.split():
            embedding = getattr(model, f"{name}_embedding")
            embedding.positions.table = embedding.positions.table * factor

    return change


def _without_norm(name: str) -> Change:
    def change(model: Transformer) -> None:
        getattr(model, name).norm = nn.Identity()

    return change


def _words_for_memory(model: Transformer) -> None:
    model.encoder.forward = lambda x, mask: x  # type: ignore[method-assign,assignment,misc]


def _all(*changes: Change) -> Change:
    def change(model: Transformer) -> None:
        for one in changes:
            one(model)

    return change


def model_flaws(model: Transformer) -> Iterator[tuple[str, nn.Module]]:
    """Copies of ``model`` with one flaw each, beside what to say of it."""
    root = math.sqrt(model.config.d_model)
    bare_source = _all(_scale(1 / root, "s"), _places("src", 0.0))
    changes: dict[str, Change] = {
        "the rows of the embeddings are not multiplied by √d_model (section 8.1)": _scale(1 / root),
        "the rows of the source are not multiplied by √d_model (section 8.1)": _scale(
            1 / root, "s"
        ),
        "the rows of the target are not multiplied by √d_model (section 8.1)": _scale(
            1 / root, "t"
        ),
        "the rows are divided by √d_model; multiply (section 8.1)": _scale(1 / root**2),
        "the rows are multiplied by d_model; its root is enough (section 8.1)": _scale(root),
        "√d_model multiplies the positions, too; multiply the rows, then add (section 8.1)": (
            _places("src tgt", root)
        ),
        "the words of the source have no positions (section 6.1)": _places("src", 0.0),
        "the words of the target have no positions (section 6.1)": _places("tgt", 0.0),
        "no word has its position (section 6.1)": _places("src tgt", 0.0),
        "the decoder looks at the embedded source; give it what the encoder made of it "
        "(section 8.3)": _words_for_memory,
        "the encoder gets the bare rows of its words; √d_model and the positions are missing "
        "(section 8.1)": bare_source,
        "the decoder gets the bare rows of its words; √d_model and the positions are missing "
        "(section 8.1)": _all(_scale(1 / root, "t"), _places("tgt", 0.0)),
        "the decoder looks at the bare rows of the source; give it what the encoder made of them "
        "(section 8.3)": _all(bare_source, _words_for_memory),
        "the last norm of the encoder is not used (section 7.4)": _without_norm("encoder"),
        "the last norm of the decoder is not used (section 7.4)": _without_norm("decoder"),
    }
    for hint, change in changes.items():
        changed = copy.deepcopy(model)
        change(changed)
        yield hint, changed
