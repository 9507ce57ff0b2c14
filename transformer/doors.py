"""Doors: an ``__init__`` that hands on names from its rooms, and opens a room at first use.

Whoever takes one name through a door loads the room behind it and no other. So a chapter depends on
the modules that it uses, and an edit of another leaves what the chapter printed as it is.
"""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def at_first_use(
    package: str, rooms: Mapping[str, str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """The ``__getattr__``, ``__dir__`` and ``__all__`` of a package that hands on these names.

    ``rooms`` maps a module within ``package`` to the names that are taken from it, with spaces in
    between. The same names stand under ``if TYPE_CHECKING:`` for those who read without running.
    See PEP 562.
    """
    homes = {name: room for room, names in rooms.items() for name in names.split()}

    def __getattr__(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *homes})

    return __getattr__, __dir__, sorted(homes)
