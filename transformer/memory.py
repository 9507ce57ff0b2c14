"""How much memory a model asks for, and how much there is: before anything is made."""

import os
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import nn

_COPIES = 4  # of a parameter in training: itself, its gradient and Adam's two moments


class Size(NamedTuple):
    """The numbers that a model is made of."""

    parameters: int  # each once, though several modules may share it
    parameter_bytes: int
    buffer_bytes: int  # tables of positions

    @property
    def in_training(self) -> int:
        """Bytes for Adam to train it, without what a batch takes."""
        return _COPIES * self.parameter_bytes + self.buffer_bytes

    @property
    def in_use(self) -> int:
        """Bytes for the model alone."""
        return self.parameter_bytes + self.buffer_bytes


def size_of(make: Callable[[Any], nn.Module], config: Any) -> Size:
    """The size of ``make(config)``, which is not made.

    A stack of layers is measured at one and at two layers, without memory, and goes on in a
    straight line: a million layers take no longer than two. A stack is a field of ``config``
    whose name ends in "layers".

    Raises ValueError where no tensor can be so large.
    """
    stacks = [f.name for f in fields(config) if f.name.endswith("layers")]
    thin = replace(config, **dict.fromkeys(stacks, 1))
    size = first = _measure(make, thin)
    for stack in stacks:
        one_more = _measure(make, replace(thin, **{stack: 2}))
        times = getattr(config, stack) - 1
        size = Size(*(n + times * (b - a) for n, a, b in zip(size, first, one_more, strict=True)))
    return size


def check_fits(
    needed: int, device: torch.device | str = "cpu", *, what: str, processes: int = 1
) -> None:
    """Raises ValueError, which says both sizes, where ``device`` has no ``needed`` bytes left.

    ``what`` begins the sentence; ``processes`` share the memory, each with as many bytes.
    """
    free = available(torch.device(device))
    if free is not None and needed * processes > free:
        each = f" in each of {processes} processes" if processes > 1 else ""
        raise ValueError(
            f"{what} needs at least {_spoken(needed)}{each}, and {device} has {_spoken(free)} left"
        )


def available(device: torch.device) -> int | None:
    """Bytes that ``device`` has left, None where it does not say.

    Of a CPU that is what Linux calls available, without swap, or all memory elsewhere; within the
    limit of the container or job that this process runs in.
    """
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    if device.type != "cpu":
        return None
    limits = [_of_machine(), *_of_control_groups()]
    return min((limit for limit in limits if limit is not None), default=None)


def _of_machine() -> int | None:
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        values = dict(line.split(":", 1) for line in lines)
        return int(values["MemAvailable"].split()[0]) * 1024  # it is given in KiB
    except (OSError, KeyError, ValueError):
        pass
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # as on Windows
        return None


def _of_control_groups(root: Path = Path("/sys/fs/cgroup")) -> list[int]:
    """The limits that Linux sets for a container or a job, in both versions of control groups."""
    try:
        listed = Path("/proc/self/cgroup").read_text().splitlines()
        own = next((line[3:].strip("/") for line in listed if line.startswith("0::")), "")
    except OSError:
        return []
    folders = [root / own, *(root / own).parents]  # each group stands under its parents' limits
    files = [folder / "memory.max" for folder in folders if folder.is_relative_to(root)]
    limits = []
    for file in (*files, root / "memory" / "memory.limit_in_bytes"):
        try:
            limits.append(int(file.read_text()))
        except (OSError, ValueError):  # there is none, or it says "max"
            continue
    return limits


def _measure(make: Callable[[Any], nn.Module], config: Any) -> Size:
    try:
        with torch.device("meta"):  # where a tensor has a shape and no numbers
            model = make(config)
    except RuntimeError as error:  # more numbers than PyTorch can count
        raise ValueError(f"a model of these sizes cannot be: {error}") from error
    parameters = list(model.parameters())
    return Size(
        sum(p.numel() for p in parameters),
        sum(p.nbytes for p in parameters),
        sum(buffer.nbytes for buffer in model.buffers()),
    )


def _spoken(n_bytes: int) -> str:
    """In the largest unit of which there is at least one; 1 GB is 10⁹ bytes."""
    size, units = float(n_bytes), iter(("B", "kB", "MB", "GB", "TB", "PB"))
    unit = next(units)
    while size >= 1000 and unit != "PB":
        size, unit = size / 1000, next(units)
    return f"{size:,.0f} {unit}" if size >= 100 or unit == "B" else f"{size:.1f} {unit}"
