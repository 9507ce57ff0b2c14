"""The parts that are functions of tensors: attention, masks, positions, the loss."""

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from transformer.attention import attention
from transformer.data.tokens import PAD_ID
from transformer.masks import causal_mask, padding_mask
from transformer.positional import sinusoidal_encoding
from transformer.training.objective import count_labels, smoothed_cross_entropy
from transformer_book.exam.reader import Mine, compared, hinted
from transformer_book.exam.report import Wrong


def ask_attention(mine: Mine) -> str:
    yours = mine.get("attention", "q", "k", "v", "mask")
    draw = torch.Generator().manual_seed(0)

    def integers(*shape: int) -> Tensor:
        return torch.randint(-2, 3, shape, generator=draw).float()

    def three(*front: int, T: int, S: int, d_k: int, d_v: int) -> tuple[Tensor, Tensor, Tensor]:
        return integers(*front, T, d_k), integers(*front, S, d_k), integers(*front, S, d_v)

    one, two = torch.tensor([[2.0, 0, 0, 0]]), torch.tensor([[2.0, 0, 0, 0], [0, 0, 0, 0]])
    first = one, two, torch.tensor([[1.0], [0.0]])
    some = torch.rand(3, 1, 5, generator=draw) < 0.6
    some[..., 0], some[..., 1] = True, False
    without_mask = [
        (*first, None),
        (*three(T=1, S=2, d_k=5, d_v=1), None),
        (one.view(1, 2, 2), two.view(1, 4, 2), one.view(1, 4, 1), None),
        (*three(T=2, S=3, d_k=4, d_v=2), None),
        (*three(2, 3, T=4, S=6, d_k=9, d_v=5), None),
    ]
    under_a_mask = [
        (*first, torch.tensor([[True, False]])),
        (*three(T=2, S=3, d_k=4, d_v=2), torch.tensor([[True, False, True], [True, True, False]])),
        (9 * one, -9 * two, first[-1], torch.tensor([[True, False]])),  # shown, at a score of -162
        (*three(3, T=4, S=5, d_k=9, d_v=7), some),
        (*three(2, 3, T=4, S=6, d_k=9, d_v=5), torch.ones(4, 6, dtype=torch.bool).tril()),
    ]
    compared("attention", attention, yours, without_mask, AVERAGES)
    return compared("attention", attention, yours, without_mask + under_a_mask, MASKS)


def _softly(
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


AVERAGES = {
    "the scores are not divided by √d_k (section 4.1)": _softly(scale=lambda d_k: 1.0),
    "the softmax runs over the queries; over the keys, dim=-1, each query's weights add up to one "
    "(section 3.7)": _softly(dim=-2),
    "softmax(dim=1) counts the axes from the front, and a batch has more of them; dim=-1 is the "
    "keys, always (section 3.7)": _softly(dim=1),
}
MASKS = {
    "the mask is read the other way round: True means that the query may look (section 4.4)": (
        _softly(see=lambda mask: ~mask)
    ),
    "the mask is not used (section 4.4)": _softly(see=torch.ones_like),
    "the mask comes after the softmax, when hidden keys have already taken their share "
    "(section 4.4)": _softly(after=True),
    "a hidden key gets the score 0, but 0 is a score like any other; it has to be -inf "
    "(section 4.4)": _softly(fill=0.0),
}


def ask_causal_mask(mine: Mine) -> str:
    yours = mine.get("causal_mask", "T")
    n_axes = _n_axes(mine.call("causal_mask", yours, T=2), of=(2, 3, 4))

    def right(T: int) -> Tensor:
        return causal_mask(T)[(None,) * (n_axes - 2)]

    wrong = {hint: _after(right, flaw) for hint, flaw in PAST.items()}
    return compared("causal_mask", right, yours, [(T,) for T in (1, 2, 3, 5, 9)], wrong)


def _after(right: Callable, flaw: Callable[[Tensor], Tensor]) -> Callable:
    """A function that spoils by ``flaw`` what is right."""
    return lambda given: flaw(right(given))


PAST: dict[str, Callable[[Tensor], Tensor]] = {
    "it hides the past and shows the future: tril keeps what is below the diagonal "
    "(section 4.4)": lambda mask: mask.mT,
    "a place may look at itself, so the diagonal is True (section 4.4)": lambda mask: ~mask.mT,
    "True means that the query may look, and yours says where it may not (section 4.4)": (
        torch.logical_not
    ),
    "here a mask holds True and False; 0 and -inf are for scores (section 4.4)": (
        lambda mask: torch.where(mask, 0.0, -math.inf)
    ),
}


def ask_padding_mask(mine: Mine) -> str:
    yours = mine.get("padding_mask", "tokens")
    rows = [[[7, 0]], [[1, 5, 2]], [[4, 2, 0], [5, 6, 2]], [[5, 2, 0, 0]] * 3]
    inputs = [(torch.tensor(tokens),) for tokens in rows]
    mask = mine.call("padding_mask", yours, tokens=inputs[2][0])
    if isinstance(mask, Tensor) and mask.shape == (2, 3):
        look = "Give it an axis between, (B, 1, S): with (B, S) the rows would count as queries."
        raise Wrong(
            "for tokens of shape (B, S) the mask has the same shape, and scores are (B, T, S)",
            f"{look} (section 4.4)",
        )
    n_axes = _n_axes(mask, of=(3, 4))

    def right(tokens: Tensor) -> Tensor:
        return padding_mask(tokens) if n_axes == 4 else padding_mask(tokens)[:, 0]

    wrong = {hint: _after(right, flaw) for hint, flaw in PADDING.items()}
    return compared("padding_mask", right, yours, inputs, wrong)


PADDING: dict[str, Callable[[Tensor], Tensor]] = {
    "True means that there is a word to look at, and yours says where there is none "
    "(section 4.4)": torch.logical_not,
}


def _n_axes(mask: object, *, of: tuple[int, ...]) -> int:
    """How many axes the reader's mask has, if so many are right; else the fewest that are."""
    return mask.dim() if isinstance(mask, Tensor) and mask.dim() in of else of[0]


def ask_positions(mine: Mine) -> str:
    yours = mine.get("positions", "T", "d_model")
    inputs = [(1, 2), (2, 4), (3, 6), (50, 16)]
    return compared("positions", sinusoidal_encoding, yours, inputs, POSITIONS)


def _waves(T: int, d_model: int, power: float = 1.0) -> tuple[Tensor, Tensor]:
    """The sines and the cosines, (T, d_model / 2) each."""
    speeds = 10_000 ** (-power * torch.arange(0, d_model, 2) / d_model)
    angles = torch.arange(T)[:, None] * speeds
    return angles.sin(), angles.cos()


def _with_power(power: float) -> Callable[[int, int], Tensor]:
    return lambda T, d: torch.stack(_waves(T, d, power), dim=-1).flatten(1)


POSITIONS: dict[str, Callable[[int, int], Tensor]] = {
    "sines and cosines take turns along a row; yours are all sines, then all cosines "
    "(section 6.2)": lambda T, d: torch.cat(_waves(T, d), dim=-1),
    "the exponent of pair i is 2i / d_model, and yours is 4i / d_model (section 6.2)": (
        _with_power(2.0)
    ),
    "the exponent of pair i is 2i / d_model, and yours is i / d_model (section 6.2)": (
        _with_power(0.5)
    ),
}


def book_loss(logits: Tensor, labels: Tensor) -> Tensor:
    """The mean loss of the words, in nats."""
    total = smoothed_cross_entropy(logits, labels, smoothing=0.0, pad_id=PAD_ID)
    return total / count_labels(labels, pad_id=PAD_ID)


def loss_by_place(logits: Tensor, labels: Tensor) -> Tensor:
    """The loss at each place, the padding included."""
    return F.cross_entropy(logits.transpose(1, 2), labels, reduction="none")


LOSSES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "padding counts as a word to be guessed; labels of 0 are to be left out (section 9.2)": (
        lambda x, y: loss_by_place(x, y).mean()
    ),
    "padding is left out of the sum, but counted when you divide (section 9.2)": (
        lambda x, y: (loss_by_place(x, y) * (y != 0)).mean()
    ),
    "this is the sum over the words, and their mean is wanted (section 9.1)": (
        lambda x, y: (loss_by_place(x, y) * (y != 0)).sum()
    ),
    "there are two softmaxes, for cross_entropy has one of its own and wants the logits "
    "(section 9.1)": lambda x, y: book_loss(x.softmax(-1), y),
}


def words_on_axis_1(text: str) -> str:
    """What to say where PyTorch says that the shapes of logits and labels do not fit."""
    if "Expected target size [" in text or "0D or 1D target tensor expected" in text:
        return "cross_entropy wants the words on axis 1: flatten both, or logits.transpose(1, 2)"
    return ""


def ask_loss(mine: Mine) -> str:
    draw = torch.Generator().manual_seed(0)
    yours = mine.get("loss", "logits", "labels")

    def logits(*shape: int) -> Tensor:
        return torch.randint(-2, 3, shape, generator=draw).float()

    inputs = [
        (torch.tensor([[[0.0, 0, 2]]]), torch.tensor([[2]])),
        (logits(1, 2, 3), torch.tensor([[2, 0]])),
        (logits(2, 3, 4), torch.tensor([[3, 1, 2], [2, 0, 0]])),
        (logits(3, 5, 7), torch.tensor([[6, 4, 2, 0, 0], [5, 2, 0, 0, 0], [3, 3, 4, 5, 2]])),
    ]
    with hinted(words_on_axis_1):
        answer = compared("loss", book_loss, yours, inputs, LOSSES)
    scores = logits(1, 2, 3).requires_grad_()
    got = mine.call("loss", yours, logits=scores, labels=torch.tensor([[2, 1]]))
    if not isinstance(got, Tensor) or not got.requires_grad:
        look = "Return the tensor itself, without .item() or .detach() (section 9.2)"
        raise Wrong("the loss is a plain number, from which no gradient can flow back", look)
    return answer
