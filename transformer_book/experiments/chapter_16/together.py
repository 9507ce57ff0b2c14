"""One training for models of one kind: all rates and seeds at once, their weights side by side.

Each model takes the steps that it would take alone. A step of models so small is mostly starting
operations; side by side they share them, and on a GPU a step is one graph (chapter 13).
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.func import functional_call, stack_module_state, vmap
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import cross_entropy

from transformer.runtime import default_device
from transformer_book.experiments import Measures
from transformer_book.experiments.chapter_16.lines import DISTANCES, Lines

BATCH = 16  # texts a step
WARM_UP, FALL = 0.05, 0.2  # shares of the steps: the rate rises, and falls to nothing
BETAS, EPS, DECAY = (0.9, 0.98), 1e-9, 0.01  # AdamW; matrices decay


class Together:
    """Models of one kind, each with a seed and a rate of its own."""

    def __init__(
        self, make: Callable[[int], nn.Module], rates: Sequence[float], seeds: Sequence[int]
    ):
        device = default_device()
        self.seeds = seeds
        models = [make(seed).to(device) for seed in seeds]
        self.model = models[0]
        weights, self.buffers = stack_module_state(models)
        self.weights = {n: p.detach().clone().requires_grad_() for n, p in weights.items()}
        self.moments = {n: (torch.zeros_like(p), torch.zeros_like(p)) for n, p in weights.items()}
        self.rates = torch.tensor(rates, device=device)
        self.share, self.step = torch.zeros(2, device=device).unbind()  # of the rate; from 1

    def logits(self, tokens: Tensor, *, each: int | None = None) -> Tensor:
        """(models, B, T, words) of (models, B, T), or of the same (B, T) for all."""
        # of several models at once vmap knows the plain kernel; others it would call one by one
        with sdpa_kernel(SDPBackend.MATH) if len(self.rates) > 1 else nullcontext():
            return vmap(self._alone, in_dims=(0, 0, each))(self.weights, self.buffers, tokens)

    def _alone(self, weights: dict, buffers: dict, tokens: Tensor) -> Tensor:
        return functional_call(self.model, (weights, buffers), (tokens,))

    def learn(self, tokens: Tensor, back: Tensor) -> None:
        """One step of each, from texts (models, B, words): AdamW, gradients cut to length 1."""
        loss = vmap(_loss)(self.logits(tokens[..., :-1], each=0), tokens[..., 1:], back[..., 1:])
        weights = list(self.weights.values())
        gradients = torch.autograd.grad(loss.sum(), weights)
        length = (
            torch.stack([g.square().flatten(1).sum(dim=1) for g in gradients]).sum(dim=0).sqrt()
        )
        cut, lr = (1 / length).clamp(max=1.0), self.rates * self.share
        with torch.no_grad():
            self.step += 1
            for p, g, (m, v) in zip(weights, gradients, self.moments.values(), strict=True):
                of = (slice(None), *[None] * (p.dim() - 1))  # a number for each model
                g = g * cut[of]
                m.lerp_(g, 1 - BETAS[0])
                v.lerp_(g.square(), 1 - BETAS[1])
                if p.dim() > 2:
                    p.mul_(1 - DECAY * lr[of])
                m_hat, v_hat = m / (1 - BETAS[0] ** self.step), v / (1 - BETAS[1] ** self.step)
                p.sub_(lr[of] * m_hat / (v_hat.sqrt() + EPS))

    def run(self, texts: Lines, steps: Sequence[int]) -> Iterator[int]:
        """Trains up to the last of ``steps``, and stops at each of them."""
        n_steps, n = max(steps), len(texts.tokens)
        orders = [torch.randperm(n, generator=torch.Generator().manual_seed(s)) for s in self.seeds]
        order = torch.stack(orders).repeat(1, -(-(n_steps + 1) * BATCH // n))
        order = order.to(texts.tokens.device)
        batch = [x[order[:, :BATCH]].clone() for x in (texts.tokens, texts.back)]
        replay = None
        for step in range(n_steps + 1):
            if step in steps:
                yield step
            rows = order[:, step * BATCH : (step + 1) * BATCH]
            for kept, x in zip(batch, (texts.tokens, texts.back), strict=True):
                kept.copy_(x[rows])
            self.share.fill_(_share_of_rate(step, n_steps))
            if replay is None:
                replay = self._recorded(batch)
            replay()

    def _recorded(self, batch: list[Tensor]) -> Callable[[], object]:
        """A step on what ``batch`` holds by then; on a GPU as one graph."""
        if batch[0].device.type != "cuda":
            return lambda: self.learn(*batch)
        state = [*self.weights.values(), self.step, *sum(self.moments.values(), ())]
        before, aside = [x.detach().clone() for x in state], torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # the warm-up, which is taken back
            for _ in range(2):
                self.learn(*batch)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # recorded, not run
            self.learn(*batch)
        with torch.no_grad():
            for x, was in zip(state, before, strict=True):
                x.copy_(was)
        return graph.replay

    @torch.no_grad()
    def judged(self, texts: Lines) -> list[Measures]:
        """Measures of each model: nats a word above the floor, values found by distance."""
        tokens, back = texts.tokens[:, 1:], texts.back[:, 1:]
        parts = [self.logits(rows[:, :-1]) for rows in texts.tokens.split(32)]
        found: dict[str, Tensor] = {}
        right = torch.cat([x.argmax(dim=-1) for x in parts], dim=1) == tokens
        costs = torch.cat(
            [
                cross_entropy(x.flatten(0, 1).mT, y.repeat(len(x), 1), reduction="none").unflatten(
                    0, (len(x), -1)
                )
                for x, y in zip(parts, tokens.split(32), strict=True)
            ],
            dim=1,
        )
        words = back == 0
        found["excess"] = (costs - texts.floor[:, 1:])[:, words].mean(dim=1)
        for low, high in pairwise(DISTANCES):
            asked = (back >= low) & (back < high)
            found[str(low)] = right[:, asked].float().mean(dim=1)
        columns = zip(*(x.tolist() for x in found.values()), strict=True)
        return [{k: round(x, 4) for k, x in zip(found, column, strict=True)} for column in columns]

    def weights_of(self, i: int) -> dict[str, Tensor]:
        return {name: p[i].detach().cpu() for name, p in self.weights.items()}


def _loss(logits: Tensor, labels: Tensor, back: Tensor) -> Tensor:
    """The mean of the language's words, and of the values that are asked for: both count alike."""
    costs = cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="none").view_as(labels)
    words, asked = (back == 0).float(), (back > 0).float()
    return (costs * words).sum() / words.sum() + (costs * asked).sum() / asked.sum()


def _share_of_rate(step: int, n_steps: int) -> float:
    return min((step + 1) / (WARM_UP * n_steps), 1.0, (n_steps - step) / (FALL * n_steps))
