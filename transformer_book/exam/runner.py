"""The exam as one sees it: the file runs in a process of its own, and each part may take a while.

A process that goes on for too long is ended, and the parts behind it are asked in a new one.
"""

import json
import os
import queue
import secrets
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any

from transformer_book.exam.allowed import objection
from transformer_book.exam.parts import NAMED, PARTS, Part
from transformer_book.exam.report import FILE, Result

WORKER = "transformer_book.exam.worker"
PATIENCE = 40.0  # seconds without a word; a part takes less than one, on an idle machine
WHILE_TRAINING = 8.0  # times as patient: a quarter of the training lies between two words
Message = dict[str, Any]


def exam(file: str | os.PathLike[str] = "mine.py", *, only: str = "") -> None:
    """Says of each part in ``file`` whether it is right, and lets it translate.

    The file is run as Python code, with all that it does. ``only`` asks for the parts whose names
    begin so.

    Raises ValueError where there is no such file, or no such part.
    """
    path = Path(file)
    if not path.is_file():
        raise ValueError(f"file must be one that is there, got {str(file)!r}")
    examine(path, parts_named(only))


def parts_named(only: str) -> list[Part]:
    """The parts whose names begin with ``only``. Raises ValueError if there are none."""
    parts = [part for part in PARTS if part.name.startswith(only)]
    if not parts:
        names = ", ".join(part.name for part in PARTS)
        raise ValueError(f"only must be the beginning of one of {names}; got {only!r}")
    return parts


def examine(
    path: Path, parts: Sequence[Part] = PARTS, *, patience: float = PATIENCE
) -> list[Result]:
    """Prints what comes of each part, and returns it; nothing if the file cannot be examined."""
    if no := objection(path):
        print(f"✗ {no}")
        return []
    results: list[Result] = []
    while len(results) < len(parts):
        for line in _heard(path, parts[len(results) :], results, patience):
            print(line, flush=True)
            if isinstance(line, Result):
                results.append(line)
        if results and results[-1].part == FILE:
            return []
    counts = {mark: sum(result.mark == mark for result in results) for mark in "✓✗○"}
    last = f"{counts['✓']} of {len(results)} right"
    last += f", {counts['✗']} wrong" if counts["✗"] else ""
    print(last + (f", {counts['○']} not there yet" if counts["○"] else ""))
    return results


def _heard(
    path: Path, parts: Sequence[Part], known: Sequence[Result], patience: float
) -> Iterator[str | Result]:
    """What one process says of ``parts``; where it ends too early, of the part at which it was."""
    key = secrets.token_hex()
    asked: Message = {"key": key, "file": str(path), "parts": [part.name for part in parts]}
    asked["known"] = [asdict(result) for result in known]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    with tempfile.TemporaryFile() as request, tempfile.TemporaryFile() as errors:
        request.write(json.dumps(asked).encode())
        request.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", WORKER],
            stdin=request, stdout=subprocess.PIPE, stderr=errors, env=env,
        )  # fmt: skip
        messages: queue.Queue[Message | None] = queue.Queue()
        reader = threading.Thread(
            target=_read, args=(process.stdout, key.encode(), messages), daemon=True
        )
        reader.start()
        at, seconds, n_done = FILE, None, 0
        try:
            while n_done < len(parts):
                message = messages.get(timeout=seconds)
                if message is None:
                    errors.seek(0)
                    last = errors.read().decode(errors="replace").strip().splitlines()[-1:]
                    text = ": ".join(["the process ended before it had answered", *last])
                    yield Result(at, "✗", text, at)
                    return
                if "begin" in message:
                    at = message["begin"]
                    seconds = seconds_for(at, patience)
                elif "tell" in message:
                    yield message["tell"]
                else:
                    yield Result(**message)
                    n_done += 1
                    if message["part"] == FILE:
                        return
        except queue.Empty:
            text = f"nothing came for {seconds:.0f} seconds, so it was stopped. "
            text += (
                "Either a loop never ends, or your computer was too busy (--patience waits longer)"
            )
            if at == FILE:
                text += '. If it trains, do so under: if __name__ == "__main__"'
            yield Result(at, "○", text, at)
        finally:
            process.kill()
            process.wait()


def seconds_for(name: str, patience: float) -> float | None:
    """How long to wait for a word of the part ``name``."""
    return patience * (WHILE_TRAINING if name != FILE and NAMED[name].trains else 1)


def _read(pipe: IO[bytes], key: bytes, messages: "queue.Queue[Message | None]") -> None:
    """What begins with the key; None where the pipe ends."""
    with pipe:
        for line in pipe:
            if line.startswith(key):
                messages.put(json.loads(line[len(key) :]))
    messages.put(None)
