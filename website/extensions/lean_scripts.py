"""Bootstrap's script without the parts that no page of the site asks for.

The theme brings all of them in one file. An engine that reads it knows where each class begins and
ends; of one that is not needed an empty one is left, which nothing calls.
"""

import json
import re
from collections.abc import Iterable

from py_mini_racer import JSEvalException, MiniRacer
from sphinx.errors import ExtensionError

# What an element asks for by data-bs-toggle, and what it says besides.
TOGGLES = {"tooltip": "Tooltip", "dropdown": "Dropdown"}
BESIDES = ("placement",)
DATA = re.compile(r'\bdata-bs-([\w-]+)="([^"]*)"')
CALLED = re.compile(r"\bbootstrap\.([A-Z]\w+)")
# A window without a page: the classes are made, and nothing else happens.
WINDOW = """
const window = globalThis;
const document = {
  readyState: "loading", documentElement: {}, addEventListener() {}, querySelectorAll: () => [],
};
window.addEventListener = () => {};
"""
CLASSES = "JSON.stringify(Object.entries(bootstrap).map(([n, it]) => [n, [it.name, String(it)]]))"


def asked_for(pages: Iterable[str], scripts: Iterable[str]) -> set[str]:
    """The classes of Bootstrap that pages and other scripts ask for. Raises ExtensionError."""
    found: set[str] = set()
    for name, value in {pair for page in pages for pair in DATA.findall(page)}:
        if name == "toggle" and value in TOGGLES:
            found.add(TOGGLES[value])
        elif name not in BESIDES:
            raise ExtensionError(f'TOGGLES does not say what data-bs-{name}="{value}" needs')
    return found.union(*(CALLED.findall(script) for script in scripts))


def lean_bootstrap(script: str, needed: set[str]) -> str:
    """The script with nothing in the classes that are not ``needed``. Raises ExtensionError."""
    racer = MiniRacer()
    try:
        racer.eval(WINDOW)
        racer.eval(script)
        texts = dict(json.loads(str(racer.eval(CLASSES))))
    except JSEvalException as error:
        raise ExtensionError(f"Bootstrap's script has changed: {error}") from error
    if lost := needed - texts.keys():
        raise ExtensionError(f"Bootstrap has no {', '.join(sorted(lost))}")
    kept, ahead = set(), list(needed)
    while ahead:  # and what these name, as the class that one extends
        kept.add(name := ahead.pop())
        words = set(re.findall(r"[\w$]+", texts[name][1]))
        ahead += {other for other, (inside, _) in texts.items() if inside in words} - kept
    for name in texts.keys() - kept:
        inside, text = texts[name]
        if script.count(text) != 1:
            raise ExtensionError(f"Bootstrap's script has {name} {script.count(text)} times")
        script = script.replace(text, f"class {inside}{{}}")
    return script
