"""The packages' source, shown in a chapter instead of pasted into it."""

import inspect
import textwrap
from collections.abc import Callable

from IPython.display import Markdown, display

OURS = ("transformer", "transformer_book")


def show(*things: Callable | type) -> None:
    """Display the source of functions or classes of the two packages.

    Raises ValueError for anything else: what a chapter shows should be what it runs.
    """
    for thing in things:
        module = getattr(thing, "__module__", None) or ""
        if module.split(".")[0] not in OURS:
            raise ValueError(f"thing must be a function or class of the package, got {thing!r}")
        source = textwrap.dedent(inspect.getsource(inspect.unwrap(thing)))
        path = module.replace(".", "/")
        display(Markdown(f"```python\n# {path}.py\n{source}```"))
