"""The parts of pages that run in a reader's browser, put on the pages that have them.

Jupyter Book loads every script and style of ``_static/`` on every page. These live in ``parts/``
instead. A page asks for one with an element of its class, whose inside is what is left without
scripts:

    <div class="book-translator" data-size="small"><p>On the book's site …</p></div>

They are copied into one folder, whose name has the hash of all that is in it: modules load others
by their names, and a browser that has kept some must not mix them with newer ones.
"""

import hashlib
import json
import shutil
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import NamedTuple

from docutils import nodes
from sphinx.application import Sphinx

from transformer_book.drawings.colours import style_sheet
from website.extensions.chinese import say_in_scripts
from website.extensions.film_files import write_film_files
from website.extensions.living_files import write_living_files
from website.extensions.translator_files import write_translator_files

SITE = Path(__file__).resolve().parents[1] / "parts"
ELEMENTS = "elements.js"  # the explorer's, which is in the package so that it runs on Colab, too
SHARED = ("numbers.js", "beams_kept.js", "drawing.js")  # what parts calculate, and draw with
STYLE = "parts.css"  # of all parts, with the drawings' colours before it
WHEN_NEAR = "when_near.js"  # loads a part once the reader comes near it
FROM_A_FILE = "opened_as_file.js"  # says why modules do not run in a page opened as a file
FOLDER = "parts-"  # and the hash


class Part(NamedTuple):
    """What an element of one class needs: a module, and a style with the name of its folder.

    ``write`` adds to the copy what is made from the package.
    """

    folder: str
    script: str
    write: Callable[[Path], None] | None = None

    @property
    def style(self) -> str:
        return f"{self.folder}.css"


PARTS = {
    "book-translator": Part("translator", "view.js", write_translator_files),
    "book-film": Part("film", "film.js", write_film_files),  # reads the translator's modules, too
    "book-living": Part("living", "figures.js", write_living_files),
    "book-ledger": Part("ledger", "filter.js"),
}


def copy_parts(app: Sphinx) -> None:
    """Copies each part that there is, before the pages are written."""
    static = Path(app.outdir) / "_static"
    for old in static.glob(f"{FOLDER}*"):
        shutil.rmtree(old)
    new = static / FOLDER
    new.mkdir(parents=True)
    for script in (WHEN_NEAR, FROM_A_FILE):
        shutil.copy(SITE / script, new / script)
    for part in PARTS.values():
        copy_part(part, new)
    for root in ("parts/", "explorer/"):
        say_in_scripts(new, root)
    new.rename(static / f"{FOLDER}{hash_of(new)}")


def copy_part(part: Part, place: Path) -> None:
    """Copies a part into ``place``, and the modules that parts share."""
    shutil.copytree(SITE / part.folder, place / part.folder, dirs_exist_ok=True)
    palette = style_sheet(".part", 'html[data-theme="dark"] .part')
    shared = (SITE / STYLE).read_text(encoding="utf-8")
    (place / STYLE).write_text(palette + shared, encoding="utf-8")
    for name in SHARED:
        shutil.copy(SITE / name, place / name)
    elements = files("transformer_book.explorer") / ELEMENTS
    (place / ELEMENTS).write_text(elements.read_text(encoding="utf-8"), encoding="utf-8")
    if part.write:
        part.write(place / part.folder)


def hash_of(folder: Path) -> str:
    """Changes with the name and the content of each file in ``folder``."""
    made = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        content = path.read_bytes()
        made.update(f"{path.relative_to(folder).as_posix()} {len(content)}\n".encode() + content)
    return made.hexdigest()[:8]


def parts_of(app: Sphinx) -> Path:
    """The folder that ``copy_parts`` has made."""
    (folder,) = (Path(app.outdir) / "_static").glob(f"{FOLDER}*")
    return folder


def load_parts(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Puts the loader and the style of each part on this page, if the page has the part."""
    body = context.get("body", "")
    found = {name: part for name, part in PARTS.items() if f'class="{name}"' in body}
    place = parts_of(app)
    for name, part in found.items():
        told = f".{name}", f"{part.folder}/{part.script}"
        loader = json.dumps("./" + context["pathto"](f"_static/{place.name}/{WHEN_NEAR}", 1))
        context["body"] += (
            f'\n<script type="module">import {{ whenNear }} from {loader};\n'
            f"whenNear({', '.join(map(json.dumps, told))});</script>"
        )
        for style in (STYLE, f"{part.folder}/{part.style}"):
            app.add_css_file(f"{place.name}/{style}")
    if found:
        app.add_js_file(f"{place.name}/{FROM_A_FILE}", loading_method="defer")


def setup(app: Sphinx) -> None:
    app.connect("builder-inited", copy_parts)
    app.connect("html-page-context", load_parts)
