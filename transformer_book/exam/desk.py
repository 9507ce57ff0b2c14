"""The process in which the reader's file is run: one line of JSON for each thing that it finds.

Started by ``sitting.py`` as ``python -m transformer_book.exam.desk mine.py PART PART …``. What the
file itself prints is not shown.
"""

import json
import os
import sys
import warnings
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import Any, TextIO

import torch

from transformer_book.exam.marks import FILE, Mine
from transformer_book.exam.parts import PARTS, answers
from transformer_book.your_turn import LargestTensor


def main(arguments: Sequence[str]) -> None:
    """Says what is found of the parts that are named, behind the file and "wrong" or nothing."""
    file, wrong, *names = arguments
    out = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    warnings.simplefilter("ignore")
    path = Path(file).resolve()
    with LargestTensor():  # for the first time, which takes some seconds
        torch.zeros(1)
    _say(out, begin=FILE)
    try:
        mine = load(path)
    except BaseException as error:  # sys.exit is an answer, too
        where = Mine(type(sys)("mine"), path).where(error)
        _say(out, part=FILE, mark="✗", text=f"{path.name}: your code stopped{where}")
        return
    for part in (part for part in PARTS if part.name in names):
        _say(out, begin=part.name)
        for result in answers(
            mine, [part], is_wrong=wrong == "wrong", tell=lambda line: _say(out, tell=line)
        ):
            _say(out, **asdict(result))
            wrong = "wrong" if result.mark == "✗" else wrong


def load(path: Path) -> Mine:
    """Runs the file as a module called ``mine``; raises whatever it raises."""
    if path.suffix != ".py":
        raise ValueError(f"path must be that of a Python file, got {path}")
    module = ModuleType("mine")
    module.__file__ = str(path)
    sys.modules["mine"] = module
    # not through importlib, whose cache takes a file of the same size and second for the same file
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    return Mine(module, path)


def _say(out: TextIO, **said: Any) -> None:
    out.write(json.dumps(said) + "\n")
    out.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
