"""What make rehearsal says of a chapter that runs, fails, loses a tick, or replaces PyTorch."""

import json
import os
import subprocess
import sys
import venv
import zipfile
from pathlib import Path
from types import SimpleNamespace

import nbformat
import pytest

from tools import rehearsal
from tools.chapters import CHAPTERS
from tools.set_up import repository, set_up_source
from transformer_book.claims import Claim

pytestmark = pytest.mark.skipif(os.name == "nt", reason="make and sh are not Windows's")
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
    commit = [*author, "commit", "-q", "--allow-empty", "-m"]
    for command in (["init", "-q"], [*commit, "None yet"], ["add", "."], [*commit, "A book"]):
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


def test_a_chapter_that_runs_alone_with_what_is_committed(rehearse, capsys):
    assert rehearse(["chapters/01_good.ipynb"]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first == "Rehearsing what is committed; the rest takes no part."
    assert second.startswith("01_good.ipynb: ok, ")


def test_a_cell_that_fails_and_a_tick_that_is_lost(rehearse, capsys):
    assert rehearse(["02_bad.ipynb"]) == 1
    _, first, *wrong = capsys.readouterr().out.splitlines()
    assert first.startswith("02_bad.ipynb: failed, ")
    assert wrong[0] == "    cell fails: ZeroDivisionError: division by zero"
    assert wrong[1].startswith("    the set-up cell did not install commit ")
    assert wrong[1].endswith("; it printed: installs nothing")
    assert wrong[2:] == ["    cell lost: committed is ['✓ lost'], but it shows []"]


def test_a_claim_that_is_lost():
    committed, executed = (notebook(made=("claim(…)", "")) for _ in range(2))
    data = Claim("a", "theorem")._repr_mimebundle_()
    committed.cells[0].outputs = [nbformat.v4.new_output("display_data", data)]
    assert rehearsal.changed_ticks(committed, committed) == []
    wrong = ["cell made: committed is ['✓ a'], but it shows []"]
    assert rehearsal.changed_ticks(committed, executed) == wrong


def test_a_chapter_without_its_data_is_skipped_with_the_reason(rehearse, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(rehearsal, "lacking", lambda path: asked.append(path.name) or "no data")
    assert rehearse(["02_bad.ipynb"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["02_bad.ipynb: skipped", "    no data"]
    assert asked == ["02_bad.ipynb"]


def test_the_kernel_knows_the_folder_of_the_data(monkeypatch):
    monkeypatch.setenv("MULTI30K", "/a b/data")
    assert rehearsal.variables(Path(sys.executable), Path("/book"))["MULTI30K"] == "/a b/data"


def test_a_chapter_that_is_not_committed(rehearse, book, capsys):
    nbformat.write(notebook(), book / "chapters" / "03_new.ipynb")
    with pytest.raises(SystemExit):
        rehearse(["chapters/03_new.ipynb"])
    assert "no committed chapter is named 03_new.ipynb" in capsys.readouterr().err


def test_a_shallow_clone_is_refused(rehearse, book, tmp_path, monkeypatch, capfd):
    command = ["git", "clone", "-q", "--depth", "1", book.as_uri(), tmp_path / "shallow"]
    subprocess.run(command, check=True)
    monkeypatch.setattr(rehearsal, "ROOT", tmp_path / "shallow")
    with pytest.raises(SystemExit, match=r"^Stopped, for the reason above: git clone "):
        rehearse(["none.ipynb"])
    assert "source repository is shallow" in capfd.readouterr().err


def test_no_cuda(rehearse, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    with pytest.raises(SystemExit, match=r"^CUDA is not visible to PyTorch 2\."):
        rehearse(["--cuda"])


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


def test_a_cell_that_takes_too_long(environment, book, tmp_path, monkeypatch):
    monkeypatch.setattr(rehearsal, "LIMIT", 1)
    chapter = notebook(quick=("import time", ""), slow=("time.sleep(60)", ""))
    (tmp_path / "content").mkdir()
    wrong = rehearsal.execute(chapter, tmp_path / "content", environment / "bin" / "python", book)
    assert wrong == ["cell slow: A cell timed out while it was being executed, after 1 seconds."]


def test_what_git_was_told_already_stays(monkeypatch):
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.abbrev")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", "9")
    environment = rehearsal.variables(Path(sys.executable), Path("/a b"))
    listed = subprocess.run(
        ["git", "config", "--list"], env=environment, capture_output=True, text=True, check=True
    )
    assert "core.abbrev=9" in listed.stdout
    assert f"url./a b.insteadof={repository()}" in listed.stdout


def test_all_that_is_given_is_pinned(monkeypatch):
    ours = rehearsal.pins()
    assert tuple(ours) == rehearsal.GIVEN
    monkeypatch.setattr("platform.python_version", lambda: "3.13.0")
    colabs = rehearsal.pins(colab=True)
    assert {*colabs} > {*rehearsal.GIVEN}
    assert "python" not in colabs  # which pip does not install
    assert colabs["torch"] != ours["torch"]


def test_colabs_versions_on_another_python(rehearse, monkeypatch):
    monkeypatch.setattr("platform.python_version", lambda: "3.12.1")
    with pytest.raises(SystemExit, match=r"^Colab has Python 3\.13\.\d+, and this is 3\.12\.1: "):
        rehearse(["--colab"])


def test_what_is_asked_for_is_handed_on_and_one_failure_is_enough(rehearse, monkeypatch, capsys):
    told, given = [], []

    def noted(chapter, *_, **options):
        told.append((chapter.stem, options["soft"], [*options["given"]]))
        return ["it fails"] if chapter.stem == "02_bad" else []

    monkeypatch.setattr(rehearsal, "rehearse", noted)
    monkeypatch.setattr(rehearsal, "make_environment", lambda _, pins: given.append([*pins]))
    change = rehearsal.Change("02_bad", "kept", "CUDA", "CPU", "a reason")
    monkeypatch.setattr(rehearsal, "CHANGES", [change])
    monkeypatch.setattr("platform.python_version", lambda: "3.13.0")
    both = ["02_bad.ipynb", "01_good.ipynb"]
    assert rehearse(both) == 1
    assert capsys.readouterr().out.splitlines()[2:] == ["    it fails", "01_good.ipynb: ok, 0 s"]
    assert rehearse(["--soft", "--colab", *both]) == 1
    notes = ["    cell kept is changed: a reason", "    it fails", "01_good.ipynb: ok, 0 s"]
    assert capsys.readouterr().out.splitlines()[2:] == notes
    colabs = [*rehearsal.pins(colab=True)]
    assert given == [[*rehearsal.GIVEN], colabs]
    assert told == [
        *(("02_bad", False, given[0]), ("01_good", False, given[0])),
        *(("02_bad", True, colabs), ("01_good", True, colabs)),
    ]


def test_a_chapter_is_changed_for_a_gpu_of_software_alone(environment, book, monkeypatch):
    change = rehearsal.Change("01_good", "package", "TICK", "tick", "a reason")
    monkeypatch.setattr(rehearsal, "CHANGES", [change])
    seen = []

    def look(notebook, *_, soft):
        seen.append((soft, notebook.cells[2].source.splitlines()[1]))
        return []

    monkeypatch.setattr(rehearsal, "execute", look)
    for soft in (False, True):
        rehearsal.rehearse(book / "chapters" / "01_good.ipynb", environment, book, soft=soft)
    assert seen == [(False, "print(transformer.TICK)"), (True, "print(transformer.tick)")]


def test_a_gpu_of_software_is_loaded_with_the_kernel_and_has_four_times_as_long(
    tmp_path, monkeypatch
):
    limits, loaded = [], []

    class Client:
        def __init__(self, notebook, *, timeout, **options):
            limits.append(timeout)

        def create_kernel_manager(self):
            return SimpleNamespace()

        def execute(self, **options):
            pass

    monkeypatch.setattr(rehearsal, "NotebookClient", Client)
    monkeypatch.setattr(rehearsal, "output_of", lambda *command: "")
    for soft in (False, True):
        folder = tmp_path / str(soft) / "content"
        folder.mkdir(parents=True)
        python = Path(sys.executable)
        assert rehearsal.execute(notebook(), folder, python, Path("/book"), soft=soft) == []
        spec = folder.parent / "kernels" / "rehearsal" / "kernel.json"
        loaded.append(json.loads(spec.read_text())["argv"][1])
    assert limits == [rehearsal.LIMIT, 4 * rehearsal.LIMIT]
    assert loaded == ["-m", "/book/tests/package/soft_cuda/load.py"]


def test_every_change_for_a_gpu_of_software_still_applies():
    for change in rehearsal.CHANGES:
        (path,) = (path for path in CHAPTERS if path.stem == change.chapter)
        chapter = nbformat.read(path, as_version=4)
        (cell,) = (cell for cell in chapter.cells if cell.id == change.cell)
        before = cell.source
        rehearsal.adapt(chapter, path)
        assert cell.source == before.replace(change.old, change.new) != before


def test_a_change_that_no_longer_applies(monkeypatch):
    change = rehearsal.Change("03_x", "a", "CUDA", "CPU", "a reason")
    monkeypatch.setattr(rehearsal, "CHANGES", [change])
    with pytest.raises(ValueError, match=r"^cell a of 03_x\.ipynb must hold 'CUDA'$"):
        rehearsal.adapt(notebook(a=("1", "")), Path("03_x.ipynb"))
