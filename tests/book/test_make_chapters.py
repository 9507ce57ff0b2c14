"""What make chapters does with a chapter that runs, is fresh, was edited, fails, or is stopped."""

import os
from functools import partial

import nbformat
import pytest

from tools import chapters, running, set_up
from tools.palette import palette


def small_chapter(path, *sources):
    """A chapter that has not been run yet."""
    cells = [nbformat.v4.new_markdown_cell("# 1. Small", id="title")]
    cells.append(nbformat.v4.new_code_cell("pass", id="set-up"))
    cells += [nbformat.v4.new_code_cell(source, id=f"c{n}") for n, source in enumerate(sources)]
    nbformat.write(nbformat.v4.new_notebook(cells=cells), path)


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    """The folder of a book of two chapters, whose code is still to be written."""
    (tmp_path / "chapters").mkdir()
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
    for name in chapters.ENVIRONMENT:
        monkeypatch.setenv(name, "7")  # so that they are put back
    return tmp_path / "chapters"


@pytest.fixture
def pair(shelf, monkeypatch):
    paths = [shelf / "01_one.ipynb", shelf / "02_two.ipynb"]
    monkeypatch.setattr(chapters, "NOTEBOOKS", paths)
    return paths


@pytest.fixture
def book(pair, monkeypatch):
    """A book of one small chapter."""
    monkeypatch.setattr(chapters, "NOTEBOOKS", pair[:1])
    small_chapter(pair[0], "import os\nprint(os.environ['OMP_NUM_THREADS'])")
    return pair[0]


def read(path):
    return nbformat.read(path, as_version=4)


def edit(path, change):
    notebook = read(path)
    change(notebook)
    nbformat.write(notebook, path)


def test_runs_and_stores(book, capsys):
    assert chapters.main([]) == 0
    assert capsys.readouterr().out.startswith("01_one.ipynb: 2 cells, ")
    _, first, second = read(book).cells
    assert first.source == "address = 'https://github.com/a/b'"
    assert second.outputs[0].text == "1\n"
    assert [cell.execution_count for cell in (first, second)] == [1, 2]
    assert (book.parents[1] / "palette.svg").read_text(encoding="utf-8") == palette()


DRAW = """\
# @title Drawing: a box
from IPython.display import SVG, display
display(SVG("<svg xmlns='http://www.w3.org/2000/svg' aria-label='A box &amp; more'/>"))"""


def test_labels_folds_and_drawings(book):
    small_chapter(book, DRAW, "1 # @title One", "# @title Open")

    def fold(notebook):
        label = {"code_prompt_show": "stale", "code_prompt_hide": "stale"}
        site = {"image": {"width": "9em"}}
        notebook.cells[2].metadata = {"tags": ["hide-input"], "mystnb": site}
        notebook.cells[4].metadata = {"cellView": "form", "jupyter": {}, "mystnb": label}

    edit(book, fold)
    assert chapters.main([]) == 0
    drawing, no_title, not_folded = read(book).cells[2:]
    folded = {"tags": ["hide-input"], "cellView": "form", "jupyter": {"source_hidden": True}}
    title = {"code_prompt_show": "Drawing: a box", "code_prompt_hide": "Drawing: a box"}
    assert drawing.metadata == folded | {
        "mystnb": title | {"image": {"width": "9em", "alt": "A box & more"}}
    }
    assert no_title.metadata == not_folded.metadata == {}


CLAIMS = """\
from transformer_book.claims import claim
claim("one_1|2 is odd", 1 % 2 == 1, "theorem")
print("✓ is printed")
claim("three, too", 3 % 2 == 1, seeds=3, steps=2000)
print("at", end=" ")
print("last")"""


def test_writes_the_ledger_of_what_was_claimed(book):
    small_chapter(book, CLAIMS)
    chapters.main([])
    shown = [o.get("text") or o.data["text/plain"] for o in read(book).cells[2].outputs]
    assert shown == ["✓ one_1|2 is odd", "✓ is printed\n", "✓ three, too", "at last\n"]
    page = chapters.LEDGER.read_text(encoding="utf-8")
    assert "| theorem | 1 |" in page
    assert page.endswith(
        "## Chapter 1. Small\n\n<details>\n<summary>2 claims</summary>\n\n"
        "| no. | claim | kind |\n|---|---|---|\n"
        "| 1.1 | [one\\_1\\|2 is odd](#claim-one-1-2-is-odd) | theorem |\n"
        "| 1.2 | [three, too](#claim-three-too) | experiment, 3 seeds, 2,000 steps |\n"
        "\n</details>\n"
    )


def test_what_is_printed_in_a_row_is_one_output():
    made = [nbformat.v4.new_output("stream", name="stdout", text=text) for text in "abc"]
    made.insert(2, nbformat.v4.new_output("display_data", {"text/plain": "a claim"}))
    a, claim, c = running.join_streams(made)
    assert (a.text, claim.output_type, c.text) == ("ab", "display_data", "c")


# What each editor makes of a notebook that was opened, changed by one word and saved.
LANGUAGE = {"codemirror_mode": {"name": "ipython", "version": 3}, "file_extension": ".py"}
LANGUAGE |= {"mimetype": "text/x-python", "name": "python", "version": "3.12.4"}
EDITORS = {
    "JupyterLab": (
        {"kernelspec": {"display_name": "Python 3 (ipykernel)", "name": "python3"}},
        {"editable": True, "slideshow": {"slide_type": ""}, "scrolled": True, "trusted": True},
    ),
    "VS Code": (
        {"kernelspec": {"display_name": ".venv", "language": "python", "name": "python3"}},
        {"vscode": {"languageId": "python"}, "collapsed": False},
    ),
    "Colab": (
        {"accelerator": "GPU", "colab": {"gpuType": "T4"}, "kernelspec": {"name": "python3"}},
        {"colab": {"base_uri": "https://localhost:8080/"}, "id": "c0", "outputId": "9b-7"},
    ),
}


@pytest.mark.parametrize("editor", EDITORS)
def test_a_word_changed_in_an_editor_is_all_that_changes(book, editor, capsys):
    chapters.main([])
    edit(book, lambda notebook: notebook.cells[2].metadata.update(tags=["hide-cell"]))
    chapters.main([])
    before = book.read_text(encoding="utf-8")
    capsys.readouterr()
    whole, cell = EDITORS[editor]

    def save_as_it_does(notebook):
        notebook.metadata.update(whole, language_info=LANGUAGE)
        for each in notebook.cells:
            each.metadata.update(cell)
        notebook.cells[0].source = "# 1. Tiny"

    edit(book, save_as_it_does)
    assert chapters.main([]) == 0
    assert capsys.readouterr().out == "01_one.ipynb: fresh\n"  # nothing has run
    assert book.read_text(encoding="utf-8") == before.replace("Small", "Tiny")


def test_runs_again_what_was_edited_or_run_elsewhere(book, capsys):
    chapters.main([])
    edit(book, lambda n: n.cells[2].outputs[0].update(text="forged\n"))
    chapters.main([])
    assert read(book).cells[2].outputs[0].text == "1\n"
    edit(book, lambda n: n.cells[2].update(execution_count=7))
    chapters.main([])
    assert read(book).cells[2].execution_count == 2
    capsys.readouterr()
    chapters.main([])
    assert capsys.readouterr().out == "01_one.ipynb: fresh\n"
    chapters.main(["--all"])
    assert "2 cells" in capsys.readouterr().out


def test_the_stamp_sees_what_a_cell_computes_and_no_comment():
    def code(source):
        cells = [nbformat.v4.new_code_cell(source, id="c0")]
        return chapters.stamp(nbformat.v4.new_notebook(cells=cells))["code"]

    assert code("# a word\nx = mask( )") == code("x = mask()")
    assert code('def f():\n    """A."""\n    return 1') == code("def f():\n    return 1")
    assert code("x = mask(1)") != code("x = mask()")
    assert code("1 +") != code("2 +")  # no Python
    assert code("%%writefile a.py\n1") != code("%%writefile b.py\n1")


def test_runs_only_what_is_named(pair, capsys):
    for path in pair:
        small_chapter(path, "print('ran')")
    assert chapters.main(["01"]) == 0
    said = capsys.readouterr().out
    assert "01_one" in said
    assert "02_two" not in said
    with pytest.raises(SystemExit):
        chapters.main(["99"])
    assert "only must begin the name of one of" in capsys.readouterr().err


@pytest.mark.parametrize("wrong", ["1 +", "import os\nos._exit(1)"])
def test_a_failure_in_one_chapter_does_not_lose_the_other(pair, wrong, capsys):
    small_chapter(pair[0], wrong)
    small_chapter(pair[1], CLAIMS)
    before = pair[0].read_bytes()
    assert chapters.main([]) == 1
    printed = capsys.readouterr()
    assert "01_one.ipynb: left as it was, for it stopped at an error" in printed.err
    assert printed.out.startswith("02_two.ipynb: 2 cells, ")
    assert pair[0].read_bytes() == before
    assert chapters.is_fresh(read(pair[1]))
    assert "three, too" in chapters.LEDGER.read_text(encoding="utf-8")


# Leaves a sign in chapters/ under the first name, and waits for the one under the second.
MEET = """\
import pathlib, time
pathlib.Path({!r}).touch()
while not pathlib.Path({!r}).exists():
    time.sleep(0.01)
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has another Ctrl-C")
@pytest.mark.usefixtures("ctrl_c")
def test_ctrl_c_leaves_every_chapter_that_runs_as_it_was(pair, capsys):
    interrupt = "import os, signal\nos.kill(os.getppid(), signal.SIGINT)"
    small_chapter(pair[0], MEET.format("a", "never"))
    small_chapter(pair[1], MEET.format("b", "a"), interrupt, MEET.format("c", "never"))
    before = [path.read_bytes() for path in pair]
    assert chapters.main(["--jobs", "2"]) == 1
    assert capsys.readouterr().err.startswith("Stopped: ")
    assert [path.read_bytes() for path in pair] == before
    assert sorted(path.name for path in pair[0].parent.glob("*.*")) == [p.name for p in pair]
