"""Files that are never half written, and folders that one process at a time writes to.

Whatever this module puts beside a file has a name that begins with ``.transformer-``: new files
before they have their names, and locks.
"""

import contextlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from filelock import FileLock, SoftFileLock, Timeout

OURS = ".transformer-"
LOCK, SOFT_LOCK = f"{OURS}lock", f"{OURS}soft-lock"  # held while a process writes in their folder


def replace_file(path: str | Path, data: bytes | str) -> None:
    """Writes ``data``, a str as UTF-8, to a new file beside ``path``, which then takes its place.

    Whoever reads ``path`` meets the old file or the new one. Raises OSError, which names ``path``;
    the old file then stays, and nothing is left beside it. What a killed process leaves is taken
    away by :func:`remove_leftovers`.
    """
    path = Path(path)
    # nobody can have laid a link under a name that is drawn now, and this would not follow it
    temporary = path.with_name(f"{OURS}{path.name}-{secrets.token_hex(4)}")
    try:
        with open(temporary, "xb") as file:
            file.write(data.encode() if isinstance(data, str) else data)
            file.flush()
            os.fsync(file.fileno())  # else a power cut could leave it empty under its name
        os.replace(temporary, path)
    except OSError as error:  # which names the temporary file, if any
        raise OSError(error.errno, error.strerror, str(path)) from error
    finally:
        with contextlib.suppress(OSError):  # it is there only if something failed
            temporary.unlink()


def remove_leftovers(folder: str | Path, names: str = "*") -> None:
    """Removes what ``replace_file`` left, when it was killed, of files called so in ``folder``."""
    for path in Path(folder).glob(f"{OURS}{names}-????????"):
        path.unlink(missing_ok=True)


def holds_only(folder: str | Path, *names: str) -> bool:
    """Whether nothing is in a folder but files called so, and what this module put beside them.

    It is so where nothing is called ``folder``, and not where a file is.
    """
    folder = Path(folder)
    if folder.is_dir():
        return all(p.name in names or p.name.startswith(OURS) for p in folder.iterdir())
    return not os.path.lexists(folder)  # nor a link to nowhere


@contextlib.contextmanager
def only_writer(folder: str | Path) -> Iterator[None]:
    """Holds the lock of a folder, which is made where there is none; again where it is held here.

    The kernel lets go of it when the process ends. Its empty file stays in the folder: to remove it
    could give two processes a lock each. On a disk without such locks, as some of a network are,
    a file is the lock, which says which process is at work.

    Raises BlockingIOError, which names the folder, where another process holds the lock.
    """
    place = Path(folder).resolve()
    place.mkdir(parents=True, exist_ok=True)
    lock: FileLock | SoftFileLock = FileLock(place / LOCK, is_singleton=True)
    try:
        try:
            lock.acquire(timeout=0)
        except (OSError, NotImplementedError) as error:
            if isinstance(error, Timeout):
                raise
            lock = SoftFileLock(place / SOFT_LOCK, is_singleton=True)
            lock.acquire(timeout=0)
    except Timeout:
        raise BlockingIOError(f"another process is training in {folder}") from None
    try:
        yield
    finally:
        lock.release()
