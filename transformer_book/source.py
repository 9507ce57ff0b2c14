"""The package's source, shown in a chapter instead of pasted into it."""

import inspect
import sys
import textwrap
from collections.abc import Callable

from IPython.display import Markdown, display


def show(*things: Callable | type) -> None:
    """Display the source of functions or classes of this package.

    Raises ValueError for anything else: what a chapter shows should be what it runs.
    """
    for thing in things:
        if not _is_the_packages(thing):
            raise ValueError(f"thing must be a function or class of the package, got {thing!r}")
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
        path = thing.__module__.replace(".", "/")
        display(Markdown(f"```python\n# {path}.py\n{source}```"))


def _is_the_packages(thing: object) -> bool:
    found = sys.modules.get(getattr(thing, "__module__", None) or "")
    if found is None or found.__name__.split(".")[0] != "transformer":
        return False
    for name in getattr(thing, "__qualname__", "").split("."):
        found = getattr(found, name, None)
    return found is thing
