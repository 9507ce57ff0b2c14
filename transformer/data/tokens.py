"""The four special ids, and the types of a sentence before and after it is encoded."""

from collections.abc import Sequence

from jaxtyping import Int
from torch import Tensor

PAD_ID, BOS_ID, EOS_ID, UNK_ID = range(4)
SPECIALS = ("<pad>", "<bos>", "<eos>", "<unk>")

Ids = Sequence[int] | Int[Tensor, "T"]
Sentence = str | Sequence[str]  # a line, or its words
Example = tuple[Sequence[int], Sequence[int]]  # source w1 … <eos>, target <bos> w1 … <eos>
