"""The whole model, from outside: what its logits may depend on, and on what they have to."""

import torch
from torch import Tensor, nn

from transformer_book.exam.copying import SIZES
from transformer_book.exam.layers import DECODER, ENCODER, kind_of_layer, same_twice
from transformer_book.exam.marks import (
    MOVED,
    UNNOTICED,
    Mine,
    NotThereYet,
    Wrong,
    far,
    module_of,
    shaken,
    tensor_of,
)

NAME = "Transformer"
N_SRC, N_TGT = 9, 7


class Model:
    """The reader's model, shaken. Raises NotThereYet where it does not run (unless ``first``)."""

    def __init__(self, mine: Mine, *, first: bool = False, n_layers: int = 2):
        self.mine = mine
        sizes = {"src_vocab": N_SRC, "tgt_vocab": N_TGT, "d_model": SIZES["d_model"]}
        sizes |= {"n_heads": SIZES["n_heads"], "n_layers": n_layers, "d_ff": SIZES["d_ff"]}
        torch.manual_seed(0)
        mine.get(NAME)
        try:
            self.module = shaken(module_of(mine, NAME, sizes, ("src", "tgt")))
            if not first:
                self([[4, 5, 2]], [[1, 4]])
        except Wrong:
            if first:
                raise
            raise NotThereYet("waits until your Transformer runs") from None

    def __call__(self, src: list[list[int]], tgt: list[list[int]]) -> Tensor:
        shape = (len(tgt), len(tgt[0]), N_TGT)
        got = self.mine.call("model(src, tgt)", self.module, torch.tensor(src), torch.tensor(tgt))
        return tensor_of("model(src, tgt)", got, shape, src=src, tgt=tgt)

    def moved(self, src: list[int], tgt: list[int], *, to: tuple[list[int], list[int]]) -> Tensor:
        """How far the logits move, at each place of the target, from one pair to another."""
        return (self([to[0]], [to[1]]) - self([src], [tgt]))[0].abs().amax(-1)


@torch.no_grad()
def ask_runs(mine: Mine) -> str:
    model = Model(mine, first=True)
    all_layers_are_found(mine, model.module)
    src, tgt = [[4, 5, 2], [6, 2, 0]], [[1, 4], [1, 0]]
    logits = model(src, tgt)
    same_twice(logits, model(src, tgt))
    if (logits >= 0).all() and not far(logits.sum(-1), torch.ones(2, 2)):
        look = "Return the logits; cross_entropy has the softmax in it"
        raise Wrong("each row adds up to 1, so these are probabilities", f"{look} (section 9.1)")
    sizes = {"src_vocab": 11, "tgt_vocab": 13, "d_model": 12, "n_heads": 3, "n_layers": 1}
    other = module_of(mine, NAME, sizes | {"d_ff": 10}, ("src", "tgt"))
    long, longer = torch.full((2, 35), 4), torch.full((2, 40), 5)
    what = "Transformer(11, 13, 12, 3, 1, 10)(src, tgt)"
    tensor_of(what, mine.call(what, other, longer, long), (2, 35, 13), src=longer, tgt=long)
    return "logits of the right shape, for two models of different sizes"


def all_layers_are_found(mine: Mine, two_layers: nn.Module) -> None:
    """Raises Wrong where layers are hidden from PyTorch, or one layer is taken several times."""

    def n_numbers(module: nn.Module) -> int:
        return sum(p.numel() for p in module.parameters())

    if n_numbers(Model(mine, first=True, n_layers=3).module) > n_numbers(two_layers):
        wanted = dict.fromkeys((ENCODER, DECODER), 2)
    else:
        wanted = {}
    for name in (ENCODER, DECODER):
        kind = kind_of_layer(mine, name) if mine.has(name) else None
        n = sum(type(m) is kind for m in two_layers.modules())
        if n == 1:
            look = "[layer] * n_layers is one layer, n times; make a new one in each round"
            raise Wrong(f"of 2 {name}s there is only 1", f"{look} (section 8.2)")
        if n == 0 and kind is not None and _has_plain_list(two_layers, kind):
            wanted = {}
    if not wanted:
        raise Wrong(
            "model.parameters() does not hold all layers, so that nothing would train them",
            "A plain Python list hides them, so put them into nn.ModuleList. Or is n_layers not "
            "used? (section 8.2)",
        )


def _has_plain_list(model: nn.Module, kind: type[nn.Module]) -> bool:
    lists = (v for m in model.modules() for v in vars(m).values() if isinstance(v, list | tuple))
    return any(isinstance(each, kind) for several in lists for each in several)


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
            "Are the positions added to the source? (section 6.1)",
        ),
    ):
        moved = model.moved(src, tgt, to=(changed, tgt))
        if (moved < UNNOTICED).all():
            raise Wrong(symptom, look, src=src, changed=changed, tgt=tgt, logits_moved_by=moved)
    swapped = [1, 5, 4, 6]
    moved = model.moved(src, tgt, to=(src, swapped))
    if moved[-1] < UNNOTICED:
        look = "Are the positions added to the target? (section 6.1)"
        raise Wrong(
            "two words of the target changed places, and the last logits did not move",
            look, tgt=tgt, changed=swapped, logits_moved_by=moved,
        )  # fmt: skip
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
