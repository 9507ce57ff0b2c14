"""Times the cases of a benchmark in turns, and stores the result: python -m benchmarks NAME"""

import argparse
from collections.abc import Callable

import torch

from benchmarks import timing
from benchmarks.attention import attention
from benchmarks.decoding import beam_search, greedy_decoding
from benchmarks.real_training import real_training
from benchmarks.training_step import training_step

# A benchmark makes of a setting's name and a device its cases, the first of which is what the
# others are compared with, and what is stored beside their times, such as bytes.
Benchmark = Callable[[str, torch.device], tuple[timing.Cases, dict]]
# With the number of rounds of each setting.
BENCHMARKS: dict[str, tuple[Benchmark, dict[str, int]]] = {
    "training_step": (training_step, {"small": 30, "base": 5}),
    "real_training": (real_training, {"small": 10}),
    "greedy_decoding": (greedy_decoding, {"small": 30, "base": 3}),
    "beam_search": (beam_search, {"small": 20, "base": 3}),
    "attention": (
        attention,
        {
            f"{tokens} tokens, {passes}": rounds
            for tokens, rounds in ((128, 20), (512, 10), (2048, 3))
            for passes in ("forward", "forward and backward")
        },
    ),
}


def main() -> None:
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("name", choices=BENCHMARKS)
    p.add_argument("--settings", nargs="+", help="such as small, or tiny for a rehearsal")
    p.add_argument("--rounds", type=int, help="instead of the benchmark's own number")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--device", type=torch.device, default=torch.device("cpu"))
    p.add_argument("--only", nargs="+", metavar="CASE", help="these alone; writes no result")
    p.add_argument("--cpu-time", action="store_true", help="for a busy machine and one thread")
    options = p.parse_args()
    torch.set_num_threads(options.threads)
    benchmark, rounds = BENCHMARKS[options.name]
    where = options.threads if options.device.type == "cpu" else options.device.type
    for setting in options.settings or rounds:
        cases, facts = benchmark(setting, options.device)
        if options.only:
            cases = {case: run for case, run in cases.items() if case in options.only}
        n_rounds = options.rounds or rounds.get(setting, 3)
        seconds = timing.interleave(cases, n_rounds, options.device, cpu_time=options.cpu_time)
        summary = timing.summary(seconds)
        timing.show(f"{options.name}, {setting}", summary, facts)
        if not options.only and setting != "tiny":
            timing.save(f"{options.name}-{where}", setting, {"cases": summary, **facts})


if __name__ == "__main__":
    main()
