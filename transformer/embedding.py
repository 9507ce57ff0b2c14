"""How tokens become vectors: a table, and where each token stands (chapters 8 and 14)."""

import math

from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.config import LayerConfig
from transformer.layers import Dropout
from transformer.positional import Start


class Embedding(nn.Module):
    """Dropout(E[tokens] √d_model + positions); Vaswani et al. (2017), sections 3.4, 3.5 and 5.4.

    Chapter 8. The table E starts with a standard deviation of 1/√d_model, which suits the output
    layer that shares it; times √d_model it is of the size of the positions.

    The models of chapter 14 have another ``scale``. BERT adds a vector for the segment of each
    token, one of ``n_types``, and has a ``norm`` before the dropout.
    """

    def __init__(
        self,
        vocab_size: int,
        config: LayerConfig,
        *,
        scale: float | None = None,
        n_types: int = 0,
        norm: nn.Module | None = None,
    ):
        super().__init__()
        self.tokens = _table(vocab_size, config.d_model)
        self.types = _table(n_types, config.d_model) if n_types else None
        self.scale = math.sqrt(config.d_model) if scale is None else scale
        self.positions = config.positions_at_embedding()
        self.norm = nn.Identity() if norm is None else norm
        self.dropout = Dropout(config.dropout)

    def forward(
        self,
        tokens: Int[Tensor, "B T"],
        start: Start = 0,
        types: Int[Tensor, "B T"] | None = None,
    ) -> Float[Tensor, "B T d_model"]:
        """The vectors of tokens from position ``start`` on; without ``types``, all of segment 0."""
        x = self.positions.embed(self.tokens(tokens) * self.scale, start)
        if self.types is not None:
            x = x + self.types(tokens.new_zeros(tokens.shape) if types is None else types)
        return self.dropout(self.norm(x))


def _table(n: int, d_model: int) -> nn.Embedding:
    table = nn.Embedding(n, d_model)
    nn.init.normal_(table.weight, std=d_model**-0.5)
    return table
