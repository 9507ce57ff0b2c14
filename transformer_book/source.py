"""The packages' source, shown in a chapter instead of pasted into it."""

import inspect
import sys
import textwrap
from collections.abc import Callable

from IPython.display import Markdown, display

OURS = ("transformer", "transformer_book")


def show(*things: Callable | type) -> None:
    """Display the source of functions or classes of the two packages.

    Raises ValueError for anything else: what a chapter shows should be what it runs.
    """
    for thing in things:
        if not _is_the_packages(thing):
            raise ValueError(f"thing must be a function or class of the package, got {thing!r}")
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
        path = thing.__module__.replace(".", "/")
        display(Markdown(f"```python\n# {path}.py\n{source}```"))


def _is_the_packages(thing: object) -> bool:
    home = sys.modules.get(getattr(thing, "__module__", None) or "")
    if home is None or home.__name__.split(".")[0] not in OURS:
        return False
    named: object = home  # and from there, by a name at a time
    for name in getattr(thing, "__qualname__", "").split("."):
        named = getattr(named, name, None)
    return named is thing
