"""The whole model: encoder, decoder and what surrounds them (chapter 8)."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.cache import (
    DecodingState,
    KeyValueCache,
    LayerCache,
    Memory,
    MemoryCache,
    takes_cache,
)
from transformer.checks import check_positive, check_shape
from transformer.config import LayerConfig, TransformerConfig
from transformer.embedding import Embedding
from transformer.layers import FEED_FORWARDS, NORMS, Residual, initialise
from transformer.masks import checked_padding_mask, decoder_mask, word_positions
from transformer.multihead import MultiHeadAttention
from transformer.positional import Positions
from transformer.saved import Pretrained


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each with Add & Norm.

    Vaswani et al. (2017), section 3.1 and Figure 1, left; chapter 8. Under a causal mask it is a
    block of GPT, which writes with a ``cache`` (chapter 14).
    """

    def __init__(self, config: LayerConfig, *, positions: Positions | None = None):
        super().__init__()
        c = config
        self.self_attention = MultiHeadAttention(
            c.d_model, c.n_heads, n_key_heads=c.n_key_heads, bias=c.bias, positions=positions
        )
        self.feed_forward = FEED_FORWARDS[c.feed_forward](c.d_model, c.d_ff, bias=c.bias)
        self.residual_1, self.residual_2 = add_and_norm(c), add_and_norm(c)

    @property
    def takes_cache(self) -> bool:
        return takes_cache(self.self_attention)

    def forward(
        self,
        x: Float[Tensor, "B S d_model"],
        mask: Bool[Tensor, "..."] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Float[Tensor, "B S d_model"]:
        """The vectors after this layer; with a ``cache``, ``x`` holds only positions new to it."""
        attend: Callable[..., Tensor] = self.self_attention
        if cache is not None:
            attend = partial(attend, cache=cache)
        x = self.residual_1(x, lambda x: attend(x, x, x, mask))
        return self.residual_2(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the memory, the feed-forward network; Add & Norm thrice.

    Vaswani et al. (2017), section 3.1 and Figure 1, right; chapter 8.
    """

    def __init__(self, config: LayerConfig, *, positions: Positions | None = None):
        super().__init__()
        c = config
        attention = partial(
            MultiHeadAttention, c.d_model, c.n_heads, n_key_heads=c.n_key_heads, bias=c.bias
        )
        self.self_attention = attention(positions=positions)
        self.cross_attention = attention()
        self.feed_forward = FEED_FORWARDS[c.feed_forward](c.d_model, c.d_ff, bias=c.bias)
        self.residual_1, self.residual_2 = add_and_norm(c), add_and_norm(c)
        self.residual_3 = add_and_norm(c)

    @property
    def takes_cache(self) -> bool:
        return takes_cache(self.self_attention) and takes_cache(self.cross_attention)

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        memory: Float[Tensor, "sources S d_model"],
        tgt_mask: Bool[Tensor, "..."] | None = None,
        src_mask: Bool[Tensor, "..."] | None = None,
        cache: LayerCache | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """The vectors after this layer; with a ``cache``, ``x`` holds only positions new to it."""
        self_attention: Callable[..., Tensor] = self.self_attention
        cross_attention: Callable[..., Tensor] = self.cross_attention
        if cache is not None:  # chapter 10
            self_attention = partial(self_attention, cache=cache.self_attention)
            cross_attention = cache.cross_attention.used_by(cross_attention)
        x = self.residual_1(x, lambda x: self_attention(x, x, x, tgt_mask))
        x = self.residual_2(x, lambda x: cross_attention(x, memory, memory, src_mask))
        return self.residual_3(x, self.feed_forward)


class Encoder(nn.Module):
    """A stack of encoder layers, with a last LayerNorm where they normalise first; chapter 8."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        positions = config.positions_in_attention()
        self.layers = nn.ModuleList(
            EncoderLayer(config, positions=positions) for _ in range(config.n_encoder_layers)
        )
        self.norm = last_norm(config)
        self.apply(initialise)

    def forward(
        self, x: Float[Tensor, "B S d_model"], mask: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "B S d_model"]:
        for layer in self.layers:
            x = layer(x, mask)
        return self.norm(x)


class Decoder(nn.Module):
    """A stack of decoder layers, with a last LayerNorm where they normalise first; chapter 8."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        positions = config.positions_in_attention()
        self.layers = nn.ModuleList(
            DecoderLayer(config, positions=positions) for _ in range(config.n_decoder_layers)
        )
        self.norm = last_norm(config)
        self.apply(initialise)

    def forward(
        self,
        x: Float[Tensor, "B T d_model"],
        memory: Float[Tensor, "sources S d_model"],
        tgt_mask: Bool[Tensor, "..."] | None = None,
        src_mask: Bool[Tensor, "..."] | None = None,
        caches: Sequence[LayerCache] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        layers: Iterable[Callable[..., Tensor]] = self.layers
        if caches is not None:
            layers = [partial(a, cache=b) for a, b in zip(layers, caches, strict=True)]
        for layer in layers:
            x = layer(x, memory, tgt_mask, src_mask)
        return self.norm(x)


class Transformer(nn.Module, Pretrained):
    """The encoder-decoder of Vaswani et al. (2017), Figure 1; chapter 8.

    ``model(src, tgt)`` gives the logits of the token after each of ``tgt``. Tokens are ids; those
    equal to ``config.pad_id`` are padding: nothing attends to them, and before a text they take no
    position, so that it means the same wherever its padding stands.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.src_embedding = Embedding(config.src_vocab_size, config)
        self.tgt_embedding = Embedding(config.tgt_vocab_size, config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        self.output = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
        initialise(self.output)
        if config.share_embeddings:
            self.tgt_embedding.tokens.weight = self.src_embedding.tokens.weight
            self.output.weight = self.src_embedding.tokens.weight

    @property
    def pad_id(self) -> int | None:
        return self.config.pad_id

    @property
    def max_len(self) -> int:
        return self.config.max_len

    @property
    def tgt_vocab_size(self) -> int:
        return self.config.tgt_vocab_size

    @property
    def takes_cache(self) -> bool:
        """Whether all attention of the decoder takes a cache; parts from elsewhere may not."""
        return all(map(takes_cache, self.decoder.layers))

    def forward(
        self, src: Int[Tensor, "B S"], tgt: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T tgt_vocab_size"]:
        """The logits of the token after each of ``tgt``.

        Raises ValueError for ids outside the vocabularies and lengths past ``max_len``.
        """
        return self.decode(tgt, self.encode(src))

    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        """One vector for each source token, in its context; and which of them are padding."""
        mask = self._padding_mask(src, self.config.src_vocab_size, "src")  # (B, 1, 1, S)
        x = self.src_embedding(src, word_positions(mask))
        return Memory(self.encoder(x, mask), mask)

    def decode(
        self, tgt: Int[Tensor, "B T"], memory: Memory
    ) -> Float[Tensor, "B T tgt_vocab_size"]:
        """The logits after each token: t sees 0 … t of ``tgt``, and the memory but its padding."""
        words = self._padding_mask(tgt, self.config.tgt_vocab_size, "tgt")  # (B, 1, 1, T)
        check_shape(memory.vectors, tgt.size(0), "S", self.config.d_model, name="memory")
        tgt_mask = decoder_mask(words)  # & causal_mask(T): (B, 1, T, T), or (T, T) alone
        x = self.tgt_embedding(tgt, word_positions(words))
        return self.output(self.decoder(x, memory.vectors, tgt_mask, memory.mask))

    def start_decoding(self, src: Int[Tensor, "B S"], *, max_len: int) -> DecodingState:
        """Encodes ``src`` and makes room for ``max_len`` steps; chapter 10."""
        check_positive(max_len=max_len)
        if max_len > self.config.max_len:
            raise ValueError(f"max_len must be at most {self.config.max_len}, got {max_len}")
        caches = [LayerCache(KeyValueCache(max_len), MemoryCache()) for _ in self.decoder.layers]
        return DecodingState(self.encode(src), caches)

    def decode_next(
        self, tokens: Int[Tensor, " B"], state: DecodingState
    ) -> Float[Tensor, "B tgt_vocab_size"]:
        """The logits after one more token of each sentence; ``state`` grows by it.

        The tokens are not checked: they are what the last step's logits chose. A new token sees all
        before it.
        """
        x = self.tgt_embedding(tokens[:, None], start=state.next_position())
        vectors, mask = state.memory
        return self.output(self.decoder(x, vectors, state.mask(), mask, state.caches))[:, 0]

    def _padding_mask(
        self, tokens: Tensor, vocab_size: int, name: str
    ) -> Bool[Tensor, "B 1 1 length"]:
        """The mask of ids, which are checked first."""
        return checked_padding_mask(tokens, self.pad_id, vocab_size, self.max_len, name=name)


def add_and_norm(config: LayerConfig) -> Residual:
    """Add & Norm around one sub-layer, as ``config`` asks for it; chapter 7."""
    c = config
    return Residual(c.d_model, dropout=c.dropout, norm=c.norm, kind=c.norm_kind, eps=c.norm_eps)


def last_norm(config: LayerConfig) -> nn.Module:
    """The last norm of a stack whose layers normalise first, since nothing else does; chapter 8."""
    if config.norm == "post":
        return nn.Identity()
    return NORMS[config.norm_kind](config.d_model, eps=config.norm_eps)
