"""The whole model beside the package's, with the reader's weights in it."""

from collections.abc import Iterator
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from transformer.layers import LayerNorm
from transformer.model import Decoder, DecoderLayer, EncoderLayer
from transformer.model import Transformer as Book
from transformer_book.exam.copying import (
    SIZES,
    Arrangement,
    BookLayer,
    LayerParts,
    Norm,
    UnreadableError,
    config,
    copy_norm,
    norms_of,
)
from transformer_book.exam.flaws import model_flaws
from transformer_book.exam.layers import (
    DECODER,
    ENCODER,
    ask_decoder_layer,
    ask_encoder_layer,
    kind_of_layer,
)
from transformer_book.exam.marks import (
    WITH_YOUR_WEIGHTS,
    Mine,
    NotThereYet,
    Wrong,
    far,
    from_outside,
)
from transformer_book.exam.whole import N_SRC, N_TGT, NAME, Model, ask_runs

N_LAYERS = 2
SRC = [[4, 5, 6, 2], [7, 8, 2, 0]]
TGT = [[1, 4, 5], [1, 6, 0]]


class Parts:
    """What the reader's model is made of.

    Raises UnreadableError where that is unclear, NotThereYet where a layer is wrong or waits.
    """

    def __init__(self, mine: Mine, own: nn.Module):
        for name, ask in ((ENCODER, ask_encoder_layer), (DECODER, ask_decoder_layer)):
            if not mine.has(name):
                raise UnreadableError(f"which is which without {name}")
            if mine.known.get(name) is None:
                mine.needs(name, ask)
            if mine.known[name] is None:
                raise UnreadableError(f"how your {name} stores them")
        self.how: dict[type[BookLayer], Arrangement] = {
            EncoderLayer: mine.known[ENCODER],
            DecoderLayer: mine.known[DECODER],
        }
        self.layers: dict[type[BookLayer], list[LayerParts]] = {}
        inside: set[int] = set()
        for kind in self.how:
            found = [m for m in own.modules() if type(m) is kind_of_layer(mine, kind.__name__)]
            if len(found) != N_LAYERS:
                raise UnreadableError(f"where its {kind.__name__}s are")
            inside |= {id(p) for each in found for p in each.parameters()}
            self.layers[kind] = [LayerParts(mine, each, kind) for each in found]
        self.norms = norms_of(own, inside)
        rest = [p.detach() for p in own.parameters() if id(p) not in inside]
        self.src = _only([p for p in rest if p.shape == (N_SRC, SIZES["d_model"])])
        shapes = ((N_TGT, SIZES["d_model"]), (SIZES["d_model"], N_TGT))
        self.tgt = [p for p in rest if p.shape in shapes]
        self.bias = next((p for p in rest if p.shape == (N_TGT,)), None)
        if not 1 <= len(self.tgt) <= 2 or len(self.norms) > 2:
            raise UnreadableError("which is which besides those of its layers")

    def books(self) -> Iterator[tuple[Book, bool]]:
        """The package's model with these parts in every order, and whether it lacks a last norm."""
        orders = [self.how[kind].norm for kind in self.how]
        lasts: list[tuple[Norm | None, ...]] = list(permutations([*self.norms, None, None], 2))
        lasts = [each for each in lasts if sum(n is not None for n in each) == len(self.norms)]
        for tables in permutations(self.tgt) if len(self.tgt) == 2 else [self.tgt * 2]:
            for last in lasts[: 2 if len(self.norms) else 1]:
                book = Book(config(orders[0], N_LAYERS, N_SRC, N_TGT))
                book.decoder = Decoder(config(orders[1], N_LAYERS))
                self._copy(book.eval(), tables, last)
                yield book, ("pre", None) in zip(orders, last, strict=True)

    @torch.no_grad()
    def _copy(self, book: Book, tables: tuple[Tensor, ...] | list[Tensor], last: tuple) -> None:
        book.src_embedding.tokens.weight.copy_(self.src)
        places = book.tgt_embedding.tokens.weight, book.output.weight
        for place, table in zip(places, tables, strict=True):
            place.copy_(table if table.size(0) == N_TGT else table.T)
        stacks: list[tuple[Any, type[BookLayer]]] = [
            (book.encoder, EncoderLayer),
            (book.decoder, DecoderLayer),
        ]
        for (stack, kind), norm in zip(stacks, last, strict=True):
            for layer, parts in zip(stack.layers, self.layers[kind], strict=True):
                parts.copy_to(layer, self.how[kind])
            stack.norm = nn.Identity() if norm is None else LayerNorm(SIZES["d_model"])
            if norm is not None:
                copy_norm(stack.norm, norm)

    def logits(self, book: nn.Module) -> Tensor:
        logits = book(torch.tensor(SRC), torch.tensor(TGT))
        return logits if self.bias is None else logits + self.bias


def _only(found: list[Tensor]) -> Tensor:
    if len(found) != 1:
        raise UnreadableError("which is the table of the source")
    return found[0]


@torch.no_grad()
def ask_numbers(mine: Mine) -> str:
    model = Model(mine)
    words = torch.tensor(TGT) != 0  # where padding asks, the answers mean nothing
    try:
        parts = Parts(mine, model.module)
    except UnreadableError as unclear:
        mine.needs(NAME, ask_runs)
        return from_outside(str(unclear))
    except Wrong:
        raise NotThereYet("waits until the layers are right") from None
    own = model(SRC, TGT)
    first = None
    for book, lacks_a_norm in parts.books():
        answers = parts.logits(book)
        first = answers if first is None else first
        if far(answers[words], own[words]):
            continue
        if lacks_a_norm:
            look = "In pre-LN nothing norms the last sum, so each stack ends with a norm"
            raise Wrong("right but for the last norm of a stack", f"{look} (section 7.4)")
        return WITH_YOUR_WEIGHTS
    said = (
        f"Look at this: {said}"
        for book, _ in parts.books()
        for said, flawed in model_flaws(book)
        if not far(parts.logits(flawed)[words], own[words])
    )
    raise Wrong(
        "with your weights in it, the book's model gives other numbers",
        next(said, "The layers are right, so look at what goes into them and comes out (8.1, 8.4)"),
        src=SRC[0],
        tgt=TGT[0],
        first_logits_expected=first[0, 0] if first is not None else "",
        you_gave=own[0, 0],
    )
