"""Run the chapters and store what they print: ``make chapters``.

A chapter's outputs are committed, so each notebook carries a stamp that says what they were made
from; ``tests/test_chapters.py`` refuses a stamp that no longer fits.
"""

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path

import nbformat
import yaml
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode

from tools.ledger import ledger

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("*.ipynb"))
LEDGER = ROOT / "appendix" / "ledger.md"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
SET_UP = """\
# One thread, as for the stored outputs. On Colab this installs the book's package, too.
import os
from importlib.util import find_spec

os.environ["OMP_NUM_THREADS"] = "1"  # read when torch is imported
if find_spec("transformer") is None:
    %pip install --quiet "git+{url}"
"""


def repository() -> str:
    """The address that ``_config.yml`` names, the only place where it is set."""
    return yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["repository"]["url"]


def set_up_source() -> str:
    """The source of the set-up cell, the same in every chapter."""
    return SET_UP.format(url=repository()).rstrip()


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def stamp(notebook: NotebookNode) -> dict[str, str]:
    """Hashes of what the outputs were made from, and of the outputs (pictures included).

    The set-up cell is left out: it is held equal to :data:`SET_UP`, and a new repository address
    changes nothing that a chapter computes.
    """
    made_from = hashlib.sha256()
    for path in sorted((ROOT / "transformer").rglob("*")):
        name = path.relative_to(ROOT).as_posix()
        # an editor's checkpoints are not the package
        if path.suffix in (".py", ".js", ".css") and "/." not in name:
            made_from.update(name.encode() + b"\0" + path.read_bytes())
    cells = code_cells(notebook)
    sources = [cell.source for cell in cells if cell.id != "set-up"]
    made_from.update(json.dumps(sources).encode())
    outputs = json.dumps([cell.outputs for cell in cells], sort_keys=True)
    return {
        "made_from": made_from.hexdigest()[:16],
        "outputs": hashlib.sha256(outputs.encode()).hexdigest()[:16],
    }


def is_fresh(notebook: NotebookNode) -> bool:
    return notebook.metadata.get("transformer_book") == stamp(notebook)


def tidy(notebook: NotebookNode) -> None:
    """Put in the set-up cell of this repository; drop what editors leave behind."""
    for cell in notebook.cells:
        if cell.id == "set-up":
            cell.source = set_up_source()
        for volatile in ("execution", "scrolled", "collapsed", "ExecuteTime", "colab", "outputId"):
            cell.metadata.pop(volatile, None)


def run(notebook: NotebookNode) -> None:
    """Execute in a new kernel, in ``chapters/``, and stamp; raises where a cell raises."""
    client = NotebookClient(
        notebook,
        timeout=300,
        kernel_name="python3",
        record_timing=False,
        coalesce_streams=True,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        resources={"metadata": {"path": str(ROOT / "chapters")}},
    )
    client.execute()
    notebook.metadata = nbformat.from_dict(METADATA | {"transformer_book": stamp(notebook)})


def save(notebook: NotebookNode, path: Path) -> None:
    """Write beside ``path``, then rename: a chapter is never left half written."""
    temporary = path.with_suffix(".ipynb.new")
    nbformat.write(notebook, temporary)
    temporary.replace(path)


def save_ledger() -> None:
    LEDGER.write_text(ledger(CHAPTERS), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make chapters", description=__doc__.splitlines()[0])
    parser.add_argument("--all", action="store_true", help="run the fresh ones as well")
    options = parser.parse_args(arguments)
    # as the tests do: see conftest.py
    os.environ |= {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}
    for path in CHAPTERS:
        notebook = nbformat.read(path, as_version=4)
        tidy(notebook)
        if is_fresh(notebook) and not options.all:
            save(notebook, path)
            print(f"{path.name}: fresh")
            continue
        start = time.perf_counter()
        try:
            run(notebook)
        except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
            print(f"{path.name}: left as it was, for a cell failed\n{error}", file=sys.stderr)
            return 1
        save(notebook, path)
        print(
            f"{path.name}: {len(code_cells(notebook))} cells, {time.perf_counter() - start:.0f} s"
        )
    save_ledger()
    return 0


if __name__ == "__main__":
    sys.exit(main())
