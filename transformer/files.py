"""Files that are never half written, and folders that one process at a time writes to."""

import contextlib
import errno
import os
import re
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

LOCK, SOFT_LOCK = ".lock", ".lock.soft"  # the file in a folder that is held while one writes there


def replace_file(path: str | Path, data: bytes | str) -> None:
    """Writes ``data``, a str as UTF-8, to a new file beside ``path``, which then takes its place.

    Whoever reads ``path`` meets the old file or the new one. Raises OSError, which names ``path``;
    the old file then stays, and nothing is left beside it.
    """
    replace_files({Path(path): data})


def replace_files(files: Mapping[Path, bytes | str]) -> None:
    """``replace_file`` for several: all are written before the first takes its place."""
    # nobody can have laid a link under a name that is drawn now, and this would not follow it
    drawn = {path.with_name(f".{path.name}.{secrets.token_hex(4)}"): path for path in files}
    try:
        for temporary, path in drawn.items():
            data = files[path]
            with open(temporary, "xb") as file:
                file.write(data.encode() if isinstance(data, str) else data)
                file.flush()
                os.fsync(file.fileno())  # else a power cut could leave it empty under its name
        for temporary, path in drawn.items():
            os.replace(temporary, path)
    except BaseException as error:
        for temporary in drawn:
            with contextlib.suppress(OSError):
                temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:  # of the temporary file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    for folder in {path.parent for path in files}:
        with contextlib.suppress(OSError):  # not every system can; the files are there
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def remove_leftovers(folder: str | Path, names: str) -> None:
    """Removes what processes that were killed in ``replace_file`` left of files of these names."""
    for path in leftovers(folder, names):
        path.unlink(missing_ok=True)


def leftovers(folder: str | Path, names: str) -> set[Path]:
    """Those files, by the names that ``replace_file`` draws; ``names`` is a regular expression."""
    drawn = re.compile(rf"\.({names})\.[0-9a-f]{{8}}")
    named = {path for path in Path(folder).iterdir() if drawn.fullmatch(path.name)}
    return {path for path in named if path.is_file()}


@contextlib.contextmanager
def only_writer(folder: str | Path) -> Iterator[None]:
    """Holds the lock of a folder, which is made where there is none; again where it is held here.

    The kernel lets go of it when the process ends. An empty file, ``.lock``, stays in the folder:
    to remove it could give two processes a lock each. On a disk without such locks, as some of a
    network are, a file ``.lock.soft`` says which process is at work.

    Raises BlockingIOError, which names the folder, where another process holds the lock.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    lock = FileLock(folder.resolve() / LOCK, is_singleton=True)
    try:
        try:
            lock.acquire(timeout=0)
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.ENOLCK):
                raise
            lock = SoftFileLock(folder.resolve() / SOFT_LOCK, is_singleton=True)
            lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(f"another process is training in {folder}") from None
    try:
        yield
    finally:
        lock.release()
