"""The whole model: what its logits may depend on, and on what they have to; then its numbers."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor, nn

from transformer.model import Transformer
from transformer_book.exam.flaws import model_flaws
from transformer_book.exam.layers import DECODER, ENCODER, kind_of_layer, mask_axes, padding_axes
from transformer_book.exam.reader import (
    MOVED,
    UNNOTICED,
    WITH_YOUR_WEIGHTS,
    Mine,
    check_steady,
    far,
    module_of,
    shaken,
    tensor_of,
)
from transformer_book.exam.report import NotThereYet, Wrong
from transformer_book.exam.weights import N_LAYERS, N_SRC, N_TGT, SIZES, book_models

NAME = "Transformer"
SRC = [[4, 5, 6, 2], [7, 8, 2, 0]]
TGT = [[1, 4, 5], [1, 6, 0]]


class Model:
    """The reader's model, shaken."""

    def __init__(self, mine: Mine, *, n_layers: int = N_LAYERS):
        self.mine = mine
        sizes = {"src_vocab": N_SRC, "tgt_vocab": N_TGT, "d_model": SIZES["d_model"]}
        sizes |= {"n_heads": SIZES["n_heads"], "n_layers": n_layers, "d_ff": SIZES["d_ff"]}
        torch.manual_seed(0)
        self.module = shaken(module_of(mine, NAME, sizes, ("src", "tgt")))

    def __call__(self, src: list[list[int]], tgt: list[list[int]]) -> Tensor:
        shape = (len(tgt), len(tgt[0]), N_TGT)
        answer = self.mine.call(
            "model(src, tgt)", self.module, torch.tensor(src), torch.tensor(tgt)
        )
        return tensor_of("model(src, tgt)", answer, shape, src=src, tgt=tgt)

    def moved(self, src: list[int], tgt: list[int], *, to: tuple[list[int], list[int]]) -> Tensor:
        """How far the logits move, at each place of the target, from one pair to another."""
        return (self([to[0]], [to[1]]) - self([src], [tgt]))[0].abs().amax(-1)

    def hint(self) -> str:
        """Of the first known flaw that gives the reader's logits; "" if none does."""
        with contextlib.suppress(NotThereYet, Wrong):
            logits = self(SRC, TGT)
            for book in book_models(self.module):
                for hint, flawed in model_flaws(book):
                    if _agree(flawed, logits):
                        return f"Look at this: {hint}"
        return ""


def _agree(book: nn.Module, logits: Tensor) -> bool:
    words = torch.tensor(TGT) != 0  # where padding asks, the answers mean nothing
    return not far(book(torch.tensor(SRC), torch.tensor(TGT))[words], logits[words])


@torch.no_grad()
def ask_runs(mine: Mine) -> str:
    model = Model(mine)
    _all_layers_are_found(mine, model.module)
    with _masks_agree(mine):
        src, tgt = [[4, 5, 2], [6, 2, 0]], [[1, 4], [1, 0]]
        logits = model(src, tgt)
        sizes = {"src_vocab": 11, "tgt_vocab": 13, "d_model": 12, "n_heads": 3, "n_layers": 1}
        other = module_of(mine, NAME, sizes | {"d_ff": 10}, ("src", "tgt"))
        long, longer = torch.full((2, 35), 4), torch.full((2, 40), 5)
        what = "Transformer(11, 13, 12, 3, 1, 10)(src, tgt)"
        answer = mine.call(what, other, longer, long)
        tensor_of(what, answer, (2, 35, 13), src=longer, tgt=long)
    check_steady(logits, model(src, tgt))
    look = "Return the logits; cross_entropy has the softmax in it (section 9.1)"
    if _are_shares(logits):
        raise Wrong("each row adds up to 1, so these are probabilities", look)
    if _are_shares(logits.exp()):
        raise Wrong("exp of each row adds up to 1, so these are log-probabilities", look)
    return "logits of the right shape, for two models of different sizes"


def _are_shares(rows: Tensor) -> bool:
    return bool((rows >= 0).all()) and not far(rows.sum(-1), torch.ones(2, 2))


@contextlib.contextmanager
def _masks_agree(mine: Mine) -> Iterator[None]:
    """Adds to what is Wrong that the padding mask has other axes than the heads take."""
    try:
        yield
    except Wrong as wrong:
        axes, heads = padding_axes(mine), mask_axes(mine)
        if axes in (None, heads):
            raise
        look = f"Look at this: your padding_mask has {axes} axes, and your heads take masks of"
        raise Wrong(str(wrong), f"{look} {heads} (section 5.4)") from wrong


def _all_layers_are_found(mine: Mine, model: nn.Module) -> None:
    """Raises Wrong where there are not n_layers of them, each with numbers of its own to learn."""

    def n_numbers(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    kinds = {name: kind_of_layer(mine, name) for name in (ENCODER, DECODER) if mine.has(name)}
    for name, kind in kinds.items():
        every = [m for _, m in model.named_modules(remove_duplicate=False) if type(m) is kind]
        n, n_uses = len(set(every)), len(every)
        if n == 1 and n_uses > 1:
            look = "[layer] * n_layers is one layer, n times; make a new one in each round"
            raise Wrong(f"of {N_LAYERS} {name}s there is only 1", f"{look} (section 8.2)")
        if n not in (0, N_LAYERS):
            look = "There are n_layers of them in each stack (section 8.2)"
            raise Wrong(f"n_layers is {N_LAYERS}, and the number of {name}s is {n}", look)
    hidden = any(_has_plain_list(model, kind) for kind in kinds.values() if kind is not None)
    if hidden or n_numbers(Model(mine, n_layers=N_LAYERS + 1).module) <= n_numbers(model):
        raise Wrong(
            "model.parameters() does not hold all layers, so that nothing would train them",
            "A plain Python list hides them, so put them into nn.ModuleList. Or is n_layers not "
            "used? (section 8.2)",
        )


def _has_plain_list(model: nn.Module, kind: type[nn.Module]) -> bool:
    lists = (v for m in model.modules() for v in vars(m).values() if isinstance(v, list | tuple))
    return any(isinstance(layer, kind) for layers in lists for layer in layers)


@torch.no_grad()
def ask_future(mine: Mine) -> str:
    model, src, words = Model(mine), [4, 5, 2], [1, 4, 5, 6, 3]
    for T in (2, 3, 5):
        tgt = words[:T]
        for place in range(1, T):
            changed = [*tgt[:place], 2, *tgt[place + 1 :]]
            moved = model.moved(src, tgt, to=(src, changed))
            example = {"src": src, "tgt": tgt, "changed": changed, "logits_moved_by": moved}
            if (moved[:place] > MOVED).any():
                raise Wrong(
                    f"the future leaks: tgt was changed at place {place}, counted from 0, and "
                    "logits before it moved",
                    "The causal mask belongs to the decoder's self-attention, in every layer. A "
                    "model that leaks learns to copy and cannot write (section 8.6)",
                    **example,
                )  # fmt: skip
            if (moved[place:] < UNNOTICED).any():
                look = "Does each place see itself and all before it? tril() keeps the diagonal"
                raise Wrong(
                    f"tgt was changed at place {place}, counted from 0, and some logits there or "
                    "behind did not notice",
                    f"{look} (section 4.4)", **example,
                )  # fmt: skip
    return "a changed word of the target moves no earlier logits, and all later ones"


@torch.no_grad()
def ask_source(mine: Mine) -> str:
    model, src, tgt = Model(mine), [4, 5, 2], [1, 4, 5, 6]
    for changed, symptom, look in (
        (
            [4, 6, 2],
            "the source was changed, and the logits did not move",
            "Does the decoder look at what the encoder made? (section 8.3)",
        ),
        (
            [5, 4, 2],
            "two words of the source changed places, and the logits did not move",
            "Are the positions added to the source, and does the decoder look at what the encoder "
            "made of it? (sections 6.1 and 8.3)",
        ),
    ):
        moved = model.moved(src, tgt, to=(changed, tgt))
        if (moved < UNNOTICED).all():
            look = model.hint() or look
            raise Wrong(symptom, look, src=src, changed=changed, tgt=tgt, logits_moved_by=moved)
    return "the logits follow the words of the source, and their order"


@torch.no_grad()
def ask_padding(mine: Mine) -> str:
    model, tgt = Model(mine), [1, 4]
    moved = model.moved([4, 2], tgt, to=([4, 2, 0], tgt))
    if (moved > MOVED).any():
        raise Wrong(
            "one <pad> more behind the source, and the logits moved",
            "The padding mask of the source is needed twice, in the encoder and where the decoder "
            "looks at the memory (section 8.3)",
            src=[4, 2], padded=[4, 2, 0], tgt=tgt, logits_moved_by=moved,
        )  # fmt: skip
    src, targets = [[4, 5, 6, 2], [7, 2, 0, 0]], [[1, 4, 5], [1, 6, 0]]
    together = model(src, targets)[1, :2]
    alone = model([[7, 2]], [[1, 6]])[0]
    if far(together, alone):
        look = "Do two sentences of a batch meet anywhere, in a view or a mean over the batch?"
        raise Wrong(
            "a sentence gets other logits in a batch than alone",
            f"{look} (section 8.7)", src=src, tgt=targets,
        )  # fmt: skip
    return "padding changes nothing, and neither do the other sentences of a batch"


@torch.no_grad()
def ask_numbers(mine: Mine) -> str:
    model = Model(mine)
    logits, books = model(SRC, TGT), [*book_models(model.module)]
    for book in books:
        if _agree(book, logits):
            if not _lacks_a_norm(book):
                return WITH_YOUR_WEIGHTS
            look = "In pre-LN nothing norms the last sum, so each stack ends with a norm"
            raise Wrong("right but for the last norm of a stack", f"{look} (section 7.4)")
    expected = books[0](torch.tensor(SRC), torch.tensor(TGT))
    raise Wrong(
        "with your weights in it, the book's model gives other numbers",
        model.hint()
        or "The layers are right, so look at what goes into them and comes out (8.1, 8.4)",
        src=SRC[0],
        tgt=TGT[0],
        first_logits_expected=expected[0, 0],
        you_gave=logits[0, 0],
    )


def _lacks_a_norm(book: Transformer) -> bool:
    stacks: list[Any] = [book.encoder, book.decoder]
    return any(s.layers[0].residual_1.pre and isinstance(s.norm, nn.Identity) for s in stacks)
