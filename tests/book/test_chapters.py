"""What holds for every chapter, besides that it runs (which nbval sees to)."""

import ast
import copy
import json
import re
import shutil
from pathlib import Path

import nbformat
import pytest

from tests.book.chapter_rules import chapter_of, rules_for
from tests.book.tautologies import claim_calls
from tools import chapters
from tools.chapters import (
    CHAPTERS,
    LEDGER,
    METADATA,
    PACKAGES,
    ROOT,
    code_cells,
    stamp,
)
from tools.ledger import ledger
from tools.set_up import is_evening, set_up_source
from transformer_book.claims import claims_of

MEGABYTES = 1.5
OF_ITS_OWN_KIND = {"one_evening", "the_exam"}  # pages on which the reader writes all that runs
PATH = re.compile(r"(?<![\w.:/])/(?:home|Users|root|tmp|var|usr|opt|mnt|content)/|[A-Z]:\\\\Users")


NOTEBOOKS = {path: nbformat.read(path, as_version=4) for path in chapters.NOTEBOOKS}
RULES = [
    pytest.param(path, rule, id=f"{path.stem}-{rule.__name__}")
    for path, notebook in NOTEBOOKS.items()
    if path.stem not in OF_ITS_OWN_KIND
    for rule in rules_for(notebook)
]


@pytest.fixture(params=CHAPTERS, ids=lambda path: path.stem)
def path(request):
    return request.param


@pytest.fixture
def notebook(path):
    return NOTEBOOKS[path]


@pytest.fixture(params=NOTEBOOKS, ids=lambda path: path.stem)
def page(request):
    """The path of a chapter, or of a notebook without a number."""
    return request.param


@pytest.fixture
def every(page):
    """A chapter, or a notebook without a number."""
    return NOTEBOOKS[page]


def markdown(notebook):
    return "\n\n".join(cell.source for cell in notebook.cells if cell.cell_type == "markdown")


def tags(cell):
    return cell.metadata.get("tags", [])


@pytest.mark.parametrize(("path", "rule"), RULES)
def test_keeps_the_rules(path, rule):
    assert list(rule(NOTEBOOKS[path])) == []


def test_there_are_chapters_and_the_toc_lists_every_notebook():
    there = {path for room in ("chapters", "appendix") for path in (ROOT / room).glob("*.ipynb")}
    assert set(NOTEBOOKS) == there
    assert [path for path in NOTEBOOKS if path in CHAPTERS] == CHAPTERS != []


def test_is_a_valid_notebook(every):
    nbformat.validate(every)
    ids = [cell.id for cell in every.cells]
    assert len(set(ids)) == len(ids)


def test_was_executed_once_from_top_to_bottom(every):
    counts = [cell.execution_count for cell in code_cells(every)]
    assert counts == list(range(1, len(counts) + 1))


def test_stores_no_error_and_no_warning(every):
    for cell in code_cells(every):
        for output in cell.outputs:
            assert output.output_type != "error", cell.id
            assert output.get("name") != "stderr", (cell.id, output.text)


def test_its_stamp_is_fresh(page, every):
    stored, now = every.metadata.get("transformer_book"), stamp(every)
    assert stored, f"{page.name} has no stamp: run make chapters"
    assert stored["made_from"] == now["made_from"], (
        f"{page.name} or what it imports changed since its outputs were made: run make chapters"
    )
    assert stored["outputs"] == now["outputs"], (
        f"the outputs stored in {page.name} are not those that make chapters wrote"
    )


def test_the_stamp_sees_every_change(notebook, tmp_path, monkeypatch):
    changed = copy.deepcopy(notebook)
    with monkeypatch.context() as code_alone:
        code_alone.setattr("tools.chapters.files_behind", lambda *_: [])  # a blank imports nothing
        before = stamp(changed)
        for cell in code_cells(changed):
            cell.source, source = cell.source + " ", cell.source
            same = stamp(changed)["made_from"] == before["made_from"]
            assert same == (cell.id == "set-up")
            cell.source = source
    before = stamp(notebook)
    assert stamp(changed) == before
    pictures = (
        (output.data, kind)
        for cell in code_cells(changed)
        for output in cell.outputs
        for kind in {"image/png", "image/svg+xml"}.intersection(output.get("data", {}))
    )
    data, kind = next(pictures)
    data[kind] = data[kind][:-8]
    assert stamp(changed)["outputs"] != before["outputs"]
    for package in PACKAGES:
        shutil.copytree(ROOT / package, tmp_path / package)
    checkpoints = tmp_path / "transformer" / ".ipynb_checkpoints"
    checkpoints.mkdir(exist_ok=True)
    (checkpoints / "masks-checkpoint.py").write_text("# an editor's", encoding="utf-8")
    monkeypatch.setattr("tools.chapters.ROOT", tmp_path)
    assert stamp(notebook) == before
    edits = {
        "transformer/attention.py": True,
        "transformer_book/claims.py": True,
        "transformer/commands/__init__.py": False,
    }
    for name, counts in edits.items():
        with (tmp_path / name).open("a", encoding="utf-8") as module:
            module.write("#\n")
        now = stamp(notebook)
        assert (now["made_from"] != before["made_from"]) == counts
        before = now


def test_begins_with_the_set_up_cell_of_every_chapter(every):
    first = code_cells(every)[0]
    assert first.id == "set-up"
    assert first.source == set_up_source(evening=is_evening(every))
    assert tags(first) == ["remove-cell"]
    assert first.outputs == []


def test_names_the_right_kernel_and_nothing_of_the_editor(every):
    metadata = {k: v for k, v in every.metadata.items() if k != "transformer_book"}
    assert metadata == METADATA
    known = {"tags", "mystnb", "cellView", "jupyter", "within", "differs_after"}
    assert all(set(cell.metadata) <= known for cell in every.cells)


def test_is_small_enough(page):
    assert page.stat().st_size < MEGABYTES * 1e6


def test_knows_no_path_of_a_machine(every):
    cells = [{k: c[k] for k in ("source", "outputs") if k in c} for c in every.cells]
    text = json.dumps(cells)
    found = PATH.search(text)
    assert not found, found
    assert str(ROOT) not in text
    assert str(Path.home()) not in text


def test_outputs_are_compared_almost_everywhere(every):
    cells = code_cells(every)
    ignored = [cell.id for cell in cells if "nbval-ignore-output" in tags(cell)]
    assert len(ignored) < len(cells) / 5
    assert not any(re.search(r"#\s*(NBVAL|PYTEST_VALIDATE)_", cell.source) for cell in cells)


def test_numbers_run_without_a_gap(path, notebook):
    chapter, text = int(path.name[:2]), markdown(notebook)
    kinds = (r"^## (\d+)\.(\d+) ", r"\\tag\{(\d+)\.(\d+)\}", r"^\*\*Figure (\d+)\.(\d+)\.\*\*")
    for kind in (*kinds, r"^\*\*Exercise (\d+)\.(\d+)\.\*\*"):
        numbers = [(int(a), int(b)) for a, b in re.findall(kind, text, flags=re.M)]
        assert numbers == [(chapter, n + 1) for n in range(len(numbers))], kind
        assert numbers or chapter == 0, kind
    assert text.startswith(f"# {chapter}. ")
    assert chapter == chapter_of(notebook)


def test_numbers_that_are_named_exist(path, notebook):
    chapter, text = int(path.name[:2]), markdown(notebook)
    given = set(re.findall(r"^## (\d+\.\d+) |\\tag\{(\d+\.\d+)\}", text, flags=re.M))
    sections, equations = ({pair[i] for pair in given} - {""} for i in (0, 1))
    figures = set(re.findall(r"^\*\*Figure (\d+\.\d+)\.", text, flags=re.M))
    exercises = set(re.findall(r"^\*\*Exercise (\d+\.\d+)\.", text, flags=re.M))
    kinds = {"section": sections, "equation": equations, "figure": figures, "exercise": exercises}
    for kind, number in re.findall(r"\b(\w+) (\d+\.\d+)\b", text):
        if kind.lower() in kinds and number.startswith(f"{chapter}."):
            assert number in kinds[kind.lower()], f"{kind} {number}"


def test_each_claim_is_made_where_it_stands(every):
    for cell in code_cells(every)[1:]:
        made = [claim.text for claim in claims_of(cell.outputs)]
        for call in claim_calls(cell):
            if isinstance(call.args[0], ast.Constant):
                assert call.args[0].value in made, f"{cell.id}: {made} are claimed"
        assert len(made) >= len(claim_calls(cell))
        assert not re.search(r"^\s*(def (claim|show)\b|claim\s*=|show\s*=)", cell.source, re.M)
        assert not made or claim_calls(cell), f"{cell.id} shows a claim that it does not make"


def claimed(path):
    return claims_of(output for cell in code_cells(NOTEBOOKS[path]) for output in cell.outputs)


def test_no_claim_is_made_twice():
    anchors = [made.anchor for path in NOTEBOOKS for made in claimed(path)]
    assert len(set(anchors)) == len(anchors) > 0


def test_the_ledger_lists_every_claim_once_and_nothing_else():
    page = LEDGER.read_text(encoding="utf-8")
    row = r"^\| (?:\d+\.)?\d+ \| \[.+\]\(#(claim-[a-z0-9-]+)\) \| .+ \|$"
    linked = re.findall(row, page, flags=re.M)
    assert linked == [made.anchor for path in NOTEBOOKS for made in claimed(path)]
    assert page == ledger(list(NOTEBOOKS)), "the ledger is out of date: run make chapters"
