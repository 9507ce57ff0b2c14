"""The living figures' files: the numbers that come from chapters."""

import json
import math
import re

import pytest
import torch
from torch import nn

from tests.site.living import SOURCE, cells_of, run_cells
from transformer.attention import attention
from transformer_book.experiments.chapter_09 import mistakes
from transformer_book.experiments.thermometer import read_thermometer
from website import depths, small_runs
from website.extensions.living_files import write_living_files


def text_of(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def numbers_in(name, pattern):
    """The array of a script that the pattern's group finds."""
    array = re.search(pattern, text_of(name), flags=re.DOTALL)[1]
    return torch.tensor(json.loads(re.sub(r",\s*\]", "]", array)), dtype=torch.float64)


def test_the_ten_days_are_written_as_chapter_3_draws_them(tmp_path):
    write_living_files(tmp_path)
    (text,) = re.findall(
        r"^export const DAYS = (.*);$", (tmp_path / "readings.js").read_text(), re.M
    )
    days = torch.tensor(json.loads(text))
    assert days.shape == (10, 2, 40)
    expected = torch.stack([torch.stack(read_thermometer(seed)) for seed in range(10)])
    torch.testing.assert_close(days, expected, rtol=0, atol=6e-4)


def test_the_threads_times_are_those_that_chapter_13_has_printed(tmp_path):
    write_living_files(tmp_path)
    text = (tmp_path / "thread.js").read_text(encoding="utf-8")
    thread = json.loads(re.search(r"^export const THREAD = (.*);$", text, re.M)[1])
    cells = cells_of(13)
    limits, rows = (
        "".join(each.text for each in cells[name].outputs if each.output_type == "stream")
        for name in ("roof", "rows-run")
    )
    peak, bandwidth, equal = map(float, re.findall(r"(?:peak|bandwidth|at) ([\d.]+)", limits))
    assert [thread["peak"], thread["bandwidth"]] == [1e9 * peak, 1e9 * bandwidth]
    a_row = 2 * 2048**2 / peak - 8 * 2048 / bandwidth
    assert equal == pytest.approx(4 * 2048**2 / bandwidth / a_row, abs=1)  # before it was rounded
    printed = [(int(line.split()[0]), float(line.split()[2])) for line in rows.splitlines()]
    assert [n for n, _ in printed] == [1, 4, 16, 64, 512]
    assert [(n, pytest.approx(1000 * s)) for n, s in thread["measured"]] == printed


def rows_of(name, path=SOURCE / "depths.js"):
    """The rows of a block: for a wiring, (layers, 9), for a norm the runs, (runs, 10)."""
    block = re.search(rf"  {name}: \[(.*?)\n  \]", path.read_text("utf-8"), flags=re.DOTALL)[1]
    return torch.tensor(json.loads(f"[{block.rstrip(',')}]"), dtype=torch.float64)


@pytest.mark.parametrize("wire", depths.WIRES)
def test_the_stacks_are_those_that_chapter_7_measures(wire):
    given = {"attention": attention, "cross_entropy": nn.functional.cross_entropy}
    names = run_cells(7, *depths.CELLS, **given)
    rows = rows_of(wire)
    assert rows.shape == (32, 9)
    for n in (1, 3, 8):
        stacks = [names["examine"](names["fresh"](n, names[wire], seed)) for seed in range(3)]
        row = [names["size"](g[0]) / names["size"](g[n]) for _, g in stacks]
        row += [names["own"](vectors[n]) for vectors, _ in stacks]
        row += [names["own"](gradients[0]) for _, gradients in stacks]
        expected = torch.tensor(row, dtype=torch.float64).clamp(min=1e-7)
        torch.testing.assert_close(rows[n - 1], expected, rtol=0.05, atol=1e-6)


def printed_by(chapter, name):
    return "".join(each.get("text", "") for each in cells_of(chapter)[name].outputs)


def runs_of(norm):
    """What is stored of a norm: (warm-up, rate, seed, block of ten steps)."""
    return rows_of(norm, SOURCE / "small_runs.js").view(4, 9, 3, 10)


@pytest.fixture(scope="module")
def chapter_9():
    """What the chapter's cells define."""
    return run_cells(9, "imports", "counts", "small", "bucketed", "loops")


@pytest.mark.parametrize("norm", small_runs.NORMS)
def test_the_small_runs_are_those_of_chapter_9s_loop(norm, chapter_9):
    stored = runs_of(norm)
    for warm_up, rate, seed in ((0, 0.016, 0), (20, 0.008, 1), (50, 0.08, 2), (100, 0.032, 0)):
        at = small_runs.WARM_UPS.index(warm_up), small_runs.RATES.index(rate), seed
        rates = [rate * (min(n, warm_up) / warm_up if warm_up else 1) for n in range(1, 21)]
        model = chapter_9["small"](seed, norm=norm)
        losses = chapter_9["loop"](
            model, chapter_9["batches"], 20, rates.__getitem__, clip=math.inf
        )
        blocks = torch.tensor(losses, dtype=torch.float64).view(2, 10).mean(dim=1)
        torch.testing.assert_close(stored[at][:2], blocks, rtol=0.005, atol=0)


def test_three_arms_end_as_chapter_9_has_stored_them():
    for name, rate in (("healthy", 0.008), ("rate ÷ 100", 0.00008)):
        ends = runs_of("pre")[1, small_runs.RATES.index(rate), :, -2:].mean(dim=1)
        assert ends.tolist() == pytest.approx(mistakes.values(name, "last")[:3], abs=0.01)
    far = runs_of("pre")[1, small_runs.RATES.index(0.8), :, -2:].mean(dim=1)
    assert min(*far.tolist(), *mistakes.values("rate × 100", "last")) > 20  # whatever it is


def test_the_marks_of_the_runs_are_chapter_9s():
    def constant(name):
        return re.search(rf"export const {name} = (.*?);", text_of("runs.js"))[1]

    assert f"the test: {float(constant('COUNTING')):.2f} nats" in printed_by(9, "counting-loss")
    v = re.fullmatch(r"Math\.log\((\d+)\)", constant("LOG_V"))[1]
    assert f"all {v} tokens alike: log V = 5.76" in printed_by(9, "drawn-losses")
    assert f"healthy_rate = {constant('HEALTHY')}\n" in cells_of(9)["arms"].source
    assert "min((step + 1) / 20, 1)" in cells_of(9)["arms-train"].source
    assert "sum(losses[-20:]) / 20" in cells_of(9)["arms-results"].source


def test_the_random_scores_and_medians_are_those_of_chapter_4():
    names = run_cells(4, "random-scores", "slopes")
    seeds = numbers_in("slopes.js", "SEEDS = (.*?);").int().tolist()
    assert seeds[6] == 3  # of Figure 4.3
    drawn = [
        names["random_scores"](2**n, n_keys=8, n_queries=1, seed=seed)[0]
        for n, seed in enumerate(seeds)
    ]
    scores = numbers_in("slopes.js", "SCORES = (.*?);").float()
    torch.testing.assert_close(scores, torch.stack(drawn), rtol=0, atol=6e-5)
    halves = []
    for n in range(11):  # by logarithms: 1 - a may be rounded to 0
        e = names["random_scores"](2**n, n_keys=8).double()
        others = e[:, :-1].logsumexp(dim=-1)
        slope = (e[:, -1] - others).sigmoid() * (others - e[:, -1]).sigmoid()
        halves.append(slope.quantile(torch.tensor([0.25, 0.75], dtype=torch.float64)))
    stored = numbers_in("slopes.js", "HALVES = (.*?);")
    torch.testing.assert_close(stored, torch.stack(halves), rtol=1e-3, atol=0)
    for name, power in (("one", 0), ("root", 0.5), ("width", 1)):
        medians = [names["slopes_at"](2**n, 2 ** (n * power)).median() for n in range(11)]
        stored = numbers_in("slopes.js", rf"{name}: (\[.*?\])")
        torch.testing.assert_close(stored, torch.stack(medians), rtol=0.02, atol=0)
