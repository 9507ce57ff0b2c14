"""An encoder without a decoder: BERT (chapter 14)."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.checks import check_positive, check_tokens
from transformer.family.config import FamilyConfig
from transformer.family.stack import Stack
from transformer.layers import ACTIVATIONS, NORMS, initialise


class MaskedWordHead(nn.Module):
    """norm(gelu(x W + b)) Eᵀ + c: the logits of the word that stood at each position.

    Devlin et al. (2019), Task 1, as their code has it; chapter 14. The activation is that of the
    feed-forward networks.
    """

    def __init__(self, config: FamilyConfig):
        super().__init__()
        c = config
        self.W = nn.Linear(c.d_model, c.d_model, bias=c.bias)
        self.activation = ACTIVATIONS[c.feed_forward]
        self.norm = NORMS[c.norm_kind](c.d_model, eps=c.norm_eps)
        self.output = nn.Linear(c.d_model, c.vocab_size)
        self.apply(initialise)

    def forward(self, x: Float[Tensor, "*batch d_model"]) -> Float[Tensor, "*batch vocab_size"]:
        return self.output(self.norm(self.activation(self.W(x))))


class Pooler(nn.Module):
    """tanh(x_0 W + b), x_0 the vector of the first token: one for the whole text; chapter 14.

    Devlin et al. (2019), Task 2, as their code has it.
    """

    def __init__(self, d_model: int):
        super().__init__()
        check_positive(d_model=d_model)
        self.W = nn.Linear(d_model, d_model)
        initialise(self.W)

    def forward(self, x: Float[Tensor, "B T d_model"]) -> Float[Tensor, "B d_model"]:
        return torch.tanh(self.W(x[:, 0]))


class EncoderOnly(Stack):
    """A vector for each token, in its context on both sides: a stack without the causal mask.

    Devlin et al. (2019); chapter 14. ``model(tokens)`` gives the logits of the word at each
    position, for texts with masked words; :meth:`encode` gives the vectors, for a head of one's
    own. Tokens equal to ``config.pad_id`` are padding, and nothing attends to them; at None every
    token is text. Positions are counted from the first column, as in the published BERT, so that
    texts are padded on the right. ``pooler`` is None but in a model whose loaded weights have one.
    """

    def __init__(self, config: FamilyConfig):
        if config.window is not None:
            raise ValueError(f"window must be None in an encoder, got {config.window}")
        super().__init__(config)
        self.pooler: Pooler | None = None
        self.head = MaskedWordHead(config)
        if config.tie_embeddings:
            self.head.output.weight = self.embedding.tokens.weight

    def forward(
        self, tokens: Int[Tensor, "B T"], types: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T vocab_size"]:
        """The logits of the word at each position; errors are those of :meth:`encode`."""
        return self.head(self.encode(tokens, types))

    def encode(
        self, tokens: Int[Tensor, "B T"], types: Int[Tensor, "B T"] | None = None
    ) -> Float[Tensor, "B T d_model"]:
        """The vectors; ``types`` gives the segment of each token, which otherwise is 0.

        Raises ValueError for ids outside the vocabulary, lengths past ``max_len``, and types of a
        model that has none or not as many.
        """
        words = self.padding_mask(tokens)
        if types is not None:
            if not self.config.n_token_types:
                raise ValueError("types must be None in a model without token types, got a tensor")
            check_tokens(types, self.config.n_token_types, name="types")
            if types.shape != tokens.shape:
                wanted, got = tuple(tokens.shape), tuple(types.shape)
                raise ValueError(f"types must have the shape of tokens, {wanted}, got {got}")
        return self.run(self.embedding(tokens, types=types), words)
