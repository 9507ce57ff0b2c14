"""List the book's experiments, and run what they lack: ``make experiments``.

Without a name it lists: of each experiment and arm the runs that are stored and wanted, the measure
over the seeds and how many of them have none, as they diverged, whether it is flat or still moving
at the last step, and a best rate at the edge of those tried. With names it runs what these lack,
one training after the other, and stores each the moment it ends; stopped or killed, it goes on
where it was. ``--jobs`` starts as many processes; so does calling it again while it runs.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from statistics import mean

import torch

from transformer_book.experiments import Arm, Experiment
from transformer_book.experiments.catalogue import catalogue
from transformer_book.experiments.running import complete, forget
from transformer_book.experiments.runs import Run, read


def arms_of(known: Experiment, chapter: int | None) -> dict[str, Arm]:
    """The arms that are asked for: all, or those of one chapter."""
    return {name: arm for name, arm in known.arms().items() if chapter in (None, arm.chapter)}


def listing(known: Experiment, arms: dict[str, Arm]) -> Iterator[str]:
    """A line for the experiment, then one for each arm."""
    runs = read(known.path).runs
    by_arm = {name: [run for run in runs if run.arm == name] for name in arms}
    missing = {name: known.n_wanted(arm, by_arm[name]) for name, arm in arms.items()}
    done = {name: len(own) for name, own in by_arm.items()}
    seconds = [run.seconds for run in runs if run.seconds is not None]
    n_missing = sum(missing.values())
    count = f"{sum(done.values())} of {sum(done.values()) + n_missing} runs"
    left = ""
    if n_missing and seconds:
        left = f", about {n_missing * mean(seconds) / 3600:.1f} hours to go"
    yield f"{known.name}: {known.question} {count}{left}"
    for name in arms:
        count = f"{done[name]} of {done[name] + missing[name]} runs"
        yield f"    {name}: {', '.join([count, *_facts(known, by_arm[name])])}"
    gone = {run.arm for run in runs} - set(known.arms())
    if gone:
        yield f"    no longer defined: {', '.join(sorted(gone))}"


def _facts(known: Experiment, runs: Sequence[Run]) -> Iterator[str]:
    """What an arm's stored runs say."""
    if not runs:
        return
    name = runs[0].arm
    if finals := known.finals(name):
        ends = [run.curve[run.n_steps].get(known.measure) for run in finals]
        numbers = [x for x in ends if x is not None]
        if numbers:
            spread = f"{known.measure} {min(numbers):.3g} to {max(numbers):.3g}"
            yield f"{spread} after {known.n_steps(name)} steps"
        if n_lost := len(ends) - len(numbers):
            yield f"{n_lost} of {len(ends)} diverged, without a {known.measure}"
        plateaus = {"moving": "still moving", "unknown": "flat or moving is not known"}
        yield plateaus.get(known.plateau(name), known.plateau(name))
    yield f"rate {known.rate(name):g}" + (" at the edge" if known.at_edge(name) else "")


def told(run: Run) -> str:
    """A run in a line."""
    last = ", ".join(
        f"{name} {'none' if x is None else format(x, '.4g')}"
        for name, x in run.curve[run.n_steps].items()
    )
    return (
        f"{run.arm}, {'sweep, ' if run.sweep else ''}rate {run.lr:g}, seed {run.seed}, "
        f"{run.n_steps} steps: {last}; {run.seconds:.0f} s"
    )


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    names = catalogue()
    parser = argparse.ArgumentParser(
        prog="make experiments", description=__doc__.splitlines()[0], allow_abbrev=False
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help="run these: " + ", ".join(names))
    parser.add_argument("--all", action="store_true", help="run all of them")
    parser.add_argument("--arm", action="append", default=[], help="of one experiment, this arm")
    parser.add_argument("--chapter", type=int, help="arms of this chapter alone")
    parser.add_argument("--anew", action="store_true", help="forget what is stored of these arms")
    parser.add_argument("--list", action="store_true", help="list the names, and run nothing")
    parser.add_argument("-j", "--jobs", type=int, default=1, metavar="N")
    options = parser.parse_args(arguments)
    if unknown := [name for name in options.names if name not in names]:
        parser.error(f"NAME must be one of {', '.join(names)}, got {unknown[0]!r}")
    options.names = list(names) if options.all else options.names
    if options.arm and len(options.names) != 1:
        parser.error(f"--arm must come with one NAME, got {len(options.names)}")
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    for name in options.names:
        if unknown := sorted(set(options.arm) - set(arms_of(names[name], options.chapter))):
            parser.error(f"--arm must be one of {name}'s arms, got {unknown[0]!r}")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    options = parsed(arguments)
    torch.set_num_threads(1)
    known = [catalogue()[name] for name in options.names or catalogue()]
    if options.list or not options.names:
        for one in known:
            arms = arms_of(one, options.chapter)
            if arms:
                print(*listing(one, arms), sep="\n", flush=True)
        return 0
    for one in known:
        if options.anew:
            forget(one, options.arm or list(arms_of(one, options.chapter)))
    # the others are this tool again, without the order to forget: locks tell them apart
    again = [a for a in arguments or sys.argv[1:] if a != "--anew"]
    command = [sys.executable, "-m", "tools.experiments", *again, "--jobs", "1"]
    others = [subprocess.Popen(command) for _ in range(options.jobs - 1)]
    for one in known:
        if wanted := options.arm or list(arms_of(one, options.chapter)):
            for run in complete(one, only=wanted):
                print(f"{one.name}: {told(run)}", flush=True)
    return max([other.wait() for other in others], default=0)


if __name__ == "__main__":
    sys.exit(main())
