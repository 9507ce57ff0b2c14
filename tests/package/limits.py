"""A full disk, for whoever is in the block: no file may grow past so many bytes."""

import contextlib
import resource


@contextlib.contextmanager
def largest_file(n_bytes):
    most, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, hard))
