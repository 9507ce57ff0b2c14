"""The one store of experiments: its schema, what is wanted next, running, the plateau, the list."""

import contextlib
import json
import math
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from types import SimpleNamespace

import jaxtyping
import nbformat
import pytest
import torch
from filelock import Timeout
from torch import nn

from tools import experiments as tool
from tools.chapters import ROOT
from transformer_book.experiments import (
    STORED,
    Arm,
    Cells,
    Experiment,
    Plan,
    along,
    chapter,
    experiment,
    provenance,
    running,
)
from transformer_book.experiments.arms import MOST_WIDENED
from transformer_book.experiments.catalogue import catalogue
from transformer_book.experiments.plateau import plateau
from transformer_book.experiments.running import complete, forget, run_one, store
from transformer_book.experiments.runs import Run, Stored, read, write
from transformer_book.experiments.translator.data import corpus

NAMES = list(catalogue())
MADE = {"python": "3", "torch": None}


def run_of(arm="one", lr=0.1, seed=0, marks=0.5, *, sweep=False, steps=(10,), **more):
    """A run that was measured ``marks`` after each of the steps."""
    facts = {"n_parameters": 3, "seconds": 1.0, "made": MADE}
    curve = {n: {"right": marks} for n in steps}
    return Run(
        arm=arm, sweep=sweep, lr=lr, seed=seed, n_steps=max(steps), curve=curve, **facts | more
    )


def small_arm(learn=None, *, rates=(0.1, 0.2, 0.4), steps=(10,)):
    def right(model, plan, n_steps):
        # best at the rate 0.2, whatever the seed
        return {"right": 1 - abs(math.log2(plan.lr / 0.2)) / 10}

    return Arm(
        lambda: nn.Linear(2, 1),
        learn=learn or right,
        rates=rates,
        steps=steps,
        seeds=(0, 1, 2),
        chapter=3,
    )


@pytest.fixture
def small(tmp_path):
    """An experiment of one arm that costs nothing."""
    return Experiment(
        path=tmp_path / "small.json",
        question="How?",
        measure="right",
        scale=1.0,
        define=lambda: {"one": small_arm()},
    )


# Arms


def test_an_experiment_is_made_of_the_function_that_returns_its_arms():
    def new():
        return nn.Linear(2, 1)

    def learn(model, plan, n_steps):
        return {"right": 1.0}

    def curve(model, plan):
        return {}

    def how():
        along_the_way = Arm(new, curve=curve, rates=(0.3,), seeds=(7,), chapter=0)
        return {"plain": new, "other": along_the_way}

    how.__module__ = "transformer_book.experiments.chapter_03"
    made = experiment("How?", measure="right", learn=learn, rates=(0.1,), steps=(5,))(how)
    assert (made.name, made.path, made.question) == ("how", STORED / "how.json", "How?")
    assert made.arms() == {
        "plain": Arm(new, learn=learn, rates=(0.1,), steps=(5,), seeds=(0, 1, 2), chapter=3),
        "other": Arm(new, curve=curve, rates=(0.3,), steps=(5,), seeds=(7,), chapter=0),
    }
    with pytest.raises(ValueError, match=r"how must have a learn .* steps for 'plain', got None"):
        replace(made, learn=None).arms()


# The schema


@pytest.mark.parametrize("name", NAMES)
def test_what_is_stored_is_whole(name):
    known = catalogue()[name]
    if not known.path.exists():
        return
    whole = json.loads(known.path.read_text(encoding="utf-8"))
    assert list(whole) == ["schema", "experiment", "arms", "made", "runs"]
    assert whole["experiment"] == name
    stored = known.stored()
    keys = Counter((run.arm, run.sweep, run.lr, run.seed) for run in stored.runs)
    assert set(keys.values()) == {1}
    assert {run.arm for run in stored.runs} == set(stored.arms)
    for run in stored.runs:
        assert run.n_parameters > 0
        assert run.n_steps == max(run.curve)
        assert all(point for point in run.curve.values())
        assert {"python", "torch", "device", "date", "commit"} <= set(run.made)
        assert known.measure in run.curve[run.n_steps]
    for arm in stored.arms:
        assert isinstance(stored.arms[arm]["chapter"], int)


def test_a_file_comes_back_as_it_was_written(tmp_path):
    path = tmp_path / "x.json"
    other = run_of("two", seed=None, made={"python": "4", "torch": "2"})
    stored = Stored({"two": {"chapter": 1}, "one": {"chapter": 2}}, (run_of(), other))
    write(path, stored)
    back = read(path)
    assert back.arms == stored.arms
    assert back.runs == (other, run_of())  # in the order of the arms
    assert len(json.loads(path.read_text())["made"]) == 2


def test_what_is_no_number_is_null_and_worse_than_any(tmp_path, small):
    runs = [
        run_of(lr=lr, seed=100, sweep=True, marks=x)
        for lr, x in ((0.1, 0.2), (0.2, 0.1), (0.4, math.nan))
    ]
    write(small.path, Stored({"one": {}}, tuple(runs)))
    assert small.rate("one") == 0.1
    assert replace(small, lower_is_better=True).rate("one") == 0.2
    with pytest.raises(ValueError, match="measure must be one of none, after one of 10 steps"):
        small.runs("one")[2].measured("right")


def test_another_schema_is_refused(tmp_path):
    path = tmp_path / "x.json"
    write(path, Stored({"one": {}}, (run_of(),)))
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    with pytest.raises(ValueError, match="path must be of schema 1, got 2"):
        read(path)


def test_an_arm_that_is_not_stored_is_refused(small):
    write(small.path, Stored({"one": {}}, (run_of(seed=100, sweep=True),)))
    with pytest.raises(ValueError, match="arm must be one of one, got 'two'"):
        small.spread("two")
    with pytest.raises(ValueError, match="arm must have runs at its best rate, got none of 'one'"):
        small.spread("one")


def test_a_seed_without_a_number_is_not_left_out_of_the_mean(small):
    runs = [
        run_of(lr=lr, seed=seed, marks=x, sweep=True)
        for lr, marks in ((0.1, (0.9, None)), (0.2, (0.3, 0.5)))
        for seed, x in zip((100, 101), marks, strict=True)
    ]
    write(small.path, Stored({"one": {}}, tuple(runs)))
    assert small.tried("one") == {0.1: pytest.approx(math.nan, nan_ok=True), 0.2: 0.4}
    assert small.rate("one") == 0.2


def test_runs_of_a_shorter_budget_are_no_results(small):
    runs = [run_of(seed=0, steps=(10,)), run_of(seed=1, steps=(20,), marks=0.7)]
    write(small.path, Stored({"one": {}}, tuple(runs)))
    assert small.values("one") == (0.7,)


def test_a_spread_is_from_the_lowest_seed_to_the_highest(small):
    runs = [run_of(seed=seed, marks=x) for seed, x in enumerate((0.5, 0.9, 0.2))]
    write(small.path, Stored({"one": {}}, tuple(runs)))
    assert small.spread("one") == (0.2, 0.9)
    assert small.mean("one") == pytest.approx(1.6 / 3)


def test_one_rate_alone_is_at_no_edge(small):
    write(small.path, Stored({"one": {}}, (run_of(lr=0.1, seed=100, sweep=True),)))
    assert not small.at_edge("one")


# What is wanted


def tried(known, arm):
    """The plans of an arm, in order, each done before the next is asked for."""
    plans = []
    runs = []
    while wanted := known.wanted(arm, runs):
        plans.append(wanted[0])
        runs.append(run_one("one", arm, wanted[0]))
    assert known.n_wanted(arm, runs) == 0
    return [(plan.lr, plan.seed, plan.steps) for plan in plans]


def test_rates_are_halved_and_doubled_until_the_best_lies_inside(small):
    rates = [lr for lr, *_ in tried(small, small_arm(rates=(0.8,)))]
    assert rates == [0.8, 0.4, 0.2, 0.1, 0.2, 0.2, 0.2]
    fixed = replace(small, widens=False)
    assert [lr for lr, *_ in tried(fixed, small_arm(rates=(0.4, 0.8)))] == [0.4, 0.8, *[0.4] * 3]
    assert tried(fixed, small_arm(rates=(0.8,))) == [(0.8, seed, (10,)) for seed in range(3)]


def test_a_sweep_that_finds_no_end_stops_and_says_so(small):
    def greedy(model, plan, n_steps):
        return {"right": plan.lr}

    plans = tried(small, small_arm(greedy, rates=(0.1, 0.2)))
    assert len(plans) == 2 + MOST_WIDENED + 3
    for lr, seed, _ in plans:
        store(small, small.arms(), run_of(lr=lr, seed=seed, marks=lr, sweep=seed == 100))
    assert small.at_edge("one")


def test_of_rates_that_are_all_right_the_middle_is_taken(small):
    def ceiling(model, plan, n_steps):
        return {"right": 0.5 if plan.lr > 0.3 else 1.0}

    arm = small_arm(ceiling, rates=(0.05, 0.1, 0.2, 0.4))
    assert [lr for lr, *_ in tried(small, arm)][4:] == [0.1] * 3


def test_each_number_of_steps_may_have_its_own_rate(small):
    each = replace(small, rate_for_each_step=True)

    def learn(model, plan, n_steps):  # short trainings like larger rates
        best = {20: 0.032, 40: 0.008}
        return {"right": -abs(math.log(plan.lr / best[n_steps]))}

    both, short = (20, 40), (20,)
    assert tried(each, small_arm(learn, rates=(0.008,), steps=both)) == [
        *((lr, 100, both) for lr in (0.008, 0.004, 0.016)),
        *((lr, 100, short) for lr in (0.032, 0.064)),
        *((0.008, seed, both) for seed in range(3)),
        *((0.032, seed, short) for seed in range(3)),
    ]


def test_two_tuning_seeds_are_both_wanted(small):
    two = replace(small, tuning_seeds=(100, 101), widens=False)
    plans = tried(two, small_arm(rates=(0.1, 0.2)))
    assert [plan[:2] for plan in plans[:4]] == [(0.1, 100), (0.1, 101), (0.2, 100), (0.2, 101)]


def test_a_longer_budget_is_wanted_anew(small):
    runs = [run_of(lr=lr, seed=100, sweep=True) for lr in (0.1, 0.2, 0.4)]
    longer = small_arm(steps=(10, 20))
    assert {plan.steps for plan in small.wanted(longer, runs)} == {(20,)}


# The plateau


def curves(*rows, steps=(0, 100, 200, 300)):
    return [
        {n: None if x is None else float(x) for n, x in zip(steps, row, strict=True)}
        for row in rows
    ]


@pytest.mark.parametrize(
    ("rows", "ends"),
    [
        pytest.param([(0, 0.5, 0.9, 0.919)] * 2, "flat", id="a change of less than 2 %"),
        pytest.param([(0, 0.5, 0.9, 0.921)] * 2, "moving", id="of more"),
        pytest.param([(0, 0, 0, 0.001), (0, 0, 0, 0.019)], "flat", id="0.01 and an error of 0.009"),
        pytest.param([(0, 0, 0, -0.0015), (0, 0, 0, 0.0215)], "moving", id="of 0.0115"),
        pytest.param([(0, 0.5, 0.9, 0.8), (0, 0.6, 0.9, 0.8)], "moving", id="getting worse"),
        pytest.param([(0.5, 0.51, 0.5, 0.5), (0.5, 0.49, 0.5, 0.51)], "flat", id="never learns"),
        pytest.param([(0, 0.5, 0.9, 0.9)], "unknown", id="one seed"),
        pytest.param([(0, 0.5, 0.9, None), (0, 0.6, 0.9, 0.9)], "unknown", id="no number"),
    ],
)
def test_a_plateau_is_told_from_a_slope_and_from_noise(rows, ends):
    assert plateau(curves(*rows), scale=1.0) == ends


def test_the_last_third_is_asked_and_the_untrained_model_is_not():
    early = curves((0, 0.1, 0.9, 0.9), (0, 0.1, 0.9, 0.9), steps=(0, 100, 250, 300))
    assert plateau(early, scale=1.0) == "moving"  # 250 is in the last third: 100 is asked
    assert plateau(curves((0, 0.9), (0, 0.9), steps=(0, 300)), scale=1.0) == "unknown"
    assert plateau([]) == "unknown"


def test_without_a_scale_the_range_of_the_curve_counts():
    small = curves((3.0, 2.90, 2.81, 2.80), (3.0, 2.90, 2.81, 2.80))
    assert plateau(small) == "moving"  # 0.01 of 0.2
    assert plateau(small, scale=3.0) == "flat"


def test_an_experiment_is_asked_for_its_plateau(small):
    for end, flat in ((0.91, True), (1.0, False)):
        curve = {10: {"right": 0.0}, 20: {"right": 0.9}, 30: {"right": end}}
        runs = (replace(run_of(seed=s), n_steps=30, curve=curve) for s in (0, 1))
        write(small.path, Stored({"one": {}}, tuple(runs)))
        assert small.flat("one") is flat


# Curves


def test_a_curve_along_one_training_is_that_of_shorter_ones():
    def at(steps):
        torch.manual_seed(0)
        model, x = nn.Linear(2, 1), torch.tensor([[1.0, 2.0]])
        plan = Plan(0.1, 0, steps, sweep=False)
        return along(
            lambda step: model(x).square().sum(),
            model.parameters(),
            lambda: {"out": model(x).item()},
            plan,
        )

    curve = at((0, 2, 5))
    assert list(curve) == [0, 2, 5]
    assert len({point["out"] for point in curve.values()}) == 3
    assert curve[2] == at((2,))[2]


def test_a_run_knows_what_it_was_made_from(monkeypatch):
    seen, clock = [], iter([10.0, 12.5])
    monkeypatch.setattr(running.time, "process_time", lambda: next(clock))

    def learn(model, plan, n_steps):
        seen.append(model.weight.tolist())
        return {"right": float(n_steps)}

    run = run_one("one", small_arm(learn), Plan(0.1, 7, (5, 10), sweep=False))
    torch.manual_seed(7)
    assert seen == [nn.Linear(2, 1).weight.tolist()] * 2  # both begin with the same
    assert (run.n_parameters, run.n_steps, run.seconds) == (3, 10, 2.5)
    assert run.curve == {5: {"right": 5}, 10: {"right": 10}}
    assert run.made == provenance.made()
    assert {"python", "torch", "device", "processor", "threads", "date", "commit"} == set(run.made)


def test_where_a_recipe_has_timed_training_alone_that_counts():
    found = {5: {"right": 0.0}, 10: {"right": 1.0, "seconds": 42.0}}
    timed = Arm(lambda: nn.Linear(2, 1), curve=lambda model, plan: found)
    run = run_one("one", timed, Plan(0.1, 7, (10,), sweep=False))
    assert (run.seconds, run.curve) == (42.0, {10: {"right": 1.0}})  # what the plan asks for
    with pytest.raises(ValueError, match=r"after \(10, 20\) steps, got none after \[20\]"):
        run_one("one", timed, Plan(0.1, 0, (10, 20), sweep=False))


# Running


def test_what_is_done_is_not_done_again_and_what_is_forgotten_is(small):
    assert len(list(complete(small))) == 6
    assert list(complete(small)) == []
    forget(small, ["one"])
    assert read(small.path).runs == ()
    assert len(list(complete(small))) == 6
    two = replace(small, define=lambda: {"two": small_arm(), "one": small_arm()})
    assert {run.arm for run in complete(two, only=["two"])} == {"two"}
    assert list(read(two.path).arms) == ["two", "one"]  # as they are defined


SCRIPT = """
import sys
from pathlib import Path
from torch import nn
from transformer_book.experiments import Experiment
from transformer_book.experiments.running import complete

def learn(model, plan, n_steps):
    print(plan.sweep, plan.lr, plan.seed, flush=True)
    sys.stdin.readline()  # the test says when it ends
    return {"right": -abs(plan.lr - 0.2)}

def define():
    return {"one": lambda: nn.Linear(2, 1)}

one = Experiment(path=Path(sys.argv[1]), question="", measure="right", define=define, learn=learn,
                 rates=(0.1, 0.2, 0.4), steps=(10,))
for run in complete(one):
    pass
"""
ALL = {f"True {lr} 100" for lr in (0.1, 0.2, 0.4)} | {f"False 0.2 {seed}" for seed in (0, 1, 2)}


@contextlib.contextmanager
def process(path):
    """One that says which run it begins, and ends it when it gets a line."""
    command = [sys.executable, "-c", SCRIPT, path]
    pipes = dict.fromkeys(("stdin", "stdout"), subprocess.PIPE)
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, env=environment, text=True, **pipes) as one:
        try:
            yield one
        finally:
            one.kill()


def begun(one):
    return one.stdout.readline().strip()


def test_processes_share_the_work_and_one_that_is_killed_loses_only_its_run(tmp_path):
    path = tmp_path / "runs.json"
    with process(path) as first, process(path) as second:
        both = {begun(first), begun(second)}
        assert both == {"True 0.1 100", "True 0.2 100"}  # each has claimed one
        first.stdin.write("\n")
        first.stdin.flush()
        assert begun(first) == "True 0.4 100"
        first.kill()
        first.wait()
        done = [run.lr for run in read(path).runs]
        assert len(done) == 1
        second.stdin.write("\n" * 9)
        second.stdin.close()
        rest = second.stdout.read().splitlines()
    assert len(read(path).runs) == 6
    assert "True 0.4 100" in rest  # whose claim ended with its process
    assert sorted([*both, *rest]) == sorted(ALL)


def test_the_file_is_read_and_written_while_no_other_process_does(small, monkeypatch):
    seen = []

    def watched(path, stored):
        with pytest.raises(Timeout):
            running._lock(small, "store").acquire(timeout=0)
        seen.append(len(stored.runs))

    monkeypatch.setattr(running, "write", watched)
    store(small, small.arms(), run_of())
    forget(small, ["one"])
    assert seen == [1, 0]


# A chapter's cells


def notebook(path, **cells):
    made = nbformat.v4.new_notebook()
    for name, source in cells.items():
        made.cells.append(nbformat.v4.new_code_cell(source, id=name.replace("_", "-")))
    nbformat.write(made, path)
    return path


PARTS = {
    "imports": "from transformer.masks import causal_mask\nfrom transformer_book import claim",
    "model": "def model():  # a comment\n    return causal_mask(3)",
    "train": "def learn(x):\n    return x\n\nlearned = learn(1 / 0)",
    "another": "raise SystemExit",
}


def cells_of(path, **changes):
    return Cells(notebook(path, **PARTS | changes), ("imports*", "mod?l"), ("train",))


def test_cells_are_run_and_of_some_only_what_they_define(tmp_path, capsys):
    names = cells_of(tmp_path / "03_x.ipynb", model="print('loud')\ntwo = 2").names()
    assert names.two == 2
    assert names.learn(5) == 5
    assert not hasattr(names, "learned")
    assert capsys.readouterr().out == ""


def test_a_chapter_that_is_not_there_is_refused():
    assert chapter(8, "translator-model*").path.name.startswith("08_")
    with pytest.raises(ValueError, match=r"number must be that of a notebook in .*, got 77"):
        chapter(77)


# The tool


@pytest.fixture
def listed(small, monkeypatch):
    """The tool knows the small experiment alone."""
    monkeypatch.setattr(tool, "catalogue", lambda: {"small": small})
    return small


def test_the_list_tells_what_is_done_and_wanted_diverged_moving_and_at_an_edge(listed, capsys):
    tool.main([])
    wanted = "small: How? 0 of 6 runs\n    one: 0 of 6 runs\n"
    assert capsys.readouterr().out == wanted
    tool.main(["small"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 6
    assert lines[0].startswith("small: one, sweep, rate 0.1, seed 100, 10 steps: right 0.9; ")
    runs = [run_of(lr=lr, seed=100, sweep=True, steps=(30,), marks=lr) for lr in (0.1, 0.2)]
    curve = {n: {"right": n / 30} for n in (10, 20, 30)}
    runs += [replace(run_of(lr=0.2, seed=s), n_steps=30, curve=curve) for s in (0, 1)]
    write(listed.path, Stored({"one": {}, "gone": {}}, (*runs, run_of("gone"))))
    tool.main(["--list"])
    out = capsys.readouterr().out
    for part in ("right 1 to 1 after 30 steps, still moving", "rate 0.2 at the edge"):
        assert part in out
    assert out.endswith("    no longer defined: gone\n")
    store(listed, listed.arms(), run_of(lr=0.2, seed=2, steps=(30,), marks=None))
    tool.main(["--list"])
    assert "30 steps, 1 of 3 diverged, without a right, flat or moving" in capsys.readouterr().out


def test_the_tool_takes_one_chapter_and_forgets_when_asked(listed, capsys):
    tool.main(["small", "--chapter", "4"])
    assert capsys.readouterr().out == ""
    for arguments in (["small"], ["small", "--anew", "--arm", "one"]):
        tool.main(arguments)
        assert len(capsys.readouterr().out.splitlines()) == 6


def test_an_unknown_name_is_refused(listed, capsys):
    with pytest.raises(SystemExit):
        tool.main(["small", "--arm", "two"])
    assert "one of small's arms, got 'two'" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        tool.main(["no such"])
    assert "NAME must be one of small, got 'no such'" in capsys.readouterr().err


@pytest.fixture
def corpus_made_unchecked():
    """The grammar writes 27,000 sentences: the check of every annotation would take a minute."""
    jaxtyping.config.update("jaxtyping_disable", True)
    assert corpus().examples
    jaxtyping.config.update("jaxtyping_disable", False)


@pytest.mark.parametrize("name", NAMES)
def test_every_arm_can_be_made_and_listed(name, corpus_made_unchecked):
    known = catalogue()[name]
    arms = known.arms()
    assert arms
    listed = replace(known, define=lambda: arms)  # which runs their cells once
    assert len(list(tool.listing(listed, arms))) > len(arms)
    for arm in arms.values():
        if name != "real_sentences":  # whose models know their pieces from Multi30k
            assert sum(p.numel() for p in arm.make().parameters()) > 0
        assert arm.steps == tuple(sorted(arm.steps))
        assert arm.rates == tuple(sorted(arm.rates))


def test_a_tuning_seed_that_is_reported_too_has_both_runs(small):
    for sweep in (True, False):
        store(small, small.arms(), run_of(sweep=sweep))
    assert len(read(small.path).runs) == 2


def test_only_the_arms_that_are_asked_for_are_forgotten_and_once(listed, monkeypatch):
    tool.main(["small"])
    tool.main(["small", "--chapter", "4", "--anew"])  # of which this experiment has no arm
    assert len(read(listed.path).runs) == 6
    begun = []
    process = SimpleNamespace(wait=lambda: 0)
    popen = SimpleNamespace(Popen=lambda command: begun.append(command) or process)
    monkeypatch.setattr(tool, "subprocess", popen)
    tool.main(["small", "--anew", "--jobs", "2"])
    assert ["--anew" in command for command in begun] == [False]
