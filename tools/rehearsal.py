"""Open the committed chapters as Colab does: ``make rehearsal``.

Each runs to its end alone in an empty folder, with PyTorch, NumPy, Matplotlib and a kernel only.
Its set-up cell is left as it is: git's ``insteadOf`` leads it to a clone of this repository.
``COLAB=1`` takes the versions that Colab has (``tools/colab.txt``) instead of ours, ``SOFT=1`` a
GPU of software (``tests/package/soft_cuda``) instead of the CPU.
"""

import argparse
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import nbformat

from tools.chapters import ROOT
from tools.running import check_each, chosen, code_cells, execute_or_say, printed
from tools.set_up import is_evening, repository
from transformer_book.claims import claims_of

GIVEN = ("torch", "numpy", "matplotlib", "ipykernel")  # of what Colab has, all that chapters need
OURS, COLABS = ROOT / "requirements.txt", ROOT / "tools" / "colab.txt"
SOFT = Path("tests", "package", "soft_cuda", "load.py")
# What is changed for a GPU of software: the chapter, its cell, what is there, what comes instead.
# Products of 8,192 rows take a GPU, and their times mean nothing here; it has no graphs.
CHANGES = [
    ("13_where_the_time_goes", "gpu", "8192", "256"),
    ("13_where_the_time_goes", "gpu", "(products_on_gpu, graph_on_gpu)", "(products_on_gpu,)"),
]
FACTS = """\
import sys
from importlib.metadata import distributions
for name in sys.argv[1:]:
    for found in list(distributions(name=name))[:1]:
        print(*filter(None, (name, found.version, found.read_text("direct_url.json"))))
"""
CUDA = "import torch; torch.cuda.is_available() or print(torch.__version__)"


def output_of(*command: str | Path) -> str:
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if result.returncode:
        sys.exit(f"Stopped, for the reason above: {' '.join(map(str, command))}")
    return result.stdout


def pins(colab: bool = False) -> dict[str, str]:
    """What is given, and its versions: ours, or Colab's. Stops where Colab's Python is another."""
    text = (COLABS if colab else OURS).read_text(encoding="utf-8")
    versions = dict(re.findall(r"^(\S+)==(\S+)", text, re.M))
    if not colab:
        return {name: versions[name] for name in GIVEN}
    python = versions.pop("python")
    here = platform.python_version()
    if python.split(".")[:2] != here.split(".")[:2]:
        sys.exit(f"Colab has Python {python}, and this is {here}: make .venv of one like it.")
    return versions


def make_environment(folder: Path, given: dict[str, str]) -> None:
    """A new environment with what is given."""
    output_of(sys.executable, "-m", "venv", folder)
    wanted = [f"{name}=={version}" for name, version in given.items()]
    output_of(folder / "bin/python", "-m", "pip", "-qq", "install", *wanted)


def variables(python: Path, book: Path) -> dict[str, str]:
    """The caller's; but ``python`` comes first, and git takes the address to mean ``book``."""
    count = int(os.environ.get("GIT_CONFIG_COUNT", 0))
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"url.{book}.insteadOf",
        f"GIT_CONFIG_VALUE_{count}": repository(),
    }


def execute(
    notebook: nbformat.NotebookNode, folder: Path, python: Path, book: Path, *, soft: bool = False
) -> list[str]:
    """Execute in ``folder`` as *Run all* does; the cell at which it stopped, if it did.

    With ``soft`` PyTorch sees a GPU of software, which is that of ``book``.
    """
    kernels = folder.parent / "kernels"
    spec = kernels / "rehearsal" / "kernel.json"
    spec.parent.mkdir(parents=True)
    if soft:
        output_of(python, book / SOFT)  # compiles it, or says why not
    launcher = [str(book / SOFT)] if soft else ["-m"]
    argv = [str(python), *launcher, "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "", "language": "python"}))
    env = variables(python, book)
    return execute_or_say(notebook, folder, kernel="rehearsal", kernels=kernels, env=env)


def adapt(notebook: nbformat.NotebookNode, chapter: Path) -> None:
    """Change ``notebook``, which was read from ``chapter``, as :data:`CHANGES` says."""
    for name, cell_id, old, new in CHANGES:
        for cell in code_cells(notebook):
            if (name, cell_id) == (chapter.stem, cell.id):
                cell.source = cell.source.replace(old, new)


def ticks(cell: nbformat.NotebookNode) -> list[str]:
    """What the cell claims, and what its checks say of the book's own answers."""
    claims = [repr(made) for made in claims_of(cell.outputs)]
    return claims + [line for line in printed(cell) if line.startswith("✓")]


def changed_ticks(committed: nbformat.NotebookNode, executed: nbformat.NotebookNode) -> list[str]:
    """The cells whose ``✓`` lines are others than the committed ones."""
    wrong = []
    for pair in zip(code_cells(committed), code_cells(executed), strict=True):
        was, now = map(ticks, pair)
        if was != now and "nbval-ignore-output" not in pair[0].metadata.get("tags", []):
            wrong.append(f"cell {pair[0].id}: committed is {was}, but it shows {now}")
    return wrong


def rehearse(
    chapter: Path,
    environment: Path,
    book: Path,
    *,
    given: Iterable[str] = GIVEN,
    soft: bool = False,
) -> list[str]:
    """What goes wrong when Colab opens ``chapter`` in a copy of ``environment``."""
    with tempfile.TemporaryDirectory(dir=environment.parent) as name:
        own, content = Path(name) / "environment", Path(tempfile.mkdtemp(dir=name))
        # Hard links: pip replaces files and never writes into them, so the original stays as it is.
        shutil.copytree(environment, own, symlinks=True, copy_function=os.link)
        notebook = nbformat.read(shutil.copy(chapter, content), as_version=4)
        python = own / "bin" / "python"
        if soft:
            adapt(notebook, chapter)
        Path(name, "main").symlink_to(book)  # what is fetched from the repository's address
        cell = code_cells(notebook)[0]
        cell.source = cell.source.replace(f"{repository()}/raw", Path(name).as_uri())
        before = output_of(python, "-I", "-c", FACTS, *given).splitlines()
        wrong = execute(notebook, content, python, book, soft=soft)
        after = output_of(python, "-I", "-c", FACTS, *given, "transformer-book").splitlines()
    commit = output_of("git", "-C", book, "rev-parse", "HEAD").strip()
    if not is_evening(notebook) and commit not in "".join(after):
        said = " ".join(printed(code_cells(notebook)[0])[-5:]) or "nothing"
        wrong.append(f"the set-up cell did not install commit {commit[:7]}; it printed: {said}")
    both = zip(before, after, strict=False)
    wrong += [f"the set-up cell replaced {was} by {now}" for was, now in both if was != now]
    return wrong + changed_ticks(nbformat.read(chapter, as_version=4), notebook)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make rehearsal", description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="such as chapters/03_….ipynb; all if none")
    parser.add_argument("--cuda", action="store_true", help="fail where PyTorch sees no GPU")
    parser.add_argument("--soft", action="store_true", help="on a GPU of software")
    parser.add_argument("--colab", action="store_true", help="with the versions that Colab has")
    options = parser.parse_args(arguments)
    given = pins(options.colab)
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        book, environment = Path(name).resolve() / "book", Path(name).resolve() / "environment"
        # pip clones in part, and of a shallow clone git then fetches without end
        output_of("git", "clone", "--quiet", "--reject-shallow", ROOT, book)
        committed = sorted((book / "chapters").glob("*.ipynb"))
        chapters = chosen(parser, options.chapters, committed)
        print("Rehearsing what is committed; the rest takes no part.", flush=True)
        make_environment(environment, given)
        if options.cuda and (torch := output_of(environment / "bin/python", "-c", CUDA).strip()):
            sys.exit(f"CUDA is not visible to PyTorch {torch}, which pip installs here.")

        def wrong_in(chapter: Path) -> list[str]:
            return rehearse(chapter, environment, book, given=given, soft=options.soft)

        return check_each(chapters, wrong_in)


if __name__ == "__main__":
    sys.exit(main())
