"""Train the models of chapter 14 that are too many for its page, and store them: ``make family``.

Two experiments, each on a language that is made from a seed: the block of today against that of
GPT-2, one change at a time, with as many parameters; and five sizes with five numbers of tokens.
Each entry is trained with learning rates that are halved and doubled until the best has a worse
one on both sides, with seeds of their own, and then with the best rate and other seeds. Each run
is stored when it ends, so that a call goes on where another was stopped.
"""

import argparse
import json
import platform
import sys
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import torch

from tools.translator_so_far import commit
from transformer.family import DecoderOnly, FamilyConfig
from transformer.files import replace_file
from transformer.runtime import default_device
from transformer_book.family.language import excess_loss, language
from transformer_book.family.learning import Training, steps_before_fall
from transformer_book.family.models import (
    CHANGES,
    SIZES,
    block_config,
    count_embedding,
    count_parameters,
    scaling_config,
)
from transformer_book.family.results import (
    BLOCKS,
    SCALING,
    TUNING_SEED,
    best_rates,
    read_runs,
    tried,
)

CHOICES = {
    "blocks": {
        "order": 2,
        "first": (0.002, 0.004, 0.008, 0.016),
        "ends": (1000,),
        "tuning": (TUNING_SEED,),
        "seeds": range(5),
    },
    "scaling": {
        "order": 1,
        "first": (0.008,),
        "ends": (120, 240, 480, 960, 1920),
        "tuning": (TUNING_SEED,),
        "seeds": range(3),
    },
}


def train(config: FamilyConfig, *, lr: float, seed: int, ends: tuple[int, ...], order: int) -> dict:
    """One way with an end at each of ``ends`` steps: what is stored of it."""
    torch.manual_seed(seed)
    model = DecoderOnly(config)
    _ = language(order).contexts  # made before the clock starts
    start, training = time.process_time(), Training(model, lr=lr, seed=seed, order=order)
    excess, on_the_way = {}, {}
    for n_steps in ends:
        training.run(steps_before_fall(n_steps))
        excess[str(n_steps)] = round(excess_loss(training.finished(n_steps).model, order=order), 5)
        if len(ends) > 1:
            training.run(n_steps)
            on_the_way[str(n_steps)] = round(excess_loss(model, order=order), 5)
    return {
        "lr": lr,
        "seed": seed,
        "excess": excess,
        "on_the_way": on_the_way,
        "seconds": round(time.process_time() - start, 2),
    }


def rates_to_try(
    runs: list[dict], *, first: tuple[float, ...], ends: tuple[int, ...]
) -> dict[float, int]:
    """Which rates the tuning seeds lack, and up to how many steps.

    These are the ``first``; then the half and the double of the best of each number of steps, until
    each best has a worse rate on both sides.
    """
    found, longest = tried(runs), max(ends)
    missing = {lr: longest for lr in first if lr not in found.get(longest, {})}
    for n_steps in () if missing else ends:
        losses = found[n_steps]
        best = min(losses, key=losses.__getitem__)
        missing |= {lr: n_steps for lr in (best / 2, best * 2) if lr not in losses}
    return missing


def lacking(
    config: FamilyConfig,
    runs: list[dict],
    *,
    first: tuple[float, ...],
    ends: tuple[int, ...],
    tuning: Iterable[int],
    seeds: Iterable[int],
    order: int,
) -> Iterator[list[dict]]:
    """The runs that are lacking, some at a time; they are to join ``runs`` before the next."""
    while missing := rates_to_try(runs, first=first, ends=ends):
        lr = min(missing)
        some = _up_to(ends, missing[lr])
        yield [train(config, lr=lr, seed=seed, ends=some, order=order) for seed in tuning]
    best = best_rates(runs)
    for lr in sorted(set(best.values())):
        some = _up_to(ends, max(n_steps for n_steps in ends if best[n_steps] == lr))
        for seed in seeds:
            if not any((run["lr"], run["seed"]) == (lr, seed) for run in runs):
                yield [train(config, lr=lr, seed=seed, ends=some, order=order)]


def _up_to(ends: tuple[int, ...], longest: int) -> tuple[int, ...]:
    return tuple(n_steps for n_steps in ends if n_steps <= longest)


def store(path: Path, runs: list[dict]) -> None:
    made = {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "device": default_device().type,
        "date": time.strftime("%Y-%m-%d"),
        "commit": commit(),
    }
    lines = ",\n".join(json.dumps(run, ensure_ascii=False) for run in runs)
    replace_file(path, f'{{"made": {json.dumps(made)},\n"runs": [\n{lines}\n]}}\n')


def settings() -> dict[str, dict[str, FamilyConfig]]:
    """What is trained in each experiment, by the name that it is stored under."""
    return {
        "blocks": {name: block_config(name) for name in CHANGES},
        "scaling": {str(d_model): scaling_config(d_model) for d_model in SIZES},
    }


def described(name: str, config: FamilyConfig) -> dict:
    """What is stored with each run of a model of this configuration."""
    model = DecoderOnly(config)
    return {
        "name": name,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "n_parameters": count_parameters(model),
        "n_embedding": count_embedding(model),
    }


def complete(path: Path, configs: dict[str, FamilyConfig], **choices) -> None:
    """Trains what is lacking in ``path``, and stores it run by run."""
    runs = read_runs(path)
    for name, config in configs.items():
        own = [run for run in runs if run["name"] == name]
        about = described(name, config)
        for found in lacking(config, own, **choices):
            for run in found:
                own.append(about | run)
                runs.append(about | run)
                print(f"{name}: lr {run['lr']}, seed {run['seed']}, {run['excess']}", flush=True)
            store(path, runs)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make family", description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=sorted(CHOICES), help="this experiment alone")
    parser.add_argument("--anew", action="store_true", help="forget what is stored")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    for experiment, path in {"blocks": BLOCKS, "scaling": SCALING}.items():
        if options.only in (None, experiment):
            if options.anew:
                path.unlink(missing_ok=True)
            complete(path, settings()[experiment], **CHOICES[experiment])
    return 0


if __name__ == "__main__":
    sys.exit(main())
