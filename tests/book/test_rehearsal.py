"""What make rehearsal says of a chapter that runs, fails, loses a tick, or replaces PyTorch."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import nbformat
import pytest

from tests.package.soft_cuda import load
from tools import rehearsal, running
from tools.chapters import CHAPTERS
from tools.set_up import set_up_source

pytestmark = pytest.mark.skipif(os.name == "nt", reason="its environment is not Windows's")
BACKEND = """\
import zipfile

def build_wheel(folder, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(f"{folder}/transformer_book-1-py3-none-any.whl", "w") as wheel:
        wheel.write("transformer.py")
        information = "Metadata-Version: 2.1\\nName: transformer-book\\nVersion: 1\\n"
        wheel.writestr("transformer_book-1.dist-info/METADATA", information)
        tag = "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n"
        wheel.writestr("transformer_book-1.dist-info/WHEEL", tag)
        wheel.writestr("transformer_book-1.dist-info/RECORD", "")
    return "transformer_book-1-py3-none-any.whl"
"""
PROJECT = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'


def notebook(**cells):
    """A chapter of code cells, each given as its source and what is committed as its output."""
    code = []
    for name, (source, text) in cells.items():
        outputs = [nbformat.v4.new_output("stream", text=text)] if text else []
        code.append(nbformat.v4.new_code_cell(source, id=name, outputs=outputs))
    return nbformat.v4.new_notebook(cells=code)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """An environment that borrows what the tests have, though not the package, by its path."""
    folder = tmp_path_factory.mktemp("rehearsal") / "environment"
    venv.create(folder, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("-packages")]
    (site / "borrowed.pth").write_text("\n".join(borrowed), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def book(tmp_path_factory):
    """A repository of a small package and two chapters, of which the second fails."""
    folder = tmp_path_factory.mktemp("book")
    good = notebook(
        setup=(set_up_source(), ""),
        alone=("import os\nprint('✓', os.listdir())", "✓ ['01_good.ipynb']\n"),
        package=("import transformer\nprint(transformer.TICK)", "✓ as committed\n"),
        ignored=("print('✓ fast')", "✓ slow\n"),
    )
    good.cells[3].metadata["tags"] = ["nbval-ignore-output"]
    bad = notebook(
        setup=("print('installs nothing')", ""),
        kept=("print('✓ kept')", "✓ kept\n"),
        lost=("print('1 ✓')", "✓ lost\n1 ✓\n"),
        fails=("1 / 0", ""),
        late=("print('never')", "✓ late\n"),
    )
    (folder / "chapters").mkdir()
    nbformat.write(good, folder / "chapters" / "01_good.ipynb")
    nbformat.write(bad, folder / "chapters" / "02_bad.ipynb")
    package = "TICK = '✓ as committed'"
    files = {"pyproject.toml": PROJECT, "backend.py": BACKEND, "transformer.py": package}
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    author = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], ["add", "."], [*author, "commit", "-q", "-m", "A book"]):
        subprocess.run(["git", *command], cwd=folder, check=True)
    (folder / "transformer.py").write_text("TICK = '✓ not committed'", encoding="utf-8")
    return folder


@pytest.fixture
def rehearse(book, environment, monkeypatch):
    """make rehearsal in that repository and environment, where PYTHONPATH knows the package."""
    monkeypatch.setattr(rehearsal, "ROOT", book)
    monkeypatch.setattr(rehearsal, "make_environment", lambda path, _: path.symlink_to(environment))
    monkeypatch.setenv("PYTHONPATH", str(book))
    return rehearsal.main


def test_a_chapter_that_runs_alone_with_what_is_committed_and_one_that_does_not(rehearse, capsys):
    assert rehearse(["01_good.ipynb", "chapters/02_bad.ipynb"]) == 1
    _, good, bad, *wrong = capsys.readouterr().out.splitlines()
    assert good.startswith("01_good.ipynb: ok, ")
    assert bad.startswith("02_bad.ipynb: failed, ")
    assert wrong[0] == "    cell fails: ZeroDivisionError: division by zero"
    assert wrong[1].startswith("    the set-up cell did not install commit ")
    assert wrong[1].endswith("; it printed: installs nothing")
    assert wrong[2:] == ["    cell lost: committed is ['✓ lost'], but it shows []"]


def test_a_chapter_without_its_data_is_skipped_and_one_that_is_not_committed_refused(
    rehearse, monkeypatch, capsys
):
    monkeypatch.setattr(running, "lacking", lambda path: "no data")
    assert rehearse(["02_bad.ipynb"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["02_bad.ipynb: skipped", "    no data"]
    with pytest.raises(SystemExit):
        rehearse(["chapters/03_new.ipynb"])
    assert "no chapter is named 03_new.ipynb" in capsys.readouterr().err


def test_a_replaced_torch(environment, book, tmp_path):
    wheel = tmp_path / "torch-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as file:
        information = "Metadata-Version: 2.1\nName: torch\nVersion: 1.0\n"
        file.writestr("torch-1.0.dist-info/METADATA", information)
        file.writestr("torch-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        file.writestr("torch-1.0.dist-info/RECORD", "")
    path = tmp_path / "03_torch.ipynb"
    nbformat.write(notebook(setup=(f"%pip install --quiet --no-index {wheel}", "")), path)
    before = sorted(environment.rglob("*"))
    wrong = rehearsal.rehearse(path, environment, book)[1]
    assert wrong.startswith("the set-up cell replaced torch 2.")
    assert " by torch 1.0 " in wrong
    assert sorted(environment.rglob("*")) == before  # the next chapter starts from what was there


def test_colabs_versions_are_pinned_and_refused_on_another_python(monkeypatch):
    ours = rehearsal.pins()
    assert tuple(ours) == rehearsal.GIVEN
    monkeypatch.setattr("platform.python_version", lambda: "3.13.0")
    colabs = rehearsal.pins(colab=True)
    assert {*colabs} > {*rehearsal.GIVEN}
    assert "python" not in colabs  # which pip does not install
    monkeypatch.setattr("platform.python_version", lambda: "3.12.1")
    with pytest.raises(SystemExit, match=r"^Colab has Python 3\.13\.\d+, and this is 3\.12\.1: "):
        rehearsal.pins(colab=True)


@pytest.mark.skipif(load.lacking() is not None, reason=str(load.lacking()))
def test_a_gpu_of_software_is_loaded_with_the_kernel(tmp_path, monkeypatch):
    compiled = []
    monkeypatch.setattr(rehearsal, "output_of", lambda *command: compiled.append(command[1]))
    folder = tmp_path / "content"
    folder.mkdir()
    python = Path(sys.executable)
    assert rehearsal.execute(notebook(), folder, python, rehearsal.ROOT, soft=True) == []
    spec = json.loads((tmp_path / "kernels" / "rehearsal" / "kernel.json").read_text("utf-8"))
    assert Path(spec["argv"][1]).is_file()
    assert compiled == [Path(spec["argv"][1])]


def test_every_change_for_a_gpu_of_software_still_applies():
    for stem, cell_id, old, new in rehearsal.CHANGES:
        (path,) = (path for path in CHAPTERS if path.stem == stem)
        chapter = nbformat.read(path, as_version=4)
        (cell,) = (cell for cell in chapter.cells if cell.id == cell_id)
        assert old in cell.source
        rehearsal.adapt(chapter, path)
        assert old not in cell.source
        assert new in cell.source


def test_one_wrong_chapter_is_told_though_the_last_is_right(monkeypatch):
    monkeypatch.setattr(running, "lacking", lambda _: "")
    chapters = [Path("01.ipynb"), Path("02.ipynb")]
    assert running.check_each(chapters, lambda path: ["wrong"] * (path.stem == "01")) == 1
