"""The command line: ``python -m transformer``. What a user did wrong ends in one line here."""

import argparse
import contextlib
import os
import signal
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

import torch

from transformer.commands import evaluate, export, train, translate
from transformer.runtime import Unfailing

# each has its USAGE, add_options(parser) and execute(args)
_COMMANDS = {"train": train, "translate": translate, "evaluate": evaluate, "export": export}
# What the files and numbers of a user can lead to. Everything else is an error of the program,
# whose traceback is shown.
_OF_USERS = (ValueError, OSError, FloatingPointError, MemoryError, torch.OutOfMemoryError)
_USAGE, _OF_SIGNALS, _CLOSED_PIPE = 2, 128, 141  # exit statuses, as a shell counts signals


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, once for all processes of torchrun, which are given alike."""

    def error(self, message: str) -> NoReturn:
        self.exit(
            _USAGE, None if _rank() else f"{self.prog.removeprefix('python -m ')}: {message}\n"
        )


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status; with --debug errors keep their traceback."""
    _use_utf8()
    try:
        with contextlib.redirect_stderr(Unfailing(sys.stderr)):
            return _run(arguments)
    finally:
        _flush(sys.stderr)


def _run(arguments: Sequence[str] | None) -> int:
    args = _make_parser().parse_args(arguments)
    name = f"transformer {args.command}"
    try:
        _COMMANDS[args.command].execute(args)
        sys.stdout.flush()
    except BrokenPipeError:  # as head closes it, once it has what it wants
        _drop(sys.stdout)
        return _CLOSED_PIPE
    except KeyboardInterrupt as stop:
        if args.debug:
            raise
        _tell(name, str(stop) or "interrupted", rank=_rank())
        return _OF_SIGNALS + getattr(stop, "number", signal.SIGINT)
    except (*_OF_USERS, RuntimeError) as error:
        if args.debug or not _is_of_users(error):
            raise
        # a loss that is not finite is the same in all processes
        same = isinstance(error, FloatingPointError)
        _tell(name, _in_one_line(error), rank=_rank() if same else 0)
        return _USAGE
    return 0


def _make_parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m transformer",
        description="Trains a Transformer, translates with it, and measures how well it does.",
    )
    commands = parser.add_subparsers(
        dest="command", metavar="command", required=True, parser_class=_Parser
    )
    for name, command in _COMMANDS.items():
        made = commands.add_parser(
            name,
            help=str(command.__doc__).partition(" (chapter")[0],
            description=command.__doc__,
            usage=command.USAGE,
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        command.add_options(made)
        made.add_argument("--debug", action="store_true", help="show where an error came from")
    return parser


def _is_of_users(error: Exception) -> bool:
    # PyTorch has no class of its own for a CPU without memory
    return isinstance(error, _OF_USERS) or "can't allocate memory" in str(error)


def _in_one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror}"
    if not isinstance(error, ValueError | OSError | FloatingPointError):
        first = str(error).partition("\n")[0]
        return f"out of memory; a smaller batch or model needs less ({first})"
    return " ".join(str(error).split("\n"))


def _tell(name: str, message: str, *, rank: int) -> None:
    """To be read after what was printed before."""
    _flush(sys.stdout)
    if rank == 0:
        print(f"{name}: {message}", file=sys.stderr)


def _rank() -> int:
    """Which process of torchrun this is, also before and after they have met."""
    return int(os.environ.get("RANK", 0))


def _use_utf8() -> None:
    """Whatever the locale: text files are read and written as UTF-8, too."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        getattr(sys, name).reconfigure(encoding="utf-8", errors="backslashreplace")


def _flush(stream: Any) -> None:
    try:
        stream.flush()
    except OSError:  # as on a full disk, which may be the error to tell of
        _drop(stream)


def _drop(stream: Any) -> None:
    """Python flushes what is left when it ends, and would fail once more."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
