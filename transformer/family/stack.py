"""What the models of chapters 14 and 15 have in common: an embedding and a stack of blocks."""

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial

from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.cache import KeyValueCache
from transformer.embedding import Embedding
from transformer.family.blocks import make_block
from transformer.family.config import FamilyConfig
from transformer.layers import NORMS, initialise
from transformer.masks import checked_padding_mask
from transformer.model import last_norm
from transformer.saved import Pretrained


class Stack(nn.Module, Pretrained):
    """An embedding and ``n_layers`` blocks, with a last norm where they normalise first.

    Chapter 14. A block is chapter 8's encoder layer, of the parts that ``config`` names. The mask
    alone makes a decoder or an encoder of the stack.

    The embeddings are multiplied by √d_model, as in chapter 8, only where the positions beside them
    are sinusoidal or ``config`` asks for it; and they are normalised where each sum is.
    """

    def __init__(self, config: FamilyConfig):
        super().__init__()
        c = config
        self.config = config
        scaled = c.scale_embeddings or c.position == "sinusoidal"
        self.embedding = Embedding(
            c.vocab_size,
            c,
            scale=math.sqrt(c.d_model) if scaled else 1.0,
            n_types=c.n_token_types,
            norm=NORMS[c.norm_kind](c.d_model, eps=c.norm_eps) if c.norm == "post" else None,
        )
        full = local = c.positions_in_attention()
        if c.local_rope_theta is not None:
            local = c.replace(rope_theta=c.local_rope_theta).positions_in_attention()
        self.blocks = nn.ModuleList(
            make_block(c, positions=full if window is None else local) for window in c.windows
        )
        self.norm = last_norm(c)
        self.blocks.apply(initialise)

    @property
    def pad_id(self) -> int | None:
        return self.config.pad_id

    @property
    def max_len(self) -> int:
        return self.config.max_len

    def run(
        self,
        x: Float[Tensor, "B T d_model"],
        mask: Bool[Tensor, "..."] | None,
        caches: Sequence[KeyValueCache] | None = None,
        *,
        local: Bool[Tensor, "..."] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """The vectors out of the last block; ``local`` is the mask of blocks with a window."""
        blocks: Iterable[Callable[..., Tensor]] = self.blocks
        if caches is not None:
            blocks = [partial(a, cache=b) for a, b in zip(blocks, caches, strict=True)]
        for block, window in zip(blocks, self.config.windows, strict=True):
            x = block(x, mask if window is None else local)
        return self.norm(x)

    def padding_mask(self, tokens: Tensor, name: str = "tokens") -> Bool[Tensor, "B 1 1 T"]:
        """True where words are; ValueError for unknown ids and lengths past ``max_len``."""
        c = self.config
        return checked_padding_mask(tokens, c.pad_id, c.vocab_size, c.max_len, name=name)
