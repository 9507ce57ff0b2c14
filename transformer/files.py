"""Files that are never half written, and folders that one process at a time writes to."""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, Timeout

LOCK = ".lock"  # the file in a folder that is held while one writes there


@contextlib.contextmanager
def replacing(path: str | Path) -> Iterator[Path]:
    """A new, empty file beside ``path``; at the end of the block it takes its place.

    Whoever reads ``path`` meets the old file or the new one. Raises OSError, which names ``path``;
    the old file then stays, and nothing is left beside it.
    """
    path = Path(path)
    # nobody can have laid a link under a name that is drawn now, and this would not follow it
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        temporary.touch(exist_ok=False)
        yield temporary
        flush(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError) and error.errno is not None:  # of the temporary file
            raise OSError(error.errno, error.strerror, str(path)) from error
        raise
    flush(path.parent)


def replace_file(path: str | Path, data: bytes | str) -> None:
    """Writes ``data``, a str as UTF-8, as ``replacing`` does."""
    with replacing(path) as temporary:
        temporary.write_bytes(data.encode() if isinstance(data, str) else data)


def flush(path: Path) -> None:
    """Has the disk hold what the kernel does, so that a power cut loses nothing either."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def only_writer(folder: str | Path) -> Iterator[None]:
    """Holds the lock of a folder that is there; the kernel lets go of it when the process ends.

    An empty file, ``.lock``, stays in the folder: to remove it could give two processes a lock
    each. Raises BlockingIOError, which names the folder, where another process holds the lock.
    """
    lock = FileLock(Path(folder) / LOCK)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(f"another process is training in {folder}") from None
    try:
        yield
    finally:
        lock.release()
