"""What the explorer shows: sentences, with the weights of all heads on them (chapter 12)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

from transformer.data.grammar import AlignedPair
from transformer.data.text import Vocabulary
from transformer.data.tokens import BOS_ID, EOS_ID
from transformer.metrics import Alignment
from transformer.model import Transformer
from transformer.multihead import record_attention
from transformer.runtime import evaluating

Kind = Literal["encoder", "decoder", "cross"]
TITLES: dict[Kind, str] = {
    "encoder": "encoder self-attention",
    "decoder": "decoder self-attention",
    "cross": "cross-attention",
}


@dataclass(frozen=True, eq=False)
class Explored:
    """A sentence, its translation, and the weights of all heads on them; chapter 12.

    ``source`` is what the encoder reads, ``target`` is <bos> … <eos>: row t of the maps "decoder"
    and "cross" reads target[t] and predicts target[t + 1], as in :mod:`transformer.metrics`, whose
    indices ``gold`` has too. A map is that of all layers, (layers, heads, T, S).

    Raises ValueError if lengths do not fit, or weights do not lie between 0 and 1.
    """

    source: Sequence[str]
    target: Sequence[str]
    maps: Mapping[Kind, Float[Tensor, "layers heads T S"]]
    gold: Alignment | None = None

    def __post_init__(self):
        if not self.maps or not self.maps.keys() <= TITLES.keys():
            raise ValueError(f"maps must be of the kinds {[*TITLES]}, got {[*self.maps]}")
        for kind, weights in self.maps.items():
            wanted = len(self.rows(kind)), len(self.columns(kind))
            if weights.dim() != 4 or weights.shape[2:] != wanted or not weights.numel():
                shape = "layers, heads, {}, {}".format(*wanted)
                got = tuple(weights.shape)
                raise ValueError(f"maps[{kind!r}] must have shape ({shape}), got {got}")
            low, high = weights.min().item(), weights.max().item()
            if not 0 <= low <= high <= 1.01:  # bfloat16 rounds; a comparison with NaN is false
                between = f"got {low:.3g} to {high:.3g}"
                raise ValueError(f"maps[{kind!r}] must lie between 0 and 1, {between}")
        S, T = len(self.source), len(self.target) - 1
        for i, j in self.gold or ():
            if not (0 <= i < S and 0 <= j < T):
                raise ValueError(f"gold must link {S} words to {T} words, got {(i, j)}")

    def rows(self, kind: Kind) -> Sequence[str]:
        """The words that look, as they are read."""
        return self.source if kind == "encoder" else self.target[:-1]

    def columns(self, kind: Kind) -> Sequence[str]:
        """The words that are looked at."""
        return self.target[:-1] if kind == "decoder" else self.source


def from_model(
    model: Transformer, pairs: Sequence[AlignedPair], vocabularies: tuple[Vocabulary, Vocabulary]
) -> list[Explored]:
    """What ``model`` attends to on each pair, with the reference as the decoder's input."""
    src_vocabulary, tgt_vocabulary = vocabularies
    device = next(model.parameters()).device
    sentences: list[Explored] = []
    with evaluating(model), record_attention(model) as recorded:
        for pair in pairs:  # one at a time: no padding
            src = [*src_vocabulary.encode(pair.source), EOS_ID]
            tgt = [BOS_ID, *tgt_vocabulary.encode(pair.target), EOS_ID]
            model(torch.tensor([src], device=device), torch.tensor([tgt[:-1]], device=device))
            layers: dict[Kind, list[Tensor]] = {kind: [] for kind in TITLES}
            for name, weights in recorded.items():  # decoder.layers.1.cross_attention
                kind: Kind = "encoder" if name.startswith("encoder.") else "decoder"
                layers["cross" if name.endswith("cross_attention") else kind].append(weights[0])
            maps = {kind: torch.stack(of_layers) for kind, of_layers in layers.items()}
            words = src_vocabulary.words(src), tgt_vocabulary.words(tgt)
            sentences.append(Explored(*words, maps, pair.alignment))
    return sentences
