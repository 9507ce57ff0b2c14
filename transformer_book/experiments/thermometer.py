"""Chapter 3: forty readings of a thermometer a day, and three who guess from them."""

import math
from collections.abc import Callable

import torch
from torch import Tensor

DAY = torch.arange(0, 24, 0.25)  # the moments that are asked for, in hours
N_DAYS = 10
Guess = Callable[[Tensor, Tensor, Tensor], Tensor]


def truth(hours: Tensor) -> Tensor:
    """The temperature in °C: coldest before dawn, a steep morning, a slow evening."""
    angle = 2 * math.pi * hours / 24
    return 12 + 6 * torch.cos(angle - 5 * math.pi / 4) + 2 * torch.cos(2 * angle)


def read_thermometer(seed: int, n: int = 40) -> tuple[Tensor, Tensor]:
    """The hours of n readings, in order, and degrees that are wrong by about one."""
    g = torch.Generator().manual_seed(seed)
    hours = (24 * torch.rand(n, generator=g)).sort().values
    return hours, truth(hours) + torch.randn(n, generator=g)


def average(moments: Tensor, hours: Tensor, degrees: Tensor) -> Tensor:
    """Exercise 3.2's look-up."""
    return (-((moments[:, None] - hours) ** 2) / 2).softmax(dim=-1) @ degrees


def nearest(moments: Tensor, hours: Tensor, degrees: Tensor) -> Tensor:
    return degrees[(moments[:, None] - hours).abs().argmin(dim=-1)]


def mean_of_all(moments: Tensor, hours: Tensor, degrees: Tensor) -> Tensor:
    return degrees.mean().expand(len(moments))


def errors(guess: Guess) -> Tensor:
    """The root of the mean square, of each of ten days."""
    days = [read_thermometer(seed) for seed in range(N_DAYS)]
    return torch.stack([(guess(DAY, *each) - truth(DAY)).square().mean().sqrt() for each in days])
