"""Recurrent networks: one state, carried from word to word (chapter 1)."""

import math

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from transformer.checks import check_positive, check_shape

State = Float[Tensor, "B state"]


class RNN(nn.Module):
    """h_t = tanh(W_x x_t + W_h h_{t-1} + b), Elman (1990); chapter 1.

    What the network carries from one step to the next, its state, is a single tensor: here h
    itself. Weights and bias start uniform within ±1/√hidden_size, as those of ``torch.nn.RNN``.

    Raises ValueError if a size is not positive.
    """

    parts = 1  # of the state, each hidden_size wide
    gates = 1  # sums that a step computes, each hidden_size wide

    def __init__(self, input_size: int, hidden_size: int, *, bias: bool = True):
        super().__init__()
        check_positive(input_size=input_size, hidden_size=hidden_size)
        self.input_size, self.hidden_size = input_size, hidden_size
        self.state_size = self.parts * hidden_size
        self.W_x = nn.Linear(input_size, self.gates * hidden_size, bias=bias)
        self.W_h = nn.Linear(hidden_size, self.gates * hidden_size, bias=False)
        for weight in self.parameters():
            nn.init.uniform_(weight, -1 / math.sqrt(hidden_size), 1 / math.sqrt(hidden_size))

    def forward(
        self,
        x: Float[Tensor, "B S input"],
        state: State | None = None,
        mask: Bool[Tensor, "B S"] | None = None,
    ) -> tuple[Float[Tensor, "B S hidden"], State]:
        """Every h_t, and the state after the last step; ``state`` None starts from zeros.

        Where ``mask`` is False stands padding: the state, and so h, stays what it was.

        Raises ValueError where shapes do not fit, there is no step, or ``mask`` is not bool.
        """
        self._check(x, mask)
        state = self._start(x, state)
        inputs = self.W_x(x).unbind(dim=1)  # waits for no state: one product for all S steps
        words = [None] * len(inputs) if mask is None else mask[:, :, None].unbind(dim=1)  # (B, 1)
        states = []
        for x_t, is_word in zip(inputs, words, strict=True):
            new = self.recur(x_t, state)
            state = new if is_word is None else torch.where(is_word, new, state)
            states.append(state)
        return torch.stack(states, dim=1)[..., : self.hidden_size], state

    def step(
        self, x_t: Float[Tensor, "B input"], state: State | None = None
    ) -> tuple[Float[Tensor, "B hidden"], State]:
        """One step alone: h_t and the state that holds it. ValueError where shapes do not fit."""
        check_shape(x_t, "B", self.input_size, name="x_t")
        state = self.recur(self.W_x(x_t), self._start(x_t, state))
        return state[:, : self.hidden_size], state

    def recur(self, x_t: Float[Tensor, "B sums"], state: State) -> State:
        """The recurrence; ``x_t`` is W_x x_t + b already."""
        return (x_t + self.W_h(state)).tanh()

    def _check(self, x: Tensor, mask: Tensor | None) -> None:
        check_shape(x, "B", "S", self.input_size, name="x")
        if x.size(1) == 0:
            raise ValueError(f"x must have at least one step, got shape {tuple(x.shape)}")
        if mask is None:
            return
        check_shape(mask, *x.shape[:2], name="mask")
        if mask.dtype != torch.bool:
            raise ValueError(f"mask must be bool with True = a word, got {mask.dtype}")

    def _start(self, x: Tensor, state: Tensor | None) -> Tensor:
        if state is None:
            return x.new_zeros(x.size(0), self.state_size)
        check_shape(state, x.size(0), self.state_size, name="state")
        return state


class LSTM(RNN):
    """c_t = f ⊙ c_{t-1} + i ⊙ g and h_t = o ⊙ tanh(c_t), with gates between 0 and 1; chapter 1.

    Hochreiter and Schmidhuber (1997), with the forget gate of Gers et al. (2000). The state is
    [h, c], side by side. W_x and W_h compute i, f, g and o in this order, that of
    ``torch.nn.LSTM``. ``forget_bias`` is where the bias of f starts; None leaves it random.

    Raises ValueError if a size is not positive, or for a ``forget_bias`` without ``bias``.
    """

    parts = 2
    gates = 4

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        *,
        bias: bool = True,
        forget_bias: float | None = None,
    ):
        super().__init__(input_size, hidden_size, bias=bias)
        if forget_bias is None:
            return
        if not bias:
            raise ValueError(f"forget_bias must be None where bias is False, got {forget_bias}")
        _, f, _, _ = self.W_x.bias.detach().chunk(4)
        f.fill_(forget_bias)

    def recur(self, x_t: Float[Tensor, "B sums"], state: State) -> State:
        """The recurrence; ``x_t`` is W_x x_t + b already."""
        h, c = state.chunk(2, dim=-1)
        i, f, g, o = (x_t + self.W_h(h)).chunk(4, dim=-1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()  # forget a part, write a part
        h = o.sigmoid() * c.tanh()  # show a part
        return torch.cat([h, c], dim=-1)


class Bidirectional(nn.Module):
    """[→h_s, ←h_s]: one network reads from the left, another from the right; chapter 1.

    Schuster and Paliwal (1997). The one on the right starts at the last word of each row, for
    padding leaves its state at zero.

    Raises ValueError if the two differ in ``input_size``.
    """

    def __init__(self, forward_rnn: RNN, backward_rnn: RNN):
        super().__init__()
        if forward_rnn.input_size != backward_rnn.input_size:
            sizes = f"{forward_rnn.input_size} and {backward_rnn.input_size}"
            raise ValueError(f"forward_rnn and backward_rnn must share input_size, got {sizes}")
        self.forward_rnn, self.backward_rnn = forward_rnn, backward_rnn

    def forward(
        self, x: Float[Tensor, "B S input"], mask: Bool[Tensor, "B S"] | None = None
    ) -> Float[Tensor, "B S both"]:
        """Both h of every position. ValueError where shapes do not fit or there is no step."""
        rightward, _ = self.forward_rnn(x, mask=mask)
        reverse = None if mask is None else mask.flip(1)
        leftward, _ = self.backward_rnn(x.flip(1), mask=reverse)
        return torch.cat([rightward, leftward.flip(1)], dim=-1)
