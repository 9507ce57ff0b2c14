"""Code that runs without the check of its annotations, which is most of the time of small models.

The check does not depend on numbers: of many runs of one kind, one under it is enough.
"""

from collections.abc import Iterator
from contextlib import contextmanager

import jaxtyping


@contextmanager
def unchecked(when: bool = True) -> Iterator[None]:
    before = jaxtyping.config.jaxtyping_disable
    jaxtyping.config.update("jaxtyping_disable", before or when)
    try:
        yield
    finally:
        jaxtyping.config.update("jaxtyping_disable", before)
