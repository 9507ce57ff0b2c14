"""The command line: ``python -m transformer``. What a user did wrong ends in one line here."""

import argparse
import contextlib
import os
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
_USAGE, _INTERRUPTED, _CLOSED_PIPE = 2, 130, 141  # exit statuses, as a shell counts signals


class _Parser(argparse.ArgumentParser):
    """Says in one line what is wrong, once for all processes of torchrun, which are given alike."""

    def error(self, message: str) -> NoReturn:
        name = self.prog.removeprefix("python -m ")
        self.exit(_USAGE, None if _rank() else f"{name}: {message}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs a command and returns the exit status; with --debug errors keep their traceback."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # whoever began this has closed it
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w"))
        stream: Any = getattr(sys, name)  # whatever the locale, as text files are read, too
        stream.reconfigure(encoding="utf-8", errors="backslashreplace")
    try:
        with contextlib.redirect_stderr(Unfailing(sys.stderr)):
            return _run(arguments)
    finally:
        _flush(sys.stderr)


def _run(arguments: Sequence[str] | None) -> int:
    args = _make_parser().parse_args(arguments)
    try:
        _COMMANDS[args.command].execute(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:  # as head closes it, once it has what it wants
        return _CLOSED_PIPE
    except KeyboardInterrupt as stop:
        if args.debug:
            raise
        return _tell(args, str(stop) or "interrupted", _INTERRUPTED, once=True)
    except (*_OF_USERS, RuntimeError) as error:
        # PyTorch has no class of its own for a CPU without memory
        of_users = isinstance(error, _OF_USERS) or "can't allocate memory" in str(error)
        if args.debug or not of_users:
            raise
        # a loss that is not finite is the same in all processes
        once = isinstance(error, FloatingPointError)
        return _tell(args, _in_one_line(error), _USAGE, once=once)
    finally:
        _flush(sys.stdout)


def _tell(args: argparse.Namespace, message: str, status: int, *, once: bool) -> int:
    """Writes a line, of all processes of torchrun one if ``once``; returns the exit status."""
    _flush(sys.stdout)  # what was printed before is read before
    if not (once and _rank()):
        print(f"transformer {args.command}: {message}", file=sys.stderr)
    return status


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


def _in_one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror is not None:
        where = "" if error.filename is None else f"{os.fsdecode(error.filename)}: "
        return f"{where}{error.strerror}"
    if isinstance(error, MemoryError | RuntimeError):
        first = str(error).partition("\n")[0]
        return f"out of memory; a smaller batch or model needs less ({first})"
    return " ".join(str(error).split("\n"))


def _rank() -> int:
    """Which process of torchrun this is, also before and after they have met."""
    return int(os.environ.get("RANK", 0))


def _flush(stream: Any) -> None:
    """Writes what is left; where that fails, it goes nowhere, or Python would fail once more."""
    try:
        stream.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
