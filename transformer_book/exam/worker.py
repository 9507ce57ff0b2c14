"""The process in which the reader's file is run: a line of JSON for each thing that is to be told.

Started by ``runner.py``, which says what to ask. What the file itself prints is not shown.
"""

import json
import os
import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from types import ModuleType

import torch

from transformer_book.answers import LargestTensor
from transformer_book.exam.parts import answer
from transformer_book.exam.reader import Mine
from transformer_book.exam.report import FILE, Result


def main(request: str) -> None:
    """Answers what is asked: a file, its parts, and which others are known to be spoilt."""
    asked = json.loads(request)
    told = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # the reader's prints end here

    def send(**message: object) -> None:
        print(json.dumps(message), file=told, flush=True)

    torch.set_num_threads(1)  # so that a busy computer is no slower than it must be
    warnings.simplefilter("ignore")
    path = Path(asked["file"]).resolve()
    with LargestTensor():  # for the first time, which takes some seconds
        torch.zeros(1)
    send(begin=FILE)
    try:
        mine = load(path)
    except BaseException as error:  # sys.exit is an answer, too
        text = f"{path.name}: your code stopped{Mine(ModuleType('mine'), path).where(error)}"
        if isinstance(error, FileNotFoundError):
            text += "\n    The exam brings its own sentences: delete the lines that read yours"
            text += ", and what is made of them."
        send(**asdict(Result(FILE, "✗", text)))
        return
    mine.tell = lambda line: send(tell=line)
    for name in asked["parts"]:
        send(begin=name)
        send(**asdict(answer(mine, name, asked["spoilt_by"])))


def load(path: Path) -> Mine:
    """Runs the file as a module called ``mine``; raises whatever it raises."""
    module = ModuleType("mine")
    module.__file__ = str(path)
    sys.modules["mine"] = module
    # not through importlib, whose cache takes a file of the same size and second for the same file
    exec(compile(path.read_bytes(), path, "exec"), module.__dict__)
    return Mine(module, path)


if __name__ == "__main__":
    main(sys.argv[1])
