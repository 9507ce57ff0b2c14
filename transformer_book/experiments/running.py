"""Running what is lacking: several processes may, one may be killed, and nothing is done twice.

Each process takes the next run that is wanted and that no other process has claimed, and stores it
when it ends. Claims and the store's lock end with the process that holds them, however it ends.
"""

import contextlib
import hashlib
import tempfile
import time
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path

import torch
from filelock import FileLock, Timeout

from transformer_book.experiments.arms import Arm, Experiment, Plan
from transformer_book.experiments.provenance import made
from transformer_book.experiments.runs import Run, Stored, read, write

LOCKS = Path(tempfile.gettempdir()) / "transformer-book-locks"
PATIENCE = 2.0  # seconds between two looks at what the others have done


def complete(experiment: Experiment, *, only: Collection[str] = ()) -> Iterator[Run]:
    """Trains what the experiment lacks, of all arms or of ``only`` these, and gives each new run.

    It is stored before it is given. Where all that is lacking is claimed by other processes, this
    waits for them, since what they find may ask for more.
    """
    arms = experiment.arms()
    chosen = {name: arms[name] for name in only or arms}
    while lacking := _lacking(experiment, chosen):
        for name, plan in lacking:
            claim = _lock(experiment, f"{name} {plan.sweep} {plan.lr} {plan.seed}")
            with contextlib.suppress(Timeout), claim.acquire(timeout=0):
                # another may have ended it between the look at the file and the claim
                if (name, plan) in _lacking(experiment, chosen):
                    run = run_one(name, chosen[name], plan, packages=experiment.packages)
                    store(experiment, arms, run)
                    yield run
                    break
        else:
            time.sleep(PATIENCE)


def run_one(name: str, arm: Arm, plan: Plan, *, packages: Iterable[str] = ()) -> Run:
    """One training of one arm, or one for each of the plan's steps; and its CPU seconds.

    Measuring is included, unless the recipe has timed training alone: a measure "seconds" of the
    last step.
    """

    def new() -> torch.nn.Module:
        torch.manual_seed(plan.seed)
        return arm.make()

    n_parameters = sum(p.numel() for p in new().parameters())
    start = time.process_time()
    if arm.curve:
        curve = {step: dict(measures) for step, measures in arm.curve(new(), plan).items()}
    else:
        assert arm.learn
        curve = {n_steps: dict(arm.learn(new(), plan, n_steps)) for n_steps in plan.steps}
    seconds = time.process_time() - start
    if missing := sorted(set(plan.steps) - set(curve)):
        raise ValueError(f"curve must measure after {plan.steps} steps, got none after {missing}")
    return Run(
        arm=name,
        sweep=plan.sweep,
        lr=plan.lr,
        seed=plan.seed,
        n_parameters=n_parameters,
        n_steps=max(plan.steps),
        curve={step: curve[step] for step in plan.steps},
        seconds=round(curve[max(plan.steps)].pop("seconds", None) or seconds, 2),
        made=made(*packages),
    )


def store(experiment: Experiment, arms: dict[str, Arm], run: Run) -> None:
    """Puts a run into the file, in the place of one of the same arm, rate, seed and purpose.

    Arms get the order of ``arms``; those that are no longer defined stay behind them.
    """
    with _lock(experiment, "store"):
        old = read(experiment.path)
        facts = {name: {"chapter": arm.chapter, **arm.about} for name, arm in arms.items()}
        own = {*(r.arm for r in old.runs), run.arm}
        about = {name: facts[name] for name in facts if name in own}
        about |= {name: old.arms[name] for name in old.arms if name not in about}
        kept = [other for other in old.runs if _key(other) != _key(run)]
        write(experiment.path, Stored(about, (*kept, run)))


def forget(experiment: Experiment, arms: Collection[str]) -> None:
    """Drops the runs of these arms."""
    with _lock(experiment, "store"):
        old = read(experiment.path)
        about = {name: facts for name, facts in old.arms.items() if name not in arms}
        write(experiment.path, Stored(about, tuple(r for r in old.runs if r.arm not in arms)))


def _lock(experiment: Experiment, what: str) -> FileLock:
    LOCKS.mkdir(exist_ok=True)
    name = hashlib.sha256(f"{experiment.path.resolve()} {what}".encode()).hexdigest()[:32]
    return FileLock(LOCKS / name)


def _lacking(experiment: Experiment, arms: dict[str, Arm]) -> list[tuple[str, Plan]]:
    runs = read(experiment.path).runs
    return [
        (name, plan)
        for name, arm in arms.items()
        for plan in experiment.wanted(arm, [run for run in runs if run.arm == name])
    ]


def _key(run: Run) -> tuple[str, bool, float, int | None]:
    return run.arm, run.sweep, run.lr, run.seed
