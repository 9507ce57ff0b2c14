"""Files that are never half written: made beside their place, put on the disk, then renamed."""

import contextlib
import os
from pathlib import Path


def replace_file(path: str | Path, data: bytes | str) -> None:
    """Writes ``data``, a str as UTF-8: whoever reads ``path`` meets the old file or the new one.

    Raises OSError, which names ``path``; the old file then stays, and nothing is left beside it.
    """
    path = Path(path)
    data = data.encode() if isinstance(data, str) else data
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        temporary.write_bytes(data)
        flush(temporary)
        os.replace(temporary, path)
    except BaseException as error:
        with contextlib.suppress(OSError):
            temporary.unlink()
        if isinstance(error, OSError):  # of the temporary file, or of none
            raise OSError(error.errno, error.strerror or str(error), str(path)) from error
        raise
    flush(path.parent)


def flush(path: Path) -> None:
    """Has the disk hold what the kernel does, so that a power cut loses nothing either."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
