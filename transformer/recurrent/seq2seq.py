"""Translation by recurrent networks: through a fixed code, then with attention (chapters 1, 2)."""

import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Literal, get_args

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from transformer.attention import masked_softmax
from transformer.cache import Memory
from transformer.checks import check_choice, check_pad_id, check_positive, check_shape, check_tokens
from transformer.recurrent.cells import LSTM, RNN, Bidirectional
from transformer.recurrent.scores import AdditiveScore, DotScore, GeneralScore

Cell = Literal["lstm", "rnn"]
Score = Literal["additive", "dot", "general"]
Embedded = Float[Tensor, "B d_model"]  # one word of each sentence


@dataclass
class RecurrentState:
    """The state of a decoder between two words."""

    state: Float[Tensor, "B state"]

    def select(self, rows: Int[Tensor, " N"]) -> None:
        """Keeps these sentences, in this order; one may be named more than once."""
        self.state = self.state[rows]


@dataclass
class AttentionState(RecurrentState):
    """The state of a decoder with attention, which keeps the source to look it up at every word."""

    memory: Memory
    keys: Float[Tensor, "B S d"]  # what a score makes of the memory, once

    def select(self, rows: Int[Tensor, " N"]) -> None:
        super().select(rows)
        self.memory, self.keys = self.memory.select(rows), self.keys[rows]


class EncoderDecoder(nn.Module, ABC):
    """The part that both models below share, with the Transformer's methods; chapter 1.

    A model adds ``encode``, which makes the memory; ``start``, the decoder before its first word;
    and ``read``, which moves the decoder on by one word and gives what ``output`` turns into the
    logits of the next. ``decode`` and ``decode_next`` differ in where the words come from.
    """

    output: nn.Module  # linear: from what ``read`` gives to the logits
    max_len = sys.maxsize  # a recurrence has no end
    takes_cache = True  # its state is one

    def __init__(self, src_vocab_size: int, tgt_vocab_size: int, *, d_model: int, pad_id: int):
        super().__init__()
        check_positive(
            src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, d_model=d_model
        )
        check_pad_id(pad_id, src_vocab_size, tgt_vocab_size)
        self.pad_id, self.tgt_vocab_size = pad_id, tgt_vocab_size
        self.src_embedding = nn.Embedding(src_vocab_size, d_model)
        self.tgt_embedding = nn.Embedding(tgt_vocab_size, d_model)

    @abstractmethod
    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        """The memory: all that the decoder may know of each source sentence."""

    @abstractmethod
    def start(self, memory: Memory) -> Any:
        """The decoder's state before its first word."""

    @abstractmethod
    def read(self, y: Embedded, state: Any) -> Float[Tensor, "B read"]:
        """Moves ``state`` on by the word ``y``, and gives what ``output`` reads."""

    def forward(
        self, src: Int[Tensor, "B S"], tgt: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T tgt_vocab_size"]:
        """The logits after each token; ValueError for unknown ids and shapes that do not fit."""
        return self.decode(tgt, self.encode(src))

    def decode(
        self, tgt: Int[Tensor, "B T"], memory: Memory
    ) -> Float[Tensor, "B T tgt_vocab_size"]:
        """The logits after each token: position t sees 0 … t of ``tgt``, and the memory."""
        state = self.start(memory)
        steps = [self.read(y, state) for y in self._embed_target(tgt, memory)]
        return self.output(torch.stack(steps, dim=1))

    def start_decoding(self, src: Int[Tensor, "B S"], *, max_len: int) -> Any:
        """Encodes ``src``; a recurrent state needs the same room whatever ``max_len``."""
        return self.start(self.encode(src))

    def decode_next(
        self, tokens: Int[Tensor, " B"], state: Any
    ) -> Float[Tensor, "B tgt_vocab_size"]:
        """The logits after one more token of each sentence; ``state`` moves on by it.

        The tokens are not checked: they are what the last step's logits chose.
        """
        return self.output(self.read(self.tgt_embedding(tokens), state))

    def _embed_source(
        self, src: Tensor
    ) -> tuple[Float[Tensor, "B S d_model"], Bool[Tensor, "B S"]]:
        check_tokens(src, self.src_embedding.num_embeddings, name="src")
        return self.src_embedding(src), src != self.pad_id

    def _embed_target(self, tgt: Tensor, memory: Memory) -> tuple[Embedded, ...]:
        check_tokens(tgt, self.tgt_embedding.num_embeddings, name="tgt")
        B = memory.vectors.size(0)
        if tgt.size(0) != B:
            raise ValueError(f"tgt must have as many rows as the memory, {B}, got {tgt.size(0)}")
        return self.tgt_embedding(tgt).unbind(dim=1)


class Seq2Seq(EncoderDecoder):
    """The encoder's last state is the code C, and C is the decoder's first state; chapter 1.

    Sutskever et al. (2014), with one layer and the source in its own order. The memory is C: of
    one size, however long the sentence.

    Raises ValueError for a size that is not positive, an unknown ``cell`` and a ``pad_id`` outside
    the vocabularies.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        *,
        d_model: int = 128,
        hidden_size: int = 128,
        cell: Cell = "lstm",
        pad_id: int = 0,
    ):
        super().__init__(src_vocab_size, tgt_vocab_size, d_model=d_model, pad_id=pad_id)
        self.encoder = _make(cell, d_model, hidden_size)
        self.decoder = _make(cell, d_model, hidden_size)
        self.output = nn.Linear(hidden_size, tgt_vocab_size)

    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        """C, the state after the last word of each row."""
        x, mask = self._embed_source(src)
        _, code = self.encoder(x, mask=mask)
        return Memory(code)

    def start(self, memory: Memory) -> RecurrentState:
        """ValueError for a memory that is no code of this size."""
        check_shape(memory.vectors, "B", self.encoder.state_size, name="memory")
        return RecurrentState(memory.vectors)

    def read(self, y: Embedded, state: RecurrentState) -> Float[Tensor, "B hidden"]:
        h, state.state = self.decoder.step(y, state.state)
        return h


class AttentionSeq2Seq(EncoderDecoder):
    """s_t = f(s_{t-1}, y_{t-1}, c_t), where c_t = Σ_j a_tj h_j looks the source up at every word.

    Bahdanau et al. (2015), Eq. 4 to 6 and appendix A; chapter 2. The memory holds all h_j, from a
    bidirectional encoder with half of ``hidden_size`` each way. a_t is the softmax of the ``score``
    between s_{t-1} and the h_j: theirs, "additive", or one of Luong et al. (2015). The logits are
    linear in s_t and c_t, without the paper's maxout layer.

    Raises ValueError as :class:`Seq2Seq`, and for an odd ``hidden_size`` or an unknown ``score``.
    """

    def __init__(
        self,
        src_vocab_size: int,
        tgt_vocab_size: int,
        *,
        d_model: int = 128,
        hidden_size: int = 128,
        cell: Cell = "lstm",
        score: Score = "additive",
        pad_id: int = 0,
    ):
        super().__init__(src_vocab_size, tgt_vocab_size, d_model=d_model, pad_id=pad_id)
        if hidden_size % 2:
            raise ValueError(f"hidden_size must be even, half each way, got {hidden_size}")
        half = hidden_size // 2
        self.encoder = Bidirectional(_make(cell, d_model, half), _make(cell, d_model, half))
        self.decoder = _make(cell, d_model + hidden_size, hidden_size)
        self.W_s = nn.Linear(half, self.decoder.state_size)
        self.score = _make_score(score, hidden_size)
        self.output = nn.Linear(2 * hidden_size, tgt_vocab_size)

    def encode(self, src: Int[Tensor, "B S"]) -> Memory:
        """h_j = [→h_j, ←h_j], one for each word."""
        x, mask = self._embed_source(src)
        return Memory(self.encoder(x, mask), mask)

    def start(self, memory: Memory) -> AttentionState:
        """s_0 = tanh(W_s ←h_1), the paper's A.2.2, and the keys, the same at every word.

        ValueError for a memory of another width.
        """
        h = memory.vectors  # (B, S, hidden)
        check_shape(h, "B", "S", self.decoder.hidden_size, name="memory")
        _, leftward = h[:, 0].chunk(2, dim=-1)  # ←h_1 has read the whole sentence
        return AttentionState(self.W_s(leftward).tanh(), memory, self.score.project_key(h))

    def attend(self, state: AttentionState) -> Float[Tensor, "B S"]:
        """a_t, from the decoder's state before it writes word t; zeros at padding."""
        query = state.state[:, None, : self.decoder.hidden_size]  # (B, 1, hidden)
        scores, mask = self.score(query, state.keys), state.memory.mask  # (B, 1, S), (B, S)
        return masked_softmax(scores, None if mask is None else mask[:, None])[:, 0]

    def read(self, y: Embedded, state: AttentionState) -> Float[Tensor, "B both"]:
        context = (self.attend(state)[:, None] @ state.memory.vectors)[:, 0]  # (B, hidden)
        s, state.state = self.decoder.step(torch.cat([y, context], dim=-1), state.state)
        return torch.cat([s, context], dim=-1)

    def alignment(self, src: Int[Tensor, "B S"], tgt: Int[Tensor, "B T"]) -> Float[Tensor, "B T S"]:
        """A: row t holds the weights with which the word after ``tgt[:, t]`` is chosen."""
        memory = self.encode(src)
        state, rows = self.start(memory), []
        for y in self._embed_target(tgt, memory):
            rows.append(self.attend(state))
            self.read(y, state)
        return torch.stack(rows, dim=1)


def _make(cell: Cell, input_size: int, hidden_size: int) -> RNN:
    check_choice(get_args(Cell), cell=cell)
    if cell == "lstm":  # which at first forgets little: chapter 1 measures the difference
        return LSTM(input_size, hidden_size, forget_bias=1.0)
    return RNN(input_size, hidden_size)


def _make_score(score: Score, width: int) -> AdditiveScore | GeneralScore | DotScore:
    check_choice(get_args(Score), score=score)
    if score == "additive":
        return AdditiveScore(width, width, hidden_size=width)
    return GeneralScore(width, width) if score == "general" else DotScore()
