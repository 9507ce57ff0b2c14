"""The exam as one sees it: the file runs in a process of its own, and each part may take a while.

A process that goes on for too long is ended, and the parts behind it are asked in a new one.
"""

import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from transformer_book.exam.allowed import objection
from transformer_book.exam.parts import PARTS
from transformer_book.exam.report import FILE, Result
from transformer_book.exam.worker import answer_all

PATIENCE = 40.0  # seconds without a word; a part takes less than one, on an idle machine
WHILE_TRAINING = 8.0  # times as patient: a quarter of the training lies between two words
NAMED = 3  # of the parts that are not written; the others are only counted


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


def parts_named(only: str) -> list[str]:
    """The parts whose names begin with ``only``. Raises ValueError if there are none."""
    names = [name for name in PARTS if name.startswith(only)]
    if not names:
        raise ValueError(f"only must be the beginning of one of {', '.join(PARTS)}; got {only!r}")
    return names


def examine(path: Path, names: Sequence[str], *, patience: float = PATIENCE) -> list[Result]:
    """Prints what comes of each part, and returns it; nothing if the file cannot be examined."""
    if no := objection(path):
        print(f"✗ {no}")
        return []
    results: list[Result] = []
    while len(results) < len(names):
        for line in _answers(path, names[len(results) :], results, patience):
            if isinstance(line, Result):
                if line.part == FILE:
                    print(line)
                    return []
                results.append(line)
                if line.is_unwritten and sum(r.is_unwritten for r in results) > NAMED:
                    continue
            print(line, flush=True)
    marks = Counter(result.mark for result in results)
    last = f"{marks['✓']} of {len(results)} right"
    last += f", {marks['✗']} wrong" if marks["✗"] else ""
    print(last + (f", {marks['○']} not there yet" if marks["○"] else ""))
    return results


def _answers(
    path: Path, names: Sequence[str], known: Sequence[Result], patience: float
) -> Iterator[str | Result]:
    """What one process says of the parts; where it ends too early, of that at which it was."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    spoilt_by = {result.part: result.spoilt_by for result in known}
    process = context.Process(target=answer_all, args=(path, names, spoilt_by, theirs))
    process.start()
    theirs.close()
    at, seconds = FILE, None
    try:
        while ours.poll(seconds):
            match ours.recv():
                case ("begin", at):
                    seconds = seconds_for(at, patience)
                case Result() as result:
                    yield result
                    if at in (FILE, names[-1]):
                        return
                case line:
                    yield line
        text = f"nothing came for {seconds:.0f} seconds, so it was stopped. Either a loop "
        text += "never ends, or your computer was too busy (--patience waits longer)"
        if at == FILE:
            text += '. If it trains, do so under: if __name__ == "__main__"'
        yield Result(at, "○", text, at)
    except EOFError:
        yield Result(at, "✗", "the process ended before it had answered", at)
    finally:
        process.kill()
        process.join()


def seconds_for(name: str, patience: float) -> float:
    """How long to wait for a word of the part ``name``."""
    return patience * (WHILE_TRAINING if name != FILE and PARTS[name].trains else 1)
