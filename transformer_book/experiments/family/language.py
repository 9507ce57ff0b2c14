"""Languages made up from a seed, whose entropy is known: what the models of chapter 15 learn."""

from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from transformer.checks import check_positive
from transformer.data.batches import TextBatch
from transformer.data.tokens import PAD_ID
from transformer.runtime import evaluating

N_SYMBOLS = {1: 511, 2: 127}  # for each order
LENGTH, BATCH_SIZE = 32, 16  # predictions a row; rows
BATCH_TOKENS = LENGTH * BATCH_SIZE
BATCHES_AT_ONCE = 64  # drawn together, which is quicker
N_TEST = 256  # rows


@dataclass(frozen=True)
class Language:
    """Text in which the last symbol or two say how likely each next one is: a Markov chain.

    ``probabilities[b, c]`` is that of c after b, in a language of order 1; [a, b, c] that of c
    after a b, in one of order 2. Symbol i has the id i + 1; the id 0 is <pad>.
    """

    probabilities: Float[np.ndarray, "*contexts V"]

    @classmethod
    def of_order(cls, order: int, *, n_symbols: int, seed: int = 0) -> "Language":
        """p(c | b) ∝ c^-1 exp(1.5 u(b, c)), c from 1, u normal numbers; or, of order 2,

        p(c | a b) ∝ c^-1.2 exp(1.2 u(b, c) + 0.8 v(a, c) + 0.8 w(a, b, c)). Symbols have
        frequencies as words have them (Zipf's law).
        """
        check_positive(n_symbols=n_symbols)
        n, rng = n_symbols, np.random.default_rng(seed)
        rank = np.log(np.arange(1, n + 1))
        if order == 1:
            p = np.exp(-rank + 1.5 * rng.standard_normal((n, n)))
        elif order == 2:
            of_b = 1.2 * rng.standard_normal((n, n))
            of_a = 0.8 * rng.standard_normal((n, 1, n))
            p = np.exp(-1.2 * rank + of_b + of_a + 0.8 * rng.standard_normal((n, n, n)))
        else:
            raise ValueError(f"order must be 1 or 2, got {order}")
        return cls(p / p.sum(axis=-1, keepdims=True))

    @property
    def order(self) -> int:
        return self.probabilities.ndim - 1

    @cached_property
    def contexts(self) -> Float[np.ndarray, "*contexts"]:
        """How often each symbol, or each pair, comes in text without end."""
        p = self.probabilities
        now, before = np.full(p.shape[:-1], len(p) ** -self.order), np.zeros(p.shape[:-1])
        while np.abs(now - before).sum() > 1e-12:
            before, now = now, np.einsum("a...,a...->...", now[..., None], p)
        return now

    @cached_property
    def entropy(self) -> float:
        """The least loss that there is, in nats per symbol: Σ p(context) · p(c) · -log p(c)."""
        p = self.probabilities
        return float((self.contexts * -(p * np.log(p)).sum(axis=-1)).sum())

    def write(self, n_rows: int, length: int, *, seed: list[int]) -> Int[Tensor, "n_rows length"]:
        """Rows of text, as ids; each begins with what is as frequent as in text without end."""
        check_positive(n_rows=n_rows, length=length)
        rng, V = np.random.default_rng(seed), len(self.probabilities)
        likely = self.contexts.ravel().cumsum()
        context = np.searchsorted(likely, rng.random(n_rows) * likely[-1])
        symbols = list(np.unravel_index(context, self.contexts.shape))
        for _ in range(length - self.order):
            at = np.searchsorted(self._cumulated, context + rng.random(n_rows))
            symbols.append(np.minimum(at - context * V, V - 1))
            context = (context * V + symbols[-1]) % likely.size
        return torch.from_numpy(np.stack(symbols[:length], axis=1) + PAD_ID + 1)

    @cached_property
    def _cumulated(self) -> Float[np.ndarray, " n"]:
        """The sums of all contexts, in one row: those of number i lie between i and i + 1."""
        cumulated = self.probabilities.cumsum(axis=-1).reshape(-1, len(self.probabilities))
        cumulated /= cumulated[:, -1:]
        return (cumulated + np.arange(len(cumulated))[:, None]).ravel()


class LanguageBatches:
    """batches(i) for ``fit``: new text each time, which depends on ``seed`` and i alone."""

    def __init__(self, seed: int, *, order: int = 1):
        self._seed, self._order = seed, order
        self._latest = (-1, torch.empty(0))

    def __call__(self, i: int) -> TextBatch:
        block, at = divmod(i, BATCHES_AT_ONCE)
        if block != self._latest[0]:
            rows, seed = BATCHES_AT_ONCE * BATCH_SIZE, [1, self._seed, block]
            text = language(self._order).write(rows, LENGTH + 1, seed=seed)
            self._latest = block, text.view(BATCHES_AT_ONCE, BATCH_SIZE, LENGTH + 1)
        return TextBatch(self._latest[1][at])


@cache
def language(order: int = 1) -> Language:
    """Chapter 15's: of order 1 for the scaling law, of order 2 for the blocks and the law again."""
    return Language.of_order(order, n_symbols=N_SYMBOLS.get(order, 1))


@cache
def _test(order: int) -> tuple[Int[Tensor, "B T"], Float[Tensor, "B _ V"]]:
    """Text to be judged on, and how likely each symbol is after each place that has a context."""
    text = language(order).write(N_TEST, LENGTH, seed=[2])
    symbols = text.numpy() - PAD_ID - 1
    before = [symbols[:, i : LENGTH - order + 1 + i] for i in range(order)]
    return text, torch.from_numpy(language(order).probabilities[tuple(before)]).float()


def excess_loss(model: nn.Module, *, order: int = 1) -> float:
    """The loss of ``model(tokens) -> logits`` above the entropy, in nats per symbol.

    The mean of Σ_c p(c) (log p(c) - log q(c)) over the places of a test text, p the language's
    probabilities and q the model's: 0 for a model that knows the language.
    """
    device = next(model.parameters()).device
    text, p = (x.to(device) for x in _test(order))
    with evaluating(model):
        log_q = model(text)[:, order - 1 :].float().log_softmax(dim=-1)[..., PAD_ID + 1 :]
    return float((p * (p.log() - log_q)).sum(dim=-1).mean())
