"""What the models of the family have in common: an embedding and a stack of blocks (chapter 14)."""

import math
from collections.abc import Callable, Sequence
from functools import partial

import torch.nn.functional as F
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.cache import KeyValueCache
from transformer.checks import check_tokens
from transformer.family.config import FamilyConfig
from transformer.family.parts import (
    ActivatedFeedForward,
    GatedFeedForward,
    GroupedQueryAttention,
    RMSNorm,
)
from transformer.layers import Dropout, LayerNorm, Residual
from transformer.multihead import MultiHeadAttention
from transformer.positional import Positions

# The word in a configuration, and what it stands for.
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": F.relu,
    "gelu": F.gelu,  # x Φ(x), exactly
    "gelu_tanh": partial(F.gelu, approximate="tanh"),  # GPT-2's
    "swiglu": F.silu,
}


def make_norm(config: FamilyConfig) -> nn.Module:
    """The normalisation that ``config.norm`` names; chapter 14."""
    kind = {"layer": LayerNorm, "rms": RMSNorm}[config.norm]
    return kind(config.d_model, eps=config.norm_eps)


def make_attention(config: FamilyConfig, positions: Positions) -> MultiHeadAttention:
    """Chapter 5's, or with grouped keys; all layers share ``positions``; chapter 14."""
    c, options = config, {"bias": config.bias, "positions": positions}
    if c.n_key_heads == c.n_heads:
        return MultiHeadAttention(c.d_model, c.n_heads, **options)
    return GroupedQueryAttention(c.d_model, c.n_heads, c.n_key_heads, **options)


def make_feed_forward(config: FamilyConfig) -> nn.Module:
    """The network that ``config.feed_forward`` names; chapter 14."""
    c, activation = config, ACTIVATIONS[config.feed_forward]
    if c.feed_forward == "swiglu":
        return GatedFeedForward(c.d_model, c.d_ff, bias=c.bias)
    return ActivatedFeedForward(c.d_model, c.d_ff, activation=activation, bias=c.bias)


def make_residual(config: FamilyConfig) -> Residual:
    """Chapter 7's Add & Norm with the norm of ``config``; chapter 14."""
    residual = Residual(config.d_model, dropout=config.dropout, norm=config.norm_order)
    residual.norm = make_norm(config)
    return residual


class Embedding(nn.Module):
    """Dropout(norm(E[tokens] + positions + E_type[types])); chapter 14.

    The types are BERT's segments; the norm stands where ``norm_order`` normalises sums. As in
    chapter 8, E is multiplied by √d_model where the positions are sinusoidal.
    """

    def __init__(self, config: FamilyConfig):
        super().__init__()
        c, std = config, config.d_model**-0.5
        self.tokens = nn.Embedding(c.vocab_size, c.d_model)
        nn.init.normal_(self.tokens.weight, std=std)
        self.types = nn.Embedding(c.n_token_types, c.d_model) if c.n_token_types else None
        if self.types is not None:
            nn.init.normal_(self.types.weight, std=std)
        self.scale = math.sqrt(c.d_model) if c.position == "sinusoidal" else 1.0
        self.positions = c.positions_at_embedding()
        self.norm = make_norm(c) if c.norm_order == "post" else nn.Identity()
        self.dropout = Dropout(c.dropout)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        where: Int[Tensor, "_ T"],
        length: int,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """The tokens stand at positions ``where``, which are below ``length``."""
        x = self.tokens(tokens) * self.scale
        rows = self.positions.embed(x.new_zeros(1, length, x.size(-1)))[0]  # (length, d_model)
        x = x + F.embedding(where, rows)
        if self.types is not None:
            x = x + self.types(tokens.new_zeros(tokens.shape) if types is None else types)
        return self.dropout(self.norm(x))


class Block(nn.Module):
    """Self-attention, then the feed-forward network, each with Add & Norm; chapter 14.

    An encoder layer of chapter 8, of the parts that ``config`` names.
    """

    def __init__(self, config: FamilyConfig, *, positions: Positions):
        super().__init__()
        self.attention = make_attention(config, positions)
        self.feed_forward = make_feed_forward(config)
        self.residual_1, self.residual_2 = make_residual(config), make_residual(config)

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """With a ``cache`` (chapter 10), ``x`` holds the positions that it has not seen."""
        look = self.attention if cache is None else partial(self.attention, cache=cache)
        x = self.residual_1(x, lambda x: look(x, x, x, mask))
        return self.residual_2(x, self.feed_forward)


class Stack(nn.Module):
    """An embedding and ``n_layers`` blocks, with a last norm where they normalise first.

    Chapter 14. The mask alone makes a decoder or an encoder of it.
    """

    def __init__(self, config: FamilyConfig):
        super().__init__()
        self.config = config
        self.embedding = Embedding(config)
        positions = config.positions_in_attention()
        self.blocks = nn.ModuleList(
            Block(config, positions=positions) for _ in range(config.n_layers)
        )
        self.norm = make_norm(config) if config.norm_order == "pre" else nn.Identity()
        self.blocks.apply(initialise)

    @property
    def pad_id(self) -> int:
        return self.config.pad_id

    @property
    def max_len(self) -> int:
        return self.config.max_len

    def run(
        self,
        x: Float[Tensor, "B T d_model"],
        mask: Bool[Tensor, "..."] | None,
        caches: Sequence[KeyValueCache] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """The vectors that come out of the last block."""
        blocks = self.blocks
        if caches is not None:
            blocks = [partial(a, cache=b) for a, b in zip(blocks, caches, strict=True)]
        for block in blocks:
            x = block(x, mask)
        return self.norm(x)

    def check(self, tokens: Tensor, name: str = "tokens") -> None:
        """Raises ValueError for ids outside the vocabulary and lengths past ``max_len``."""
        check_tokens(tokens, self.config.vocab_size, name=name)
        if tokens.size(1) > self.config.max_len:
            raise ValueError(
                f"{name} must be no longer than max_len = {self.config.max_len}, "
                f"got {tokens.size(1)} tokens"
            )


def initialise(module: nn.Module) -> None:
    """Glorot and Bengio (2010), Eq. 16; biases are zero, as in chapter 8."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        if module.bias is not None:
            nn.init.zeros_(module.bias)
