"""What make chapters does with a chapter that runs, is fresh, or fails."""

import nbformat
import pytest

from tools import chapters


@pytest.fixture
def book(tmp_path, monkeypatch):
    """A book of one small chapter, which has not been run yet."""
    for folder in ("chapters", "transformer"):
        (tmp_path / folder).mkdir()
    (tmp_path / "_config.yml").write_text(
        "repository: {url: https://github.com/a/b}", encoding="utf-8"
    )
    path = tmp_path / "chapters" / "01_small.ipynb"
    cells = {"set-up": "pass", "two": "import os\nprint(os.environ['OMP_NUM_THREADS'])"}
    code = [nbformat.v4.new_code_cell(source, id=name) for name, source in cells.items()]
    title = nbformat.v4.new_markdown_cell("# 1. Small", id="title")
    code[1].metadata = nbformat.from_dict({"scrolled": True, "tags": ["hide-cell"]})
    nbformat.write(nbformat.v4.new_notebook(cells=[title, *code]), path)
    monkeypatch.setattr(chapters, "ROOT", tmp_path)
    monkeypatch.setattr(chapters, "CHAPTERS", [path])
    monkeypatch.setattr(chapters, "LEDGER", tmp_path / "ledger.md")
    monkeypatch.setattr(chapters, "SET_UP", "address = '{url}'")
    return path


def read(path):
    return nbformat.read(path, as_version=4)


def test_runs_stores_and_stamps(book, monkeypatch, capsys):
    monkeypatch.setenv("OMP_NUM_THREADS", "7")
    assert chapters.main([]) == 0
    assert capsys.readouterr().out.startswith("01_small.ipynb: 2 cells, ")
    _, first, second = read(book).cells
    assert first.source == "address = 'https://github.com/a/b'"
    assert second.outputs[0].text == "1\n"
    assert second.metadata == {"tags": ["hide-cell"]}
    assert [cell.execution_count for cell in (first, second)] == [1, 2]
    assert chapters.is_fresh(read(book))
    assert list(book.parent.iterdir()) == [book]


def test_writes_the_ledger_of_what_was_claimed(book):
    notebook = read(book)
    notebook.cells[2].source = "print('✓ one_1 is odd\\n✗ two is\\n✓ three, too')"
    nbformat.write(notebook, book)
    chapters.main([])
    assert chapters.LEDGER.read_text(encoding="utf-8").endswith(
        "## Chapter 1. Small\n\n| no. | claim |\n|---|---|\n"
        "| 1.1 | [one\\_1 is odd](#claim-one-1-is-odd) |\n"
        "| 1.2 | [three, too](#claim-three-too) |\n"
    )


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


def test_a_chapter_that_fails_is_left_as_it_was(book, capsys):
    notebook = read(book)
    notebook.cells[2].source = "1 / 0"
    nbformat.write(notebook, book)
    before = book.read_bytes()
    assert chapters.main([]) == 1
    assert "01_small.ipynb: left as it was, for a cell failed" in capsys.readouterr().err
    assert book.read_bytes() == before
    assert list(book.parent.iterdir()) == [book]


def test_a_chapter_is_renamed_into_place(book, monkeypatch):
    def break_down(notebook, path):
        path.write_text("half", encoding="utf-8")
        raise KeyboardInterrupt

    before = book.read_bytes()
    monkeypatch.setattr(nbformat, "write", break_down)
    with pytest.raises(KeyboardInterrupt):
        chapters.save(read(book), book)
    assert book.read_bytes() == before
