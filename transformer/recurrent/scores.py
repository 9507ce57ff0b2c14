"""How well a query fits a key: the scores of Bahdanau and of Luong (chapter 2)."""

from jaxtyping import Float
from torch import Tensor, nn


class DotScore(nn.Module):
    """q · k, Luong et al. (2015), section 3.1, first form; chapter 2. It has no parameters.

    As in the classes below, ``forward(query, project_key(key))`` scores every query against every
    key; ``project_key`` is the part that is the same at each step of a decoder.
    """

    def project_key(self, key: Float[Tensor, "*batch S d"]) -> Float[Tensor, "*batch S d"]:
        return key

    def forward(
        self, query: Float[Tensor, "*batch T d"], projected: Float[Tensor, "*batch S d"]
    ) -> Float[Tensor, "*batch T S"]:
        return query @ projected.transpose(-2, -1)


class GeneralScore(DotScore):
    """q · W k, Luong et al. (2015), section 3.1, second form; chapter 2."""

    def __init__(self, d_query: int, d_key: int):
        super().__init__()
        self.W = nn.Linear(d_key, d_query, bias=False)

    def project_key(self, key: Float[Tensor, "*batch S d_key"]) -> Float[Tensor, "*batch S d"]:
        return self.W(key)


class AdditiveScore(nn.Module):
    """v · tanh(W q + U k), Bahdanau et al. (2015), appendix A.1.2; chapter 2."""

    def __init__(self, d_query: int, d_key: int, *, hidden_size: int):
        super().__init__()
        self.W = nn.Linear(d_query, hidden_size, bias=False)
        self.U = nn.Linear(d_key, hidden_size, bias=False)
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def project_key(self, key: Float[Tensor, "*batch S d_key"]) -> Float[Tensor, "*batch S d"]:
        return self.U(key)

    def forward(
        self, query: Float[Tensor, "*batch T d_query"], projected: Float[Tensor, "*batch S d"]
    ) -> Float[Tensor, "*batch T S"]:
        pairs = self.W(query).unsqueeze(-2) + projected.unsqueeze(-3)  # (*batch, T, S, hidden_size)
        return self.v(pairs.tanh()).squeeze(-1)
