"""A step of training and greedy decoding, each with a small model whose answers are known."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from transformer.data.tokens import BOS_ID, EOS_ID, PAD_ID
from transformer_book.answers import as_plain, is_number
from transformer_book.exam.functions import book_loss, words_on_axis_1
from transformer_book.exam.modules import far
from transformer_book.exam.reader import Mine, compared, hinted
from transformer_book.exam.report import Wrong

SRC = torch.tensor([[4, 2, 0], [5, 3, 2]])
TGT = torch.tensor([[1, 3, 2, 0], [1, 4, 3, 2]])
MORE = torch.tensor([[1, 4, 2, 0], [1, 4, 4, 2]])
N_WORDS, RATE = 5, 0.5


class Watched(nn.Module):
    """Logits from a table; it keeps what it was given."""

    def __init__(self) -> None:
        super().__init__()
        draw = torch.Generator().manual_seed(0)
        self.table = nn.Parameter(torch.randn(6, N_WORDS, generator=draw) * 0.3)
        self.inputs: list[tuple[Tensor, Tensor]] = []

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        self.inputs.append((src.clone(), tgt.clone()))
        return self.table[tgt] + 0.1 * self.table[src].mean(1, keepdim=True)


def book_step(
    model: nn.Module, optimizer: torch.optim.Optimizer, src: Tensor, tgt: Tensor
) -> float:
    """One update, and the loss before it."""
    loss = book_loss(model(src, tgt[:, :-1]), tgt[:, 1:])
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


def ask_train_step(mine: Mine) -> str:
    step = mine.get("train_step", "model", "optimizer", "src", "tgt")
    yours, book = Watched(), Watched()
    your_sgd, book_sgd = (torch.optim.SGD(m.parameters(), lr=RATE) for m in (yours, book))
    before = yours.table.detach().clone()

    def both(tgt: Tensor) -> tuple[object, float]:
        """The loss of the reader's step, and that of the book's."""
        with hinted(words_on_axis_1):
            got = mine.call("train_step", step, model=yours, optimizer=your_sgd, src=SRC, tgt=tgt)
        return got, book_step(book, book_sgd, SRC, tgt)

    try:
        got, right = both(TGT)
    except Wrong:
        if yours.inputs:
            _check_inputs(yours)
        raise
    _check_inputs(yours)
    _check_loss(got, right)
    if not far(yours.table, before, 1e-6):
        look = "A step is loss.backward(), then optimizer.step() (section 9.2)"
        raise Wrong("after the step the model's numbers are what they were", look)
    if far(yours.table, book.table, 1e-4):
        look = "One loss.backward(), one optimizer.step(), and nothing else (section 9.2)"
        raise Wrong("the loss is right, but the step goes elsewhere than down its gradient", look)
    both(MORE)
    both(MORE)
    if far(yours.table, book.table, 1e-4):
        look = "backward() adds to the gradients that are there; optimizer.zero_grad() comes first"
        raise Wrong(
            "the first step is right, and those after it are too long", f"{look} (section 9.2)"
        )
    return "three steps go where the book's go"


def _check_inputs(yours: Watched) -> None:
    if not yours.inputs:
        raise Wrong("the model is never called", "It starts with model(src, …) (section 9.2)")
    src, tgt = yours.inputs[0]
    if not torch.equal(src, SRC):
        raise Wrong("the model does not get src as its first argument", expected=SRC, it_got=src)
    if not torch.equal(tgt, TGT[:, :-1]):
        look = "It reads <bos> and the words, and is to say the words and <eos>: tgt[:, :-1]"
        raise Wrong(
            "the model does not get all but the last column of tgt", f"{look} (section 9.1)",
            tgt=TGT, expected=TGT[:, :-1], it_got=tgt,
        )  # fmt: skip


def _check_loss(got: object, right: float) -> None:
    number = as_plain(got)
    if not is_number(number):
        raise Wrong(f"train_step gives a {type(got).__name__}; the loss is wanted, a number")
    if abs(number - right) < 1e-4:
        return
    with torch.no_grad():
        unshifted = book_loss(Watched()(SRC, TGT[:, :-1]), TGT[:, :-1]).item()
    look = "Look at this: the labels are what the model has read; they are one word further, "
    look += "tgt[:, 1:] (section 9.1)"
    raise Wrong(
        "train_step gives another loss than loss(model(src, tgt[:, :-1]), tgt[:, 1:])",
        *([look] if abs(unshifted - number) < 1e-4 else []),
        tgt=TGT, expected=f"{right:.3f}", you_gave=f"{number:.3f}",
    )  # fmt: skip


class Backwards(nn.Module):
    """Says its source backwards, as long as it is given the words that it has said, and no others.

    It raises RuntimeError when it is asked for more words than it may say.
    """

    LOST = 3  # what it says where it has lost the thread: <unk>

    def __init__(self, max_len: int):
        super().__init__()
        self.calls, self.max_len = 0, max_len

    def forward(self, src: Tensor, tgt: Tensor) -> Tensor:
        self.calls += 1
        if self.calls > self.max_len + 1:
            raise RuntimeError(
                f"the model is asked for a word {self.calls} times, and max_len is {self.max_len}"
            )
        logits = torch.zeros(*tgt.shape, 10)
        for row, (words, so_far) in enumerate(zip(src.tolist(), tgt.tolist(), strict=True)):
            right = [BOS_ID, *backwards(words), EOS_ID]
            for t in range(len(so_far)):
                on_track = so_far[: t + 1] == right[: t + 1] and t + 1 < len(right)
                logits[row, t, right[t + 1] if on_track else self.LOST] = 1.0
        return logits


def backwards(words: list[int]) -> list[int]:
    return [word for word in reversed(words) if word not in (PAD_ID, EOS_ID)]


def ask_greedy_decode(mine: Mine) -> str:
    yours = mine.get("greedy_decode", "model", "src", "max_len")

    def greedy_decode(src: Tensor, max_len: int) -> list[list[int]]:
        """Each sentence up to its <eos>; what stands behind it does not count."""
        model = Backwards(max_len)
        got = mine.call("greedy_decode", yours, model=model, src=src, max_len=max_len)
        if not isinstance(got, Tensor) or got.dim() != 2 or len(got) != len(src):
            kind = f"shape {tuple(got.shape)}" if isinstance(got, Tensor) else type(got).__name__
            raise Wrong(f"greedy_decode gives {kind}; a tensor (B, at most max_len) is wanted")
        return [row[: [*row, EOS_ID].index(EOS_ID) + 1] for row in got.tolist()]

    inputs = [
        (torch.tensor([[4, 5, 2]]), 6),
        *((torch.tensor([[4, 5, 6, 2]]), max_len) for max_len in (2, 6)),
        (torch.tensor([[6, 2, 0, 0], [4, 7, 8, 2]]), 7),
        (torch.tensor([[5, 7, 9, 8, 2, 0], [9, 4, 2, 0, 0, 0], [4, 5, 6, 7, 8, 2]]), 9),
    ]
    for src, max_len in inputs:  # what is wrong with the call itself is told first
        greedy_decode(src, max_len)
    return compared("greedy_decode", _right, greedy_decode, inputs, DECODINGS)


def _right(src: Tensor, max_len: int) -> list[list[int]]:
    return [[*backwards(words), EOS_ID][:max_len] for words in src.tolist()]


def _stopped_with_the_first(src: Tensor, max_len: int) -> list[list[int]]:
    n_words = min(len(backwards(words)) for words in src.tolist())
    return [row[: n_words + 1] for row in _right(src, max_len)]


DECODINGS: dict[str, Callable[[Tensor, int], list[list[int]]]] = {
    "<bos> is still in front; leave it out of what you return (section 10.1)": (
        lambda src, max_len: [[BOS_ID, *row][: max_len + 1] for row in _right(src, max_len)]
    ),
    "after the first word the model has lost the thread; each step gives it <bos> and all that is "
    "written so far (section 10.1)": lambda src, max_len: [
        [first, *[Backwards.LOST] * (max_len - 1)] for first, *_ in _right(src, max_len)
    ],
    "it stops as soon as one sentence is done; wait until each has its <eos> (section 10.1)": (
        _stopped_with_the_first
    ),
}
