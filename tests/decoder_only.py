"""A model without a source, of today's parts: proof that the package has room for chapter 14.

Rotary positions, grouped keys and values, RMSNorm, a gated feed-forward network, no biases. It is
put together from the package's parts as they are.
"""

import torch
from torch import Tensor, nn

from transformer.cache import DecodingState, KeyValueCache
from transformer.layers import Residual
from transformer.masks import causal_mask, padding_mask
from transformer.multihead import MultiHeadAttention
from transformer.positional import RotaryPositions


class GroupedQueryAttention(MultiHeadAttention):
    """Fewer heads of keys and values than of queries, each for a group; Ainslie et al. (2023)."""

    def __init__(self, d_model, n_heads, n_key_heads, **options):
        super().__init__(d_model, n_heads, **options)
        self.group = n_heads // n_key_heads
        bias = self.W_q.bias is not None
        self.W_k = nn.Linear(d_model, n_key_heads * self.d_k, bias=bias)
        self.W_v = nn.Linear(d_model, n_key_heads * self.d_k, bias=bias)

    def attend(self, q, k, v, mask, bias=None):
        k, v = (x.repeat_interleave(self.group, dim=1) for x in (k, v))
        return super().attend(q, k, v, mask, bias)


class GatedFeedForward(nn.Module):
    """(silu(x W_1) ⊙ x W_3) W_2, Shazeer (2020)."""

    def __init__(self, d_model, d_ff):
        super().__init__()
        self.W_1 = nn.Linear(d_model, d_ff, bias=False)
        self.W_3 = nn.Linear(d_model, d_ff, bias=False)
        self.W_2 = nn.Linear(d_ff, d_model, bias=False)

    def forward(self, x):
        return self.W_2(nn.functional.silu(self.W_1(x)) * self.W_3(x))


class Block(nn.Module):
    def __init__(self, d_model, n_heads, n_key_heads, positions):
        super().__init__()
        self.attention = GroupedQueryAttention(
            d_model, n_heads, n_key_heads, bias=False, positions=positions
        )
        self.feed_forward = GatedFeedForward(d_model, 2 * d_model)
        self.residual_1, self.residual_2 = (Residual(d_model, norm="pre") for _ in range(2))
        self.residual_1.norm, self.residual_2.norm = (nn.RMSNorm(d_model) for _ in range(2))

    def forward(self, x, mask=None, cache=None):
        x = self.residual_1(x, lambda x: self.attention(x, x, x, mask, cache=cache))
        return self.residual_2(x, self.feed_forward)


class Prompt(DecodingState):
    """What is kept between steps: no memory, but where the prompt is padding."""

    def __init__(self, words: Tensor, caches):
        super().__init__(None, caches)
        self.words = words  # (B, 1, 1, P), True = a word

    def select(self, rows):
        super().select(rows)
        self.words = self.words[rows]
        return self


class DecoderOnly(nn.Module):
    """model(tokens) -> the logits of the token after each. Prompts are padded on the left."""

    takes_cache = True

    def __init__(self, vocab_size=11, d_model=16, n_heads=4, n_key_heads=2, n_layers=2, max_len=20):
        super().__init__()
        self.pad_id, self.max_len, self.tgt_vocab_size = 0, max_len, vocab_size
        positions = RotaryPositions(max_len, d_model // n_heads)
        self.embedding = nn.Embedding(vocab_size, d_model)
        self.blocks = nn.ModuleList(
            Block(d_model, n_heads, n_key_heads, positions) for _ in range(n_layers)
        )
        self.norm, self.output = nn.RMSNorm(d_model), nn.Linear(d_model, vocab_size, bias=False)

    def forward(self, tokens):
        T = tokens.size(1)
        mask = padding_mask(tokens, self.pad_id) & causal_mask(T, device=tokens.device)
        return self.run(tokens, mask, [None] * len(self.blocks))

    def run(self, tokens, mask, caches):
        x = self.embedding(tokens)
        for block, cache in zip(self.blocks, caches, strict=True):
            x = block(x, mask, cache)
        return self.output(self.norm(x))

    def encode(self, prompt):
        return Written(prompt)

    def decode(self, tgt, memory):
        return self(torch.cat([memory.tokens, tgt], dim=1))[:, memory.tokens.size(1) :]

    def start_decoding(self, prompt, *, max_len):
        P = prompt.size(1)
        caches = [KeyValueCache(P + max_len) for _ in self.blocks]
        state = Prompt(padding_mask(prompt, self.pad_id), caches)
        if P:  # all of it at once
            self.run(prompt, state.words & causal_mask(P, device=prompt.device), caches)
        return state

    def decode_next(self, tokens, state):
        B, later = len(tokens), state.length + 1 - state.words.size(-1)
        mask = torch.cat([state.words, state.words.new_ones(B, 1, 1, later)], dim=-1)
        return self.run(tokens[:, None], mask, state.caches)[:, 0]


class Written:
    """A prompt, as the memory of decoding without a cache."""

    def __init__(self, tokens):
        self.tokens = tokens

    def select(self, rows):
        return Written(self.tokens[rows])
