"""The whole model: what its logits may depend on, and on what they have to; then its numbers."""

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn

from transformer.model import Transformer
from transformer_book.exam import flaws
from transformer_book.exam.modules import (
    ALL,
    WITH_YOUR_WEIGHTS,
    Yours,
    far,
    mask_axes,
    padding_axes,
)
from transformer_book.exam.reader import Mine, hinted
from transformer_book.exam.report import Wrong
from transformer_book.exam.weights import N_LAYERS, N_SRC, N_TGT, SIZES, book_models

NAME = "Transformer"
SRC, TGT = torch.tensor([[4, 5, 6, 2], [7, 8, 2, 0]]), torch.tensor([[1, 4, 5], [1, 6, 3]])


class Model(Yours):
    flaws = flaws.MODEL

    def __init__(self, mine: Mine, **sizes: int):
        every = {"src_vocab": N_SRC, "tgt_vocab": N_TGT, "d_model": SIZES["d_model"]}
        every |= {"n_heads": SIZES["n_heads"], "n_layers": N_LAYERS, "d_ff": SIZES["d_ff"]}
        super().__init__(mine, NAME, every | sizes, ("src", "tgt"))

    def shape_for(self, *arguments: Any) -> tuple[int, ...]:
        _, tgt = arguments
        return (*tgt.shape, self.sizes["tgt_vocab"])

    def books(self) -> Iterator[Transformer]:
        return book_models(self.module)


@torch.no_grad()
def ask_runs(mine: Mine) -> str:
    _layers_are_n_layers(mine)
    model = Model(mine)
    other = Model(mine, src_vocab=11, tgt_vocab=13, d_model=12, n_heads=3, n_layers=1, d_ff=10)
    with hinted(lambda _: _unequal_masks(mine)):
        logits = model(SRC, TGT)
        other(torch.full((2, 40), 5), torch.full((2, 35), 4))
    model.steady(SRC, TGT)
    total = logits.sum(-1)
    if (logits >= 0).all() and not far(total, torch.ones_like(total)):
        look = "Return the logits; cross_entropy has the softmax in it (section 9.1)"
        raise Wrong("each row adds up to 1, so these are probabilities", look)
    return "logits of the right shape, for two models of different sizes"


def _unequal_masks(mine: Mine) -> str:
    axes, heads = padding_axes(mine), mask_axes(mine)
    if axes in (None, heads):
        return ""
    return f"your padding_mask has {axes} axes, and your heads take masks of {heads} (section 5.4)"


def _layers_are_n_layers(mine: Mine) -> None:
    """Raises Wrong where there are not n_layers of them, each with numbers of its own to learn."""
    n_layers = N_LAYERS + 1  # so that a number that stands in the file does not pass by chance
    model = Model(mine, n_layers=n_layers).module
    for name in ("EncoderLayer", "DecoderLayer"):
        kind = getattr(mine.module, name, None)
        uses = [m for _, m in model.named_modules(remove_duplicate=False) if type(m) is kind]
        n = len(set(uses))
        if n == 1 < len(uses):
            look = "[layer] * n_layers is one layer, n times; make a new one in each round"
            raise Wrong(f"of {n_layers} {name}s there is only 1", f"{look} (section 8.4)")
        if n not in (0, n_layers):
            look = "There are n_layers of them in each stack (section 8.4)"
            raise Wrong(f"n_layers is {n_layers}, and the number of {name}s is {n}", look)
    listed = (v for m in model.modules() for v in vars(m).values() if isinstance(v, list | tuple))
    layers = {layer for some in listed for layer in some if isinstance(layer, nn.Module)}
    if not layers <= set(model.modules()):
        look = "A plain Python list hides them, so put them into nn.ModuleList (section 8.4)"
        raise Wrong("model.parameters() does not hold all layers: nothing would train them", look)


@torch.no_grad()
def ask_future(mine: Mine) -> str:
    model, src, words = Model(mine), torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4, 5, 6, 3]])
    for T in (2, 3, 5):
        tgt = words[:, :T]
        for place in range(1, T):
            changed = tgt.index_fill(1, torch.tensor(place), 2)
            example = {"src": src, "tgt": tgt, "changed": changed}
            where = f"tgt was changed at place {place}, counted from 0, and"
            model.check_stays(
                (src, tgt), (src, changed), slice(place),
                f"the future leaks: {where} logits before it moved",
                "The causal mask belongs to the decoder's self-attention, in every layer. A "
                "model that leaks learns to copy and cannot write (section 8.6)",
                **example,
            )  # fmt: skip
            model.check_moves(
                (src, tgt), (src, changed), -1,
                f"{where} the last logits did not notice",
                "Does each place see itself and all before it? tril() keeps the diagonal "
                "(section 4.4)",
                **example,
            )  # fmt: skip
    return "a changed word of the target moves no earlier logits, and all later ones"


@torch.no_grad()
def ask_source(mine: Mine) -> str:
    model, src, tgt = Model(mine), torch.tensor([[4, 5, 2]]), torch.tensor([[1, 4, 5, 6]])
    for changed, what, look in (
        (
            torch.tensor([[4, 6, 2]]),
            "the source was changed",
            "Does the decoder look at what the encoder made? (section 8.3)",
        ),
        (
            torch.tensor([[5, 4, 2]]),
            "two words of the source changed places",
            "Are the positions added to the source, and does the decoder look at what the encoder "
            "made of it? (sections 6.1 and 8.3)",
        ),
    ):
        symptom, example = f"{what}, and the logits did not move", {"src": src, "changed": changed}
        model.check_moves((src, tgt), (changed, tgt), ALL, symptom, look, **example, tgt=tgt)
    return "the logits follow the words of the source, and their order"


@torch.no_grad()
def ask_padding(mine: Mine) -> str:
    model, tgt = Model(mine), torch.tensor([[1, 4]])
    src, padded = torch.tensor([[4, 2]]), torch.tensor([[4, 2, 0]])
    look = "The padding mask of the source is needed twice, in the encoder and where the "
    look += "decoder looks at the memory (section 8.3)"
    symptom = "one <pad> more behind the source, and the logits moved"
    model.check_stays(
        (src, tgt), (padded, tgt), ALL, symptom, look, src=src, padded=padded, tgt=tgt
    )
    targets = torch.tensor([[1, 4, 5], [1, 6, 0]])
    together, alone = model(SRC, targets), model(SRC[1:, :3], targets[1:, :2])
    if far(together[1:, :2], alone):
        look = "Do two sentences of a batch meet anywhere, in a view or a mean over the batch?"
        look += " (section 8.6)"
        symptom = "a sentence gets other logits in a batch than alone"
        raise Wrong(symptom, look, src=SRC, tgt=targets)
    return "padding changes nothing, and neither do the other sentences of a batch"


@torch.no_grad()
def ask_numbers(mine: Mine) -> str:
    look = "The layers are right, so look at what goes into them and comes out (8.1, 8.4)"
    book = Model(mine).the_same(SRC, TGT, otherwise=look, src=SRC[0], tgt=TGT[0])
    for stack in (book.encoder, book.decoder):
        if stack.layers[0].residual_1.pre and isinstance(stack.norm, nn.Identity):
            look = "In pre-LN nothing norms the last sum, so each stack ends with a norm"
            raise Wrong("right but for the last norm of a stack", f"{look} (section 7.4)")
    return WITH_YOUR_WEIGHTS
