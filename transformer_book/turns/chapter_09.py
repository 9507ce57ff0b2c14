"""Chapter 9: the checks of its turns and exercises, with the mistakes that people make."""

import copy
import functools
import math
from typing import cast

import torch
from torch import nn
from torch.nn.functional import cross_entropy

from transformer.data.batches import Batch
from transformer.data.tokens import PAD_ID
from transformer_book.your_turn import Question, YourTurn


def _loop(*what, shift=1, zero=True, clip=1.0, ignore=PAD_ID):
    model, batches, n_steps, rate, make_adam = (*what, torch.optim.Adam)[:5]
    adam, losses = make_adam(model.parameters()), []
    for step in range(n_steps):
        src, tgt = batches(step)
        labels = tgt[:, shift : tgt.size(1) - 1 + shift]
        loss = cross_entropy(model(src, tgt[:, :-1]).mT, labels, ignore_index=ignore)
        if zero:
            adam.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), clip)
        adam.param_groups[0]["lr"] = rate(step)
        adam.step()
        losses.append(loss.item())
    return losses


class _Tiny(nn.Module):
    """A model that counts how often it was called outside of training mode."""

    def __init__(self, seed):
        super().__init__()
        torch.manual_seed(seed)
        self.words, self.output, self.n_in_eval = nn.Embedding(9, 5), nn.Linear(5, 9), 0
        self.output.weight.data *= 4 if seed < 2 else 1  # long gradients; some about 1

    def forward(self, src, tgt):
        self.n_in_eval += not self.training
        return self.output(self.words(tgt) + self.words(src).mean(dim=1, keepdim=True))

    def __repr__(self):
        return "a tiny model"


class _Named:
    """A function that prints as its name."""

    def __init__(self, name, function):
        self.name, self.function = name, function

    def __call__(self, *given, **options):
        return self.function(*given, **options)

    def __repr__(self):
        return self.name


def _tiny_batch(step):
    g = torch.Generator().manual_seed(step)
    tgt = torch.randint(4, 9, (2, 6), generator=g)
    tgt[:, 0], tgt[1, 4:] = 1, PAD_ID  # <bos>, and padding
    return Batch(torch.randint(4, 9, (2, 3), generator=g), tgt)


def _loop_inputs():
    tiny_batches = _Named("tiny batches", _tiny_batch)
    falling = _Named("0.1 / (step + 1)", lambda step: 0.1 / (step + 1))
    usual = _Named("torch.optim.Adam", torch.optim.Adam)
    shorter = functools.partial(torch.optim.Adam, betas=(0.9, 0.98))
    other = _Named("Adam with a β₂ of 0.98", shorter)
    yield _Tiny(0), tiny_batches, 2, falling, usual
    yield _Tiny(1), tiny_batches, 5, falling, other
    yield _Tiny(2), tiny_batches, 12, falling, usual
    # the gradients of one batch get small: what Adam keeps of the large ones has to fade
    one_batch = _Named("the same batch", lambda step: _tiny_batch(0))
    yield _Tiny(3), one_batch, 60, _Named("0.1", lambda step: 0.1), usual


class _OnACopy:
    """Trains a copy: its losses, its weights, the calls outside of training mode."""

    def __init__(self, train, **options):
        functools.update_wrapper(self, train)
        self.train, self.options = train, options
        self.__code__ = getattr(train, "__code__", None)

    def __call__(self, model, *given):
        model = copy.deepcopy(model)
        losses = self.train(model, *given, **self.options)
        weights = nn.utils.parameters_to_vector(model.parameters()).detach()
        if losses is not None and losses is not ...:
            losses = torch.as_tensor(losses)
        return losses, weights, model.n_in_eval


class _LoopTurn(YourTurn):
    def __call__(self, train):
        super().__call__(_OnACopy(train))

    def use(self, yours, solution, *, trained=True):
        chosen = super().use(_OnACopy(yours), _OnACopy(solution), trained=trained)
        return cast(_OnACopy, chosen).train


check_train = _LoopTurn(
    "Your turn 9.1",
    _OnACopy(_loop),
    list(_loop_inputs()),
    mistakes={
        "the labels must be one place later than what is given": _OnACopy(_loop, shift=0),
        "the gradients of the step before are still there": _OnACopy(_loop, zero=False),
        "padding counts as a word in yours": _OnACopy(_loop, ignore=-100),
        "the gradients are not cut": _OnACopy(_loop, clip=math.inf),
        "make_adam is not used": _OnACopy(lambda *what: _loop(*what[:4])),
    },
)


def _adam(theta, g, m, v, n, rate, *, corrected=1, root=0.5):
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g**2
    m_hat, v_hat = m / (1 - 0.9**n) ** corrected, v / (1 - 0.999**n) ** corrected
    return theta - rate * m_hat / (v_hat**root + 1e-8), m, v


def _adam_input(seed, *shape):
    g = torch.Generator().manual_seed(seed)
    theta, gradient, m, v = torch.randn(4, *shape, generator=g)
    return theta, gradient, m, v.abs(), seed + 1, 0.1 * (seed + 1)


def _adam_inputs():
    yield _adam_input(0, 1)
    tiny = torch.tensor([1e-8, -3e-8])  # as small as ε
    yield tiny, tiny, 0 * tiny, 0 * tiny, 1, 0.1
    yield _adam_input(3, 4)
    yield _adam_input(6, 2, 3)


check_adam = YourTurn(
    "Your turn 9.2",
    _adam,
    list(_adam_inputs()),
    mistakes={
        "m and v are not divided by 1 - β^n": functools.partial(_adam, corrected=0),
        "the root of v is missing": functools.partial(_adam, root=1),
    },
)

check_9_1 = Question(
    "Exercise 9.1",
    -0.92 * math.log(0.92) - 4 * 0.02 * math.log(0.02),
    mistakes={0.0: "that would need p = 1 for the label, which costs the other four"},
)
check_9_2 = Question("Exercise 9.2", 0.5, mistakes={0.25: "the root of 4", 2.0: "other way"})


def _adamw(theta, g, m, v, n, rate, decay):
    return _adam((1 - rate * decay) * theta, g, m, v, n, rate)


def _in_the_gradient(theta, g, m, v, n, rate, decay):
    return _adam(theta, g + decay * theta, m, v, n, rate)


check_9_3 = YourTurn(
    "Exercise 9.3",
    _adamw,
    [(*_adam_input(0, 1), 0.1), (*_adam_input(3, 4), 0.5)],
    mistakes={"this goes through Adam's division: decay the weights themselves": _in_the_gradient},
)


def _checkpoints():
    g = torch.Generator().manual_seed(0)
    yield (torch.tensor([[1.0, 2, 3], [3, 4, 5]]),)
    yield (torch.rand(5, 3, generator=g),)


check_9_4 = YourTurn(
    "Exercise 9.4",
    lambda rows: rows.mean(dim=0),
    list(_checkpoints()),
    mistakes={"this is the mean of each checkpoint": lambda rows: rows.mean(dim=1)},
)
check_9_5 = Question(
    "Exercise 9.5",
    "weights, averages, step",
    mistakes={"weights": "Adam remembers, too", "weights, step": "Adam remembers, too"},
)
