"""Run the chapters and store what they print: ``make chapters``.

A chapter's outputs are committed. Each notebook carries a stamp that says what they were made from,
so that only those are run whose outputs may have changed.
"""

import argparse
import asyncio
import hashlib
import json
import os
import re
import sys
import time
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import nbformat
import yaml
from nbformat import NotebookNode

from tools import running
from tools.evening import save_files
from tools.ledger import ledger
from tools.palette import save_palette
from tools.running import code_cells
from tools.set_up import is_evening, set_up_source
from transformer.files import replace_file
from transformer_book.experiments.imports import bare, python_of_cell

ROOT = Path(__file__).resolve().parents[1]
CHAPTERS = sorted((ROOT / "chapters").glob("[0-9]*.ipynb"))
TOC = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
LISTED = [ROOT / f"{page['file']}.ipynb" for part in TOC["parts"] for page in part["chapters"]]
NOTEBOOKS = [path for path in LISTED if path.exists()]  # all that run, as a reader meets them
LEDGER = ROOT / "appendix" / "ledger.md"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}
# What a cell's metadata may say; what else stands there is an editor's.
CELL_METADATA = {"tags", "mystnb", "cellView", "jupyter", "measured", "within", "differs_after"}
# as the tests do: see conftest.py
ENVIRONMENT = {"OMP_NUM_THREADS": "1", "TQDM_DISABLE": "1", "TOKENIZERS_PARALLELISM": "false"}
FOLDED = {"hide-cell", "hide-input"}
TITLE = re.compile(r"(?:%%.*\n)?# @title (\S.*)")  # perhaps behind the magic of the cell


def stamp(notebook: NotebookNode) -> dict[str, str]:
    """Hashes of the notebook's own code and of its outputs, pictures included.

    Comments, docstrings and layout do not count, nor does the set-up cell, which ``tidy`` writes.
    """
    cells = code_cells(notebook)
    code = json.dumps([_meant(cell.source) for cell in cells if cell.id != "set-up"])
    outputs = json.dumps([(cell.execution_count, cell.outputs) for cell in cells], sort_keys=True)
    texts = {"code": code, "outputs": outputs}
    return {name: hashlib.sha256(text.encode()).hexdigest()[:16] for name, text in texts.items()}


def _meant(source: str) -> str:
    """What a cell computes; its own words where it is no Python, as the kernel will say."""
    magic = source.partition("\n")[0] if source.startswith("%%") else ""
    try:
        return f"{magic}\n{bare(python_of_cell(source))}"
    except SyntaxError:
        return source


def is_fresh(notebook: NotebookNode) -> bool:
    return notebook.metadata.get("transformer_book") == stamp(notebook)


def tidy(notebook: NotebookNode) -> None:
    """Put in the set-up cell of this repository; label folds and drawings; drop what editors leave.

    JupyterLab, VS Code and Colab each name their own kernel, and add a cell's state.
    """
    stamped = {k: v for k, v in notebook.metadata.items() if k == "transformer_book"}
    notebook.metadata = nbformat.from_dict(METADATA | stamped)
    for cell in notebook.cells:
        if cell.id == "set-up":
            cell.source = set_up_source(evening=is_evening(notebook))
        for name in cell.metadata.keys() - CELL_METADATA:
            del cell.metadata[name]
        if cell.cell_type == "code":
            _label(cell)


def _label(cell: NotebookNode) -> None:
    """Fold a cell under its title on the site, on Colab and in Jupyter; put words to a drawing."""
    site = cell.metadata.pop("mystnb", {})
    for name in ("code_prompt_show", "code_prompt_hide"):
        site.pop(name, None)
    title = TITLE.match(cell.source)
    if title and FOLDED.intersection(cell.metadata.get("tags", [])):
        cell.metadata |= {"cellView": "form", "jupyter": {"source_hidden": True}}
        site |= {"code_prompt_show": title[1].strip(), "code_prompt_hide": title[1].strip()}
    else:
        cell.metadata.pop("cellView", None)
        cell.metadata.pop("jupyter", None)
    if words := [alt for alt in map(words_for, drawings(cell)) if alt]:
        site.setdefault("image", {})["alt"] = words[0]
    if site:
        cell.metadata["mystnb"] = nbformat.from_dict(site)


def drawings(cell: NotebookNode) -> list[str]:
    """The drawings and plots that a cell shows, as SVG."""
    shown = (output.get("data", {}) for output in cell.get("outputs", []))
    return [data["image/svg+xml"] for data in shown if "image/svg+xml" in data]


def words_for(drawing: str) -> str | None:
    """What a drawing says of itself to those who do not see it; a plot says nothing."""
    return ElementTree.fromstring(drawing).get("aria-label")


class _Loop(asyncio.SelectorEventLoop):
    """Leaves Ctrl-C to asyncio, which ends every chapter; nbclient would end the last begun."""

    def add_signal_handler(self, *_: Any) -> None:  # type: ignore[override]  # whatever it is given
        raise RuntimeError("no handlers here")  # as outside the main thread; nbclient expects it


async def execute(notebook: NotebookNode) -> None:
    """Execute in a new kernel, in ``chapters/``, and stamp; raises Stopped where a cell raises."""
    await running.execute(notebook, ROOT / "chapters")
    tidy(notebook)
    notebook.metadata.transformer_book = stamp(notebook)


async def execute_all(stale: dict[Path, NotebookNode], jobs: int) -> bool:
    """Execute ``jobs`` chapters at a time, and save each that runs to its end; whether all did."""
    free = asyncio.Semaphore(jobs)

    async def execute_one(path: Path, notebook: NotebookNode) -> bool:
        async with free:
            start = time.perf_counter()
            try:
                await execute(notebook)
            except running.Stopped as stopped:
                task = asyncio.current_task()
                if task is None or not task.cancelling():  # else Ctrl-C ended its kernel
                    what = f"{path.name}: left as it was, for it stopped at an error"
                    print(what, stopped.__cause__, sep="\n", file=sys.stderr, flush=True)
                return False
            save(notebook, path)
            seconds = time.perf_counter() - start
            print(f"{path.name}: {len(code_cells(notebook))} cells, {seconds:.0f} s", flush=True)
            return True

    return all(await asyncio.gather(*(execute_one(*each) for each in stale.items())))


def save(notebook: NotebookNode, path: Path) -> None:
    """A chapter is never left half written."""
    replace_file(path, nbformat.writes(notebook) + "\n")


def save_ledger() -> None:
    replace_file(LEDGER, ledger(NOTEBOOKS))


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="make chapters", description=__doc__.splitlines()[0])
    parser.add_argument("only", nargs="*", help="names begin so: 01 one_evening; else all of them")
    parser.add_argument("--all", action="store_true", help="run the fresh ones as well")
    parser.add_argument("-j", "--jobs", type=int, default=min(2, os.cpu_count() or 1), metavar="N")
    options = parser.parse_args(arguments)
    if options.jobs < 1:
        parser.error(f"--jobs must be at least 1, got {options.jobs}")
    begins = tuple(options.only or [""])
    chosen = [path for path in NOTEBOOKS if path.name.startswith(begins)]
    if not chosen:
        names = ", ".join(path.stem for path in NOTEBOOKS)
        parser.error(f"only must begin the name of one of {names}, got {' '.join(begins)}")
    os.environ |= ENVIRONMENT
    stale = {}
    for path in chosen:
        notebook = nbformat.read(path, as_version=4)
        tidy(notebook)
        if is_fresh(notebook) and not options.all:
            save(notebook, path)
            print(f"{path.name}: fresh", flush=True)
        else:
            stale[path] = notebook
    try:
        with asyncio.Runner(loop_factory=_Loop) as runner:
            all_ran = runner.run(execute_all(stale, options.jobs))
    except KeyboardInterrupt:
        print("Stopped: the chapters that were running are left as they were.", file=sys.stderr)
        all_ran = False
    save_ledger()
    save_palette()
    save_files()
    return int(not all_ran)


if __name__ == "__main__":
    sys.exit(main())
