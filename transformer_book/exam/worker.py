"""What happens in the process in which the reader's file is run; ``runner.py`` starts it."""

import os
import sys
import warnings
from collections.abc import Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import ModuleType

import torch

from transformer_book.answers import LargestTensor
from transformer_book.exam.parts import answer
from transformer_book.exam.reader import Mine
from transformer_book.exam.report import FILE, Result


def answer_all(
    path: Path, names: Sequence[str], spoilt_by: dict[str, str], pipe: Connection
) -> None:
    """Sends into ``pipe`` what comes of each part, when it begins, and lines to be told between.

    What the file itself prints is not shown.
    """
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nothing, stream)
    torch.set_num_threads(1)  # so that a busy computer is no slower than it must be
    warnings.simplefilter("ignore")
    with LargestTensor():  # for the first time, which takes some seconds
        torch.zeros(1)
    pipe.send(("begin", FILE))
    try:
        mine = load(path.resolve())
    except BaseException as error:  # sys.exit is an answer, too
        text = f"{path.name}: your code stopped"
        text += Mine(ModuleType("mine"), path.resolve()).where(error)
        if isinstance(error, FileNotFoundError):
            text += "\n    The exam brings its own sentences: delete the lines that read yours"
            text += ", and what is made of them."
        pipe.send(Result(FILE, "✗", text))
        return
    mine.tell = pipe.send
    for name in names:
        pipe.send(("begin", name))
        pipe.send(answer(mine, name, spoilt_by))


def load(path: Path) -> Mine:
    """Runs the file as a module called ``mine``; raises whatever it raises."""
    module = ModuleType("mine")
    module.__file__ = str(path)
    sys.modules["mine"] = module
    # not through importlib, whose cache takes a file of the same size and second for the same file
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    return Mine(module, path)
