"""One training for every model of chapter 15 that learns the language."""

import copy
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from transformer.checks import check_finite_and_positive, check_positive
from transformer.data.tokens import PAD_ID
from transformer.runtime import default_device
from transformer.training.objective import paper_optimizer
from transformer_book.experiments.family.language import LanguageBatches

WARMUP = 40  # steps
FALL = 5  # the last fifth of the steps


class Training:
    """A model on its way, with its optimiser: chapter 9's Adam, gradients cut to length 1.

    It can be copied, so that one way has many ends. The model moves to the GPU, if there is one.
    """

    def __init__(self, model: nn.Module, *, lr: float, seed: int, order: int = 1):
        check_finite_and_positive(lr=lr)
        self.lr, self.device = lr, default_device()
        self.model = model.to(self.device).train()
        self.optimizer = paper_optimizer(model.parameters())
        self.batches = LanguageBatches(seed, order=order)
        self.losses: list[Tensor] = []

    def run(self, until: int) -> None:
        """Steps at the full rate, which the first 40 rise to, up to step ``until``, from 1."""
        self._steps(until, lambda step: min(step / WARMUP, 1.0))

    def finished(self, n_steps: int) -> "Training":
        """A copy after ``n_steps`` in all; the rate falls to zero in what is left to do."""
        end, before = copy.deepcopy(self), len(self.losses)
        left = n_steps + 1 - before
        end._steps(n_steps, lambda step: min(step / WARMUP, (n_steps + 1 - step) / left))
        return end

    def _steps(self, until: int, rate_of: Callable[[int], float]) -> None:
        for step in range(len(self.losses) + 1, until + 1):
            batch = self.batches(step - 1).to(self.device)
            logits = self.model(*batch.inputs)
            loss = cross_entropy(logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD_ID)
            self.optimizer.param_groups[0]["lr"] = self.lr * rate_of(step)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
            self.optimizer.step()
            self.losses.append(loss.detach())


def steps_before_fall(n_steps: int) -> int:
    """How many of ``n_steps`` are made at the full rate: four fifths."""
    return n_steps - n_steps // FALL


def train_on_language(
    model: nn.Module, *, lr: float, seed: int, n_steps: int, order: int = 1
) -> tuple[nn.Module, list[float]]:
    """Teaches ``model(tokens) -> logits`` a language; returns it and each step's loss, in nats.

    The rate rises in 40 steps, stays at ``lr``, and falls to zero in the last fifth of the steps,
    as Hägele et al. (2024) have it. Raises ValueError for bad numbers.
    """
    check_positive(n_steps=n_steps)
    training = Training(model, lr=lr, seed=seed, order=order)
    training.run(steps_before_fall(n_steps))
    training = training.finished(n_steps)
    return training.model, torch.stack(training.losses).tolist()
