"""What make chapters does with a chapter that runs, is fresh, fails, or is stopped."""

from functools import partial

import nbformat
import pytest

from tools import chapters, set_up
from tools.palette import palette


def small_chapter(path, *sources):
    """A chapter that has not been run yet."""
    cells = [nbformat.v4.new_markdown_cell("# 1. Small", id="title")]
    cells.append(nbformat.v4.new_code_cell("pass", id="set-up"))
    cells += [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    cells[2].metadata = nbformat.from_dict({"scrolled": True, "tags": ["hide-cell"]})
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The folder of a book without chapters."""
    for folder in ("chapters", *chapters.PACKAGES):
        (tmp_path / folder).mkdir()
    (tmp_path / "_config.yml").write_text(
        "repository: {url: https://github.com/a/b}", encoding="utf-8"
    )
    for module in (chapters, set_up):
        monkeypatch.setattr(module, "ROOT", tmp_path)
    monkeypatch.setattr(chapters, "LEDGER", tmp_path / "ledger.md")
    save_palette = partial(chapters.save_palette, tmp_path / "palette.svg")
    monkeypatch.setattr(chapters, "save_palette", save_palette)
    monkeypatch.setattr(chapters, "save_files", lambda: None)
    monkeypatch.setattr(set_up, "SET_UP", "address = '{url}'")
    for name in ("OMP_NUM_THREADS", "TQDM_DISABLE", "TOKENIZERS_PARALLELISM"):
        monkeypatch.setenv(name, "7")  # so that they are put back
    return tmp_path / "chapters"


@pytest.fixture
def book(shelf, monkeypatch):
    """A book of one small chapter."""
    path = shelf / "01_small.ipynb"
    small_chapter(path, "import os\nprint(os.environ['OMP_NUM_THREADS'])")
    for names in ("CHAPTERS", "NOTEBOOKS"):
        monkeypatch.setattr(chapters, names, [path])
    return path


@pytest.fixture
def pair(shelf, monkeypatch):
    """A book of two chapters, whose code is still to be written."""
    paths = [shelf / "01_one.ipynb", shelf / "02_two.ipynb"]
    for names in ("CHAPTERS", "NOTEBOOKS"):
        monkeypatch.setattr(chapters, names, paths)
    return paths


def read(path):
    return nbformat.read(path, as_version=4)


def test_runs_stores_and_stamps(book, capsys):
    assert chapters.main([]) == 0
    assert capsys.readouterr().out.startswith("01_small.ipynb: 2 cells, ")
    _, first, second = read(book).cells
    assert first.source == "address = 'https://github.com/a/b'"
    assert second.outputs[0].text == "1\n"
    assert second.metadata == {"tags": ["hide-cell"]}
    assert [cell.execution_count for cell in (first, second)] == [1, 2]
    assert chapters.is_fresh(read(book))
    assert list(book.parent.iterdir()) == [book]


DRAW = """\
# @title Drawing: a box
from IPython.display import SVG, display
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' aria-label='A box &amp; more'/>"))"""


def test_labels_folds_and_drawings(book):
    small_chapter(book, DRAW, "1 # @title One", "# @title Open")
    notebook = read(book)
    notebook.cells[2].metadata = {"tags": ["hide-input"], "mystnb": {"image": {"width": "9em"}}}
    label = {"code_prompt_show": "stale", "code_prompt_hide": "stale"}
    notebook.cells[4].metadata = {"cellView": "form", "jupyter": {}, "mystnb": label}
    nbformat.write(notebook, book)
    assert chapters.main([]) == 0
    drawing, no_title, not_folded = read(book).cells[2:]
    folded = {"tags": ["hide-input"], "cellView": "form", "jupyter": {"source_hidden": True}}
    title = {"code_prompt_show": "Drawing: a box", "code_prompt_hide": "Drawing: a box"}
    assert drawing.metadata == folded | {
        "mystnb": title | {"image": {"width": "9em", "alt": "A box & more"}}
    }
    assert no_title.metadata == not_folded.metadata == {}


def test_labels_a_chapter_that_is_fresh(book, capsys):
    chapters.main([])
    notebook = read(book)
    notebook.cells[2].source = "# @title One"
    nbformat.write(notebook, book)
    chapters.main([])
    notebook = read(book)
    notebook.cells[2].metadata = {"tags": ["hide-cell"]}
    nbformat.write(notebook, book)
    capsys.readouterr()
    chapters.main([])
    assert capsys.readouterr().out == "01_small.ipynb: fresh\n"
    assert read(book).cells[2].metadata.mystnb.code_prompt_show == "One"


TWO = "from transformer_book.claims import claim\nclaim('two is even', 2 % 2 == 0, 'theorem')"
CLAIMS = """\
from transformer_book.claims import claim
claim("one_1|2 is odd", 1 % 2 == 1, "theorem")
print("✓ is printed")
claim("three, too", 3 % 2 == 1, seeds=3, steps=2000)
print("at", end=" ")
print("last")"""


def test_writes_the_ledger_of_what_was_claimed(book):
    notebook = read(book)
    notebook.cells[2].source = CLAIMS
    nbformat.write(notebook, book)
    chapters.main([])
    shown = [o.get("text") or o.data["text/plain"] for o in read(book).cells[2].outputs]
    assert shown == ["✓ one_1|2 is odd", "✓ is printed\n", "✓ three, too", "at last\n"]
    page = chapters.LEDGER.read_text(encoding="utf-8")
    assert page.endswith(
        "## Chapter 1. Small\n\n| no. | claim | kind |\n|---|---|---|\n"
        "| 1.1 | [one\\_1\\|2 is odd](#claim-one-1-2-is-odd) | theorem |\n"
        "| 1.2 | [three, too](#claim-three-too) | experiment, 3 seeds, 2,000 steps |\n"
    )
    assert [f"| {kind} | {n} |" in page for kind, n in (("theorem", 1), ("identity", 0))] == [
        True
    ] * 2


def test_writes_the_palette_of_the_notation(book):
    chapters.main([])
    assert (book.parents[1] / "palette.svg").read_text(encoding="utf-8") == palette()


def test_runs_again_only_what_has_changed(book, capsys):
    chapters.main([])
    capsys.readouterr()
    assert chapters.main([]) == 0
    assert capsys.readouterr().out == "01_small.ipynb: fresh\n"
    assert chapters.main(["--all"]) == 0
    assert "2 cells" in capsys.readouterr().out
    notebook = read(book)
    notebook.cells[2].outputs[0].text = "forged\n"
    nbformat.write(notebook, book)
    assert chapters.main([]) == 0
    assert read(book).cells[2].outputs[0].text == "1\n"


def test_runs_only_what_is_named(pair, capsys):
    for path in pair:
        small_chapter(path, "print('ran')")
    first, second = sorted(path.name for path in pair)
    assert chapters.main([first[:2]]) == 0
    said = capsys.readouterr().out
    assert first in said
    assert second not in said


def test_a_name_that_no_chapter_has_is_refused(pair, capsys):
    with pytest.raises(SystemExit):
        chapters.main(["99"])
    assert "only must begin the name of one of" in capsys.readouterr().err


def test_a_chapter_that_fails_is_left_as_it_was(book, capsys):
    notebook = read(book)
    notebook.cells[2].source = "1 / 0"
    nbformat.write(notebook, book)
    before = book.read_bytes()
    assert chapters.main([]) == 1
    assert "01_small.ipynb: left as it was, for it stopped at an error" in capsys.readouterr().err
    assert book.read_bytes() == before
    assert list(book.parent.iterdir()) == [book]


# Leaves a sign in chapters/ under the first name, and waits for the one under the second.
MEET = """\
import pathlib, time
pathlib.Path({!r}).touch()
until = time.monotonic() + 120
while not pathlib.Path({!r}).exists():
    assert time.monotonic() < until, "alone"
    time.sleep(0.01)
"""


def test_two_chapters_run_at_the_same_time(pair, capsys):
    for path, own, other in zip(pair, ("a", "b"), ("b", "a"), strict=True):
        small_chapter(path, MEET.format(own, other), "print('met')")
    assert chapters.main(["--jobs", "2"]) == 0
    lines = sorted(capsys.readouterr().out.splitlines())
    assert [line.partition(":")[0] for line in lines] == ["01_one.ipynb", "02_two.ipynb"]
    for path in pair:
        assert read(path).cells[3].outputs[0].text == "met\n"
        assert chapters.is_fresh(read(path))


def test_one_job_runs_one_after_the_other(pair):
    small_chapter(pair[0], "import pathlib, time\ntime.sleep(1)\npathlib.Path('done').touch()")
    small_chapter(pair[1], "import pathlib\nprint(pathlib.Path('done').exists())")
    assert chapters.main(["-j", "1"]) == 0
    assert read(pair[1]).cells[2].outputs[0].text == "True\n"


def test_no_jobs_are_refused(pair, capsys):
    with pytest.raises(SystemExit):
        chapters.main(["--jobs", "0"])
    assert "--jobs must be at least 1, got 0" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["1 +", "import os\nos._exit(1)"])
def test_a_failure_in_one_chapter_does_not_lose_the_other(pair, wrong, capsys):
    small_chapter(pair[0], wrong)
    small_chapter(pair[1], f"import time\ntime.sleep(1)\n{TWO}")
    before = pair[0].read_bytes()
    assert chapters.main([]) == 1
    printed = capsys.readouterr()
    assert "01_one.ipynb: left as it was" in printed.err
    assert printed.out.startswith("02_two.ipynb: 2 cells, ")
    assert pair[0].read_bytes() == before
    assert chapters.is_fresh(read(pair[1]))
    assert "two is even" in chapters.LEDGER.read_text(encoding="utf-8")


@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_every_chapter_as_it_was(pair, capsys):
    interrupt = "import os, signal, time\nos.kill(os.getppid(), signal.SIGINT)\ntime.sleep(60)"
    small_chapter(pair[0], MEET.format("a", "b"), "time.sleep(60)")
    small_chapter(pair[1], MEET.format("b", "a"), interrupt)
    before = [path.read_bytes() for path in pair]
    assert chapters.main(["--jobs", "2"]) == 1
    assert capsys.readouterr().err.startswith("Stopped: ")
    assert [path.read_bytes() for path in pair] == before
    assert sorted(path.name for path in pair[0].parent.glob("*.*")) == [p.name for p in pair]


def test_a_module_that_is_edited_meanwhile_makes_the_chapter_stale(book):
    module = book.parents[1] / "transformer" / "__init__.py"
    module.write_text("", encoding="utf-8")
    small_chapter(book, f"import transformer\nopen({str(module)!r}, 'a').write('#')")
    assert chapters.main([]) == 0
    assert not chapters.is_fresh(read(book))
    module.write_text("", encoding="utf-8")
    assert chapters.is_fresh(read(book))


def test_a_chapter_is_renamed_into_place(book, monkeypatch):
    def break_down(path):
        raise KeyboardInterrupt

    before = book.read_bytes()
    monkeypatch.setattr("transformer.files.flush", break_down)
    with pytest.raises(KeyboardInterrupt):
        chapters.save(read(book), book)
    assert book.read_bytes() == before
