"""Open the committed chapters as Colab does: ``make rehearsal``.

Each runs to its end alone in an empty folder, with PyTorch, NumPy, Matplotlib and a kernel only.
Its set-up cell is left as it is: git's ``insteadOf`` leads it to a clone of this repository.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import nbformat
from jupyter_client.kernelspec import KernelSpecManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError

from tools.chapters import ROOT, code_cells, repository
from tools.needs import lacking
from transformer_book.claims import claims_of

GIVEN = ("torch", "numpy", "matplotlib", "ipykernel")  # of what Colab has, all that chapters need
LIMIT = 300  # seconds a cell
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


def make_environment(folder: Path) -> None:
    """A new environment with what is given, at the versions of ``requirements.txt``."""
    output_of(sys.executable, "-m", "venv", folder)
    lines = (ROOT / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line.split("==")[0] in GIVEN]
    output_of(folder / "bin/python", "-m", "pip", "-qq", "install", *pins)


def variables(python: Path, book: Path) -> dict[str, str]:
    """The caller's; but ``python`` comes first, and git takes the address to mean ``book``."""
    count = int(os.environ.get("GIT_CONFIG_COUNT", 0))
    return {name: text for name, text in os.environ.items() if name != "PYTHONPATH"} | {
        "PATH": f"{python.parent}{os.pathsep}{os.environ['PATH']}",
        "GIT_CONFIG_COUNT": str(count + 1),
        f"GIT_CONFIG_KEY_{count}": f"url.{book}.insteadOf",
        f"GIT_CONFIG_VALUE_{count}": repository(),
    }


def execute(notebook: nbformat.NotebookNode, folder: Path, python: Path, book: Path) -> list[str]:
    """Execute in ``folder`` as *Run all* does; the cell at which it stopped, if it did."""
    spec = folder.parent / "kernels" / "rehearsal" / "kernel.json"
    spec.parent.mkdir(parents=True)
    argv = [str(python), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec.write_text(json.dumps({"argv": argv, "display_name": "", "language": "python"}))
    started = []
    client = NotebookClient(
        notebook,
        timeout=LIMIT,
        kernel_name="rehearsal",
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_start=lambda cell, cell_index: started.append(cell.id),
    )
    kernels = KernelSpecManager(kernel_dirs=[str(spec.parents[1])])
    client.create_kernel_manager().kernel_spec_manager = kernels
    try:
        client.execute(cwd=str(folder), env=variables(python, book))
    except CellExecutionError as error:
        return [f"cell {started[-1]}: {error.ename}: {error.evalue}"]
    except (CellTimeoutError, DeadKernelError) as error:
        return [f"cell {started[-1]}: {str(error).splitlines()[0]}"]
    return []


def printed(cell: nbformat.NotebookNode) -> list[str]:
    return "".join(o.text for o in cell.outputs if o.output_type == "stream").splitlines()


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


def rehearse(chapter: Path, environment: Path, book: Path) -> list[str]:
    """All that goes wrong when Colab opens ``chapter`` in a copy of ``environment``."""
    with tempfile.TemporaryDirectory(dir=environment.parent) as name:
        own, content = Path(name) / "environment", Path(tempfile.mkdtemp(dir=name))
        # Hard links: pip replaces files and never writes into them, so the original stays as it is.
        shutil.copytree(environment, own, symlinks=True, copy_function=os.link)
        notebook = nbformat.read(shutil.copy(chapter, content), as_version=4)
        python = own / "bin" / "python"
        before = output_of(python, "-I", "-c", FACTS, *GIVEN).splitlines()
        wrong = execute(notebook, content, python, book)
        after = output_of(python, "-I", "-c", FACTS, *GIVEN, "transformer-book").splitlines()
    commit = output_of("git", "-C", book, "rev-parse", "HEAD").strip()
    if commit not in "".join(after):
        said = " ".join(printed(code_cells(notebook)[0])[-5:]) or "nothing"
        wrong.append(f"the set-up cell did not install commit {commit[:7]}; it printed: {said}")
    both = zip(before, after, strict=False)
    wrong += [f"the set-up cell replaced {was} by {now}" for was, now in both if was != now]
    return wrong + changed_ticks(nbformat.read(chapter, as_version=4), notebook)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make rehearsal", description=__doc__.splitlines()[0])
    parser.add_argument("chapters", nargs="*", help="such as chapters/03_….ipynb; all if none")
    parser.add_argument("--cuda", action="store_true", help="fail where PyTorch sees no GPU")
    options = parser.parse_args(arguments)
    failed = False
    with tempfile.TemporaryDirectory(prefix="rehearsal-") as name:
        book, environment = Path(name).resolve() / "book", Path(name).resolve() / "environment"
        # pip clones in part, and of a shallow clone git then fetches without end
        output_of("git", "clone", "--quiet", "--reject-shallow", ROOT, book)
        chapters = {path.name: path for path in sorted((book / "chapters").glob("*.ipynb"))}
        names = [Path(each).name for each in options.chapters] or list(chapters)
        if unknown := set(names) - set(chapters):
            parser.error(f"no committed chapter is named {', '.join(sorted(unknown))}")
        print("Rehearsing what is committed; the rest takes no part.", flush=True)
        make_environment(environment)
        if options.cuda and (torch := output_of(environment / "bin/python", "-c", CUDA).strip()):
            sys.exit(f"CUDA is not visible to PyTorch {torch}, which pip installs here.")
        for each in names:
            if reason := lacking(chapters[each]):
                print(f"{each}: skipped\n    {reason}", flush=True)
                continue
            start = time.perf_counter()
            wrong = rehearse(chapters[each], environment, book)
            line = f"{each}: {'failed' if wrong else 'ok'}, {time.perf_counter() - start:.0f} s"
            print(line, *wrong, sep="\n    ", flush=True)
            failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
