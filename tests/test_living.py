"""The living figures' files: their colours, their claims, the numbers from chapters."""

import json
import re

import pytest
import torch

from tests.living import FIGURES, SOURCE, cells_of, claimed, run_cells
from website.extensions.living_files import write_living_files

SCRIPTS = sorted(SOURCE.glob("*.js"))


def text_of(name):
    return (SOURCE / name).read_text(encoding="utf-8")


def claims_of(name):
    """What stands in the script as a claim: CLAIM, an entry of CLAIMS, or the claim of a table."""
    text = text_of("beam_search.js" if name == "beams" else f"{name}.js")
    block = "".join(re.findall(r"CLAIMS = \{(.*?)\};", text, flags=re.DOTALL))
    single = re.findall(r'(?:CLAIM = |\bclaim: )"([^"]+)"', text)
    return single + re.findall(r'\w+: "([^"]+)"', block)


@pytest.mark.parametrize(("name", "chapter"), FIGURES.items())
def test_every_claim_is_one_that_the_chapter_makes(name, chapter):
    made = claimed(chapter)
    claims = claims_of(name)
    assert claims
    for text in claims:
        assert any(text in line for line in made), text


def test_every_figure_can_be_asked_for():
    listed = re.search(r"const NAMES = (\[.*?\]);", text_of("figures.js"))[1]
    assert sorted(json.loads(listed)) == sorted(FIGURES)
    assert all((SOURCE / f"{name}.js").exists() for name in FIGURES)


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_is_too_long_and_none_asks_another_host(path):
    text = path.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= (160 if path.stem in FIGURES else 250)
    assert max(map(len, text.splitlines())) <= 110
    assert "://" not in text.replace("http://www.w3.org/2000/svg", "")


def numbers_in(name, pattern):
    """The array of a script that the pattern's group finds."""
    array = re.search(pattern, text_of(name), flags=re.DOTALL)[1]
    return torch.tensor(json.loads(re.sub(r",\s*\]", "]", array)), dtype=torch.float64)


def test_the_ten_days_are_written_as_chapter_3_draws_them(tmp_path):
    read = run_cells(3, "day-numbers")["read_thermometer"]
    write_living_files(tmp_path)
    (text,) = re.findall(
        r"^export const DAYS = (.*);$", (tmp_path / "readings.js").read_text(), re.M
    )
    days = torch.tensor(json.loads(text))
    assert days.shape == (10, 2, 40)
    expected = torch.stack([torch.stack(read(seed)) for seed in range(10)])
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
    peak, bandwidth, equal = map(float, re.findall(r"≈ (\d+)", limits))
    assert [thread["peak"], thread["bandwidth"]] == [1e9 * peak, 1e9 * bandwidth]
    assert equal == pytest.approx(4 * peak / (2 * bandwidth), abs=1)  # before it was rounded
    printed = [(int(line.split()[0]), float(line.split()[3])) for line in rows.splitlines()]
    assert [n for n, _ in printed] == [1, 4, 16, 64, 512]
    assert [(n, pytest.approx(1000 * s)) for n, s in thread["measured"]] == printed


def test_the_h100_has_the_rates_that_chapter_13_states():
    text = "\n".join(cell.source for cell in cells_of(13).values())
    found = re.search(r"H100 = \{ peaks: \{ (.*?) \}, bandwidth: (\S+) \}", text_of("limits.js"))
    assert found[1] == "4: 67e12, 2: 989e12, 1: 2 * 989e12"
    assert found[2] == "3.35e12"
    for stated in (
        r"its *tensor cores*, at $989 \cdot 10^{12}$ operations a second",
        r"it gets $3.35 \cdot 10^{12}$ bytes a second",
        r"$67 \cdot 10^{12}$ operations a second for ordinary float32, 989 for bfloat16",
        "and twice that for 8 bits",
    ):
        assert stated in text


def test_the_random_scores_and_medians_are_those_of_chapter_4():
    names = run_cells(4, "random-scores", "slopes")
    seeds = numbers_in("slopes.js", "SEEDS = (.*?);").int().tolist()
    assert seeds[6] == 3  # of Figure 4.2
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
