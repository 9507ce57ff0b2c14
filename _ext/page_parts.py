"""The parts of pages that run in a reader's browser, put on the pages that have them.

Jupyter Book loads every script and style of ``_static/`` on every page. These live in ``_site/``
instead. A page asks for one with an element of its class, whose inside is what is left without
scripts:

    <div class="book-translator" data-size="small"><p>On the book's site …</p></div>
"""

import json
import re
import shutil
from collections.abc import Callable, Iterable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

from _ext.translator_files import write_translator_files

SITE = Path(__file__).resolve().parents[1] / "_site"
SHARED = "elements.js"  # the explorer's, which is in the package so that it runs on Colab, too
WHEN_NEAR = "when_near.js"  # loads a part once the reader comes near it
FROM_A_FILE = "opened_as_file.js"  # says why modules do not run in a page opened as a file
IMPORTED = re.compile(r'^import [^;]*?"(\.\.?/[^"]+)";', re.MULTILINE)


class Part(NamedTuple):
    """What an element of one class needs: a folder of ``_site/``, and in it a module and a style.

    ``write`` adds to the copy what is made from the package. ``more`` finds on a page the names of
    the modules that the first one loads only where they are asked for.
    """

    folder: str
    script: str
    style: str
    write: Callable[[Path], None] | None = None
    more: str | None = None


PARTS = {
    "book-translator": Part("translator", "view.js", "translator.css", write_translator_files),
    "book-living": Part("living", "figures.js", "living.css", more=r'data-figure="(\w+)"'),
}


def copy_parts(app: Sphinx) -> None:
    """Copies each part that there is, before the pages are written."""
    if app.builder.name not in ("html", "dirhtml"):
        return  # paper and e-books keep what stands inside of the elements
    static = Path(app.outdir) / "_static"
    static.mkdir(parents=True, exist_ok=True)
    for script in (WHEN_NEAR, FROM_A_FILE):
        shutil.copy(SITE / script, static / script)
    for part in PARTS.values():
        copy_part(part, static)


def copy_part(part: Part, static: Path) -> None:
    """Copies a part into ``static``, and the module that all parts share."""
    shutil.copytree(SITE / part.folder, static / part.folder, dirs_exist_ok=True)
    shared = files("transformer.book.explorer") / SHARED
    (static / SHARED).write_text(shared.read_text(encoding="utf-8"), encoding="utf-8")
    if part.write:
        part.write(static / part.folder)


def modules_behind(scripts: Iterable[Path]) -> list[Path]:
    """What ``scripts`` import, directly or through others; without ``scripts``, sorted."""
    first, ahead, found = set(scripts), list(scripts), set()
    while ahead:
        script = ahead.pop()
        for name in IMPORTED.findall(script.read_text(encoding="utf-8")):
            path = (script.parent / name).resolve()
            if path not in found:
                found.add(path)
                ahead.append(path)
    return sorted(found - first)


def preloads(part: Part, page: str, static: Path) -> list[str]:
    """The modules that a page needs for a part: its browser asks for all of them at once."""
    folder = static.resolve() / part.folder
    named = [folder / f"{name}.js" for name in re.findall(part.more, page)] if part.more else []
    behind = [*named, *modules_behind([folder / part.script, *named])]
    return [path.relative_to(static.resolve()).as_posix() for path in dict.fromkeys(behind)]


def load_parts(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Puts the loader and the style of each part on this page, if the page has the part."""
    if app.builder.name not in ("html", "dirhtml"):
        return
    body = context.get("body", "")
    found = {name: part for name, part in PARTS.items() if f'class="{name}"' in body}
    static = Path(app.outdir) / "_static"
    for name, part in found.items():
        told = f".{name}", f"{part.folder}/{part.script}", preloads(part, body, static)
        loader = json.dumps("./" + context["pathto"](f"_static/{WHEN_NEAR}", 1))
        context["body"] += (
            f'\n<script type="module">import {{ whenNear }} from {loader};\n'
            f"whenNear({', '.join(map(json.dumps, told))});</script>"
        )
        app.add_css_file(f"{part.folder}/{part.style}")
    if found:
        app.add_js_file(FROM_A_FILE, loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("builder-inited", copy_parts)
    app.connect("html-page-context", load_parts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
