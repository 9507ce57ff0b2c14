"""Run a notebook in a kernel of its own, and say how it went: for all that runs chapters."""

import argparse
import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from jupyter_client.kernelspec import KernelSpecManager
from jupyter_core.utils import run_sync
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError
from nbformat import NotebookNode

from tools.needs import lacking

A_DAY = 86_400  # whoever waits for a chapter decides how long; no clock does


class Stopped(Exception):
    """A notebook that did not run to its end: in which cell, and why."""


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def printed(cell: NotebookNode) -> list[str]:
    """The lines that a cell has printed."""
    return "".join(o.text for o in cell.outputs if o.output_type == "stream").splitlines()


async def execute(
    notebook: NotebookNode,
    folder: Path,
    *,
    kernel: str = "python3",
    kernels: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> None:
    """Execute in a new kernel, in ``folder``; ``kernels`` is where others than the usual ones are.

    Raises Stopped where a cell raises, or the kernel ends.
    """
    started = ["before the first"]
    client = NotebookClient(
        notebook,
        timeout=None,
        startup_timeout=A_DAY,
        iopub_timeout=A_DAY,
        kernel_name=kernel,
        record_timing=False,
        extra_arguments=["--IPKernelApp.log_level=ERROR"],
        on_cell_start=lambda cell, cell_index: started.append(cell.id),
    )
    if kernels:
        found = KernelSpecManager(kernel_dirs=[str(kernels)])
        client.create_kernel_manager().kernel_spec_manager = found
    try:
        await client.async_execute(cwd=str(folder), env=env or os.environ)
    except CellExecutionError as error:
        raise Stopped(f"cell {started[-1]}: {error.ename}: {error.evalue}") from error
    except RuntimeError as error:  # the kernel did not start, or died
        raise Stopped(f"cell {started[-1]}: {str(error).splitlines()[0]}") from error
    for cell in code_cells(notebook):
        cell.outputs = join_streams(cell.outputs)


def join_streams(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Outputs with what was printed in a row in one piece.

    A kernel sends what is printed in pieces, as time has it. nbclient joins all of a cell's, which
    would put what is printed after a claim in front of it.
    """
    joined: list[NotebookNode] = []
    for output in outputs:
        before = joined[-1] if joined else {}
        if output.output_type == "stream" and output.name == before.get("name"):
            before["text"] += output.text
        else:
            joined.append(output)
    return joined


def execute_or_say(*given, **options) -> list[str]:
    """Where :func:`execute` stopped, and why; nothing if it did not."""
    try:
        run_sync(execute)(*given, **options)  # in one loop, as the sockets of all kernels are
    except Stopped as stopped:
        return [str(stopped)]
    return []


def chosen(
    parser: argparse.ArgumentParser, names: Sequence[str], chapters: Iterable[Path]
) -> list[Path]:
    """Those of ``chapters`` that are named, or all; ``parser`` tells of a name that none has."""
    known = {path.name: path for path in chapters}
    wanted = [Path(name).name for name in names] or list(known)
    if unknown := set(wanted) - set(known):
        parser.error(f"no chapter is named {', '.join(sorted(unknown))}")
    return [known[name] for name in wanted]


def check_each(chapters: Iterable[Path], wrong_in: Callable[[Path], list[str]]) -> int:
    """Print of each chapter what is wrong in it, and how long it took; 1 if anything is wrong."""
    failed = False
    for chapter in chapters:
        if reason := lacking(chapter):
            print(f"{chapter.name}: skipped\n    {reason}", flush=True)
            continue
        start = time.perf_counter()
        wrong = wrong_in(chapter)
        seconds = time.perf_counter() - start
        line = f"{chapter.name}: {'failed' if wrong else 'ok'}, {seconds:.0f} s"
        print(line, *wrong, sep="\n    ", flush=True)
        failed |= bool(wrong)
    return int(failed)
