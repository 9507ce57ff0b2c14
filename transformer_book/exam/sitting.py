"""The exam as one sees it: the file runs in a process of its own, and each part may take a while.

A process that goes on for too long is ended, and the parts behind it are asked in a new one.
"""

import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from transformer_book.exam.allowed import objection
from transformer_book.exam.marks import FILE, Result
from transformer_book.exam.parts import PARTS, Part

DESK = "transformer_book.exam.desk"
PATIENCE = 40.0  # seconds without a word; a part takes less than one, on an idle machine
START = 180.0  # for a new process to import PyTorch
WHILE_TRAINING = 8.0  # times as patient: a quarter of the training lies between two words


def exam(file: str | os.PathLike[str] = "mine.py", *, only: str = "") -> None:
    """Says of each part in ``file`` whether it is right, and lets it translate.

    The file is run as Python code, with all that it does. ``only`` asks for the parts whose names
    begin so.

    Raises ValueError where there is no such file, or no such part.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"file must be one that is there, got {str(file)!r}")
    sit(path, parts_named(only))


def parts_named(only: str) -> list[Part]:
    """The parts whose names begin with ``only``. Raises ValueError if there are none."""
    parts = [part for part in PARTS if part.name.startswith(only)]
    if not parts:
        names = ", ".join(part.name for part in PARTS)
        raise ValueError(f"only must be the beginning of one of {names}; got {only!r}")
    return parts


def sit(path: Path, parts: Sequence[Part] = PARTS, *, patience: float = PATIENCE) -> list[Result]:
    """Prints what is found of each part, and returns it; nothing if the file cannot be examined."""
    no = objection(path.read_text(encoding="utf-8", errors="replace"), path.name)
    if no:
        print(f"✗ {no}")
        return []
    results: list[Result] = []
    for said in _all_said(path, list(parts), patience):
        if "tell" in said:
            print(said["tell"], flush=True)
            continue
        result = Result(**said)
        print(f"{result.mark} {result.part}: {result.text}", flush=True)
        results.append(result)
    if results and results[-1].part == FILE:
        return []
    counts = {mark: sum(result.mark == mark for result in results) for mark in "✓✗○"}
    last = f"{counts['✓']} of {len(results)} right"
    last += f", {counts['✗']} wrong" if counts["✗"] else ""
    print(last + (f", {counts['○']} not there yet" if counts["○"] else ""))
    return results


def _all_said(path: Path, parts: Sequence[Part], patience: float) -> Iterator[dict[str, Any]]:
    """What the processes say; one that is ended is followed by another, for the parts behind."""
    left, is_wrong = list(parts), False
    while left:
        n_before, said = len(left), {}
        for said in _said(path, left, is_wrong, patience):
            names = [part.name for part in left]
            if "part" in said:
                done = names.index(said["part"]) if said["part"] in names else len(names)
                left = left[done + 1 :]
            is_wrong = is_wrong or said.get("mark") == "✗"
            yield said
        if len(left) == n_before:
            return
        while left and left[0].name.startswith(f"{said.get('part')},"):  # as it would again
            yield {"part": left.pop(0).name, "mark": "○", "text": f"waits for {said['part']}"}


def _said(
    path: Path, left: Sequence[Part], is_wrong: bool, patience: float
) -> Iterator[dict[str, Any]]:
    """What one process says of the parts left, and why it ended, if it did so too early."""
    trains = {part.name for part in left if part.trains}
    command = [sys.executable, "-P", "-m", DESK, str(path), "wrong" if is_wrong else ""]
    command += [part.name for part in left]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    pipes: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, **pipes, stderr=errors, env=env, text=True)
        lines: queue.Queue[str] = queue.Queue()
        threading.Thread(target=_read, args=(process.stdout, lines), daemon=True).start()
        asked, seconds = "", START
        try:
            while line := lines.get(timeout=seconds):
                said = json.loads(line)
                if "begin" in said:
                    asked = said["begin"]
                    seconds = patience * (WHILE_TRAINING if asked in trains else 1)
                    continue
                asked = "" if "part" in said else asked
                yield said
            process.wait()
        except queue.Empty:
            text = f"nothing came for {seconds:.0f} seconds, so it was stopped"
            text += ". Is there a loop that never ends?"
            if asked == FILE:
                text += ' If it trains, do so under: if __name__ == "__main__"'
            yield {"part": asked or FILE, "mark": "✗", "text": text}
            return
        finally:
            process.kill()
            process.wait()
        if asked or process.returncode:
            errors.seek(0)
            last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
            text = "the process ended before it had answered"
            yield {"part": asked or FILE, "mark": "✗", "text": ": ".join([text, *last])}


def _read(pipe: IO[str], lines: "queue.Queue[str]") -> None:
    with pipe:
        for line in pipe:
            lines.put(line)
    lines.put("")
