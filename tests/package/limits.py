"""What a machine may lack, for whoever is in the block."""

import contextlib
import errno
import fcntl
import io
import os
import resource
import signal
import sys
from pathlib import Path

from transformer.files import LOCK


def kill_before(number, folder):
    """Kills this process before the ``number``-th thing that it does to a file of ``folder``."""
    left = number

    def count(event, arguments):
        nonlocal left
        if any(isinstance(x, str | Path) and str(folder) in str(x) for x in arguments):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(count)


class Full(io.RawIOBase):
    """As /dev/full: nothing can be written to it."""

    def writable(self):
        return True

    def fileno(self):
        return os.open(os.devnull, os.O_WRONLY)

    def write(self, data):
        raise OSError(errno.ENOSPC, "No space left on device")


@contextlib.contextmanager
def held_elsewhere(folder):
    """As if another process were training there."""
    with open(Path(folder) / LOCK, "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield


@contextlib.contextmanager
def largest_file(n_bytes):
    """A full disk: no file may grow past so many bytes."""
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
