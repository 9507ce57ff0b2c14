"""The package's source, shown in a chapter instead of pasted into it."""

import inspect
from collections.abc import Callable

from IPython.display import Markdown, display


def show(*things: Callable | type) -> None:
    """Display the source of functions or classes of this package, as it is on disk now.

    Raises ValueError for anything else: what a chapter shows should be what it runs.
    """
    for thing in things:
        module = getattr(thing, "__module__", None) or ""
        if not callable(thing) or module.split(".")[0] != "transformer":
            raise ValueError(f"thing must be a function or class of the package, got {thing!r}")
        source = inspect.getsource(inspect.unwrap(thing))
        display(Markdown(f"```python\n# {module.replace('.', '/')}.py\n{source}```"))
