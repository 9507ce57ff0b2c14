"""The Chinese edition (``language: zh_CN``): other words in the same places.

A page's source is translated as Sphinx reads it, so notebooks, code, outputs and figures stay
single. Sections keep their English addresses, which links, searches and the switch of languages
use. What the build itself says is in ``translations/zh/site.yml``.
"""

import json
import re
from html import escape, unescape
from pathlib import Path

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.config import Config
from sphinx.transforms import SphinxTransform

from website.translation import (
    COMMENT,
    FOLDER,
    HAN,
    IN_SVG,
    IN_TEXT,
    SAYS_STALE,
    SVG,
    Piece,
    headings,
    in_cell,
    joined,
    pieces_of,
    read,
    slug,
    without_signs,
)
from website.words import alphabetical, claims, said, speak, speaks_chinese

# A link that is called as the claim is to which it leads: on the ledger, and in the errata's lists.
CLAIM = re.compile(r"\[([^]\[]+)\](?=\([^)\s]*#claim-)")
TERM = re.compile(r"(?![#`*:])\S.*\n\S.*\n  ")  # an entry of the glossary
# A comment's lines: all, or up to the last sign of punctuation, or to any Chinese sign.
LINES = re.compile(rf".{{1,42}}$|.{{1,41}}[，。；：、）]|.{{1,42}}(?=[{HAN} ])|.+")


def translate(app: Sphinx, docname: str, content: list[str]) -> None:
    if speaks_chinese():
        content[0] = translated(content[0], read(FOLDER / f"{docname}.md"))


def text_of(app: Sphinx, docname: str) -> str:
    """A page's source as Sphinx has read it, for what reads it a second time."""
    content = [Path(app.env.doc2path(docname)).read_text(encoding="utf-8")]
    translate(app, docname, content)
    return content[0]


def translated(text: str, pieces: list[Piece]) -> str:
    """A page's source with Chinese words in it."""
    chinese = {piece.name: piece for piece in pieces if piece.chinese}
    if not text.lstrip().startswith("{"):
        parts = [shown(part, chinese.get(part.name)) for part in pieces_of(text)]
        terms = iter(sorted(filter(TERM.match, parts), key=alphabetical))
        parts = [next(terms) if TERM.match(part) else part for part in parts]
        return CLAIM.sub(lambda link: f"[{claim_said(link[1])}]", "\n\n".join(parts)) + "\n"
    notebook = json.loads(text)
    for cell in notebook["cells"]:
        for piece in list(in_cell(cell)):
            if found := chinese.get(piece.name):
                put(cell, piece, found)
    return json.dumps(notebook, ensure_ascii=False)


def shown(piece: Piece, found: Piece | None) -> str:
    """The text of a piece; of one whose English has changed since, with a line that says so."""
    if found is None:
        return "\n".join(map(said, piece.english.split("\n")))  # as the ledger, which is made
    stale = found.stale or found.english != piece.english
    return found.chinese + f"\n\n{'  ' * bool(TERM.match(found.chinese))}{SAYS_STALE}" * stale


def claim_said(text: str) -> str:
    """A claim's text in a link, in which Markdown's signs have backslashes."""
    chinese = claims().get(text.replace("\\", ""))
    return re.sub(r"([\\`*_{}\[\]<>|$])", r"\\\1", chinese) if chinese else text


def put(cell: dict, piece: Piece, found: Piece) -> None:
    """Puts the Chinese of one piece into a cell."""
    about = cell["metadata"].get("mystnb", {})
    if piece.kind == "cell":
        cell["source"] = shown(piece, found)
    elif piece.kind == "fold":
        about["code_prompt_show"] = about["code_prompt_hide"] = found.chinese
    elif piece.kind == "alt":
        about["image"]["alt"] = found.chinese
    elif piece.kind == "comment":
        cell["source"] = with_comment(joined(cell["source"]), piece.english, found.chinese)
    elif piece.kind == "words":
        for output in cell["outputs"]:
            if SVG in output.get("data", {}):
                output["data"][SVG] = with_words(joined(output["data"][SVG]), found.lines)


def with_words(svg: str, lines: dict[str, str]) -> str:
    def node(match: re.Match) -> str:
        old = match[1].strip()  # as it is written, with &lt; and &#x27;
        new = lines.get(unescape(old))
        return match[0].replace(old, escape(new, quote=False)) if new else match[0]

    return IN_SVG.sub(lambda text: IN_TEXT.sub(node, text[0]), svg)


def with_comment(code: str, english: str, chinese: str) -> str:
    """Code with a comment in Chinese: at the end of a line, or on lines of their own, as it was."""

    def run(match: re.Match) -> str:
        if without_signs(match[0]) != english:
            return match[0]
        if match[1] is None:
            return f"# {chinese}"
        return "\n".join(f"{match[1]}# {part[0].strip()}" for part in LINES.finditer(chinese))

    return COMMENT.sub(run, code)


class Addresses(SphinxTransform):
    """Each section keeps the address of the English one, for Sphinx and for MyST."""

    default_priority = 870  # before both take note

    def apply(self, **kwargs) -> None:
        if not speaks_chinese():
            return
        source = Path(self.env.doc2path(self.env.docname)).read_text(encoding="utf-8")
        told = (piece for piece in pieces_of(source) if piece.kind in ("cell", "part"))
        english = [title for piece in told for title in headings(piece.english)]
        slugs = getattr(self.document, "myst_slugs", {})
        for section, title in zip(self.document.findall(nodes.section), english, strict=False):
            name = slug(title)
            if name and name not in self.document.ids:
                section["ids"].insert(0, name)
                self.document.ids[name] = section
                myst = re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")
                slugs[myst] = (section.line or 0, name, section[0].astext())


def is_english(docname: str, title: str) -> bool:
    """Whether the page has no translation, and none is made of its lines, as of the ledger's."""
    translated = (FOLDER / f"{docname}.md").exists() or re.search(f"[{HAN}]", title)
    return speaks_chinese() and not translated


def say_untranslated(app: Sphinx, doctree: nodes.document) -> None:
    title = next(doctree.findall(nodes.title), None)
    if title and is_english(app.env.docname, title.astext()):
        note = nodes.paragraph("", said("This page is in English."), classes=["book-untranslated"])
        title.parent.insert(1, note)


def speak_on_pages(
    app: Sphinx, page: str, template: str, context: dict, doctree: nodes.document | None
) -> None:
    """Templates say their words by ``said``; a page without a translation is marked as English."""
    context["said"] = said
    if doctree is not None and is_english(page, context["title"]):
        context["body"] = f'<div lang="en">{context["body"]}</div>'
    for _, entries in context.get("genindexentries", []):
        if speaks_chinese():
            entries.sort(key=lambda entry: alphabetical(entry[0]))


def say_in_scripts(folder: Path, root: str) -> None:
    """Puts Chinese into the copies, in ``folder``, of the scripts in ``website/``\\ ``root``."""
    scripts = [piece for path in sorted(FOLDER.glob("scripts/*.md")) for piece in read(path)]
    for piece in scripts if speaks_chinese() else []:
        path = folder / piece.key.removeprefix(root)
        if piece.key.startswith(root) and not piece.stale and path.is_file():
            text = path.read_text(encoding="utf-8")
            path.write_text(text.replace(piece.english, piece.chinese), encoding="utf-8")


def finish(app: Sphinx, exception: Exception | None) -> None:
    """The site's own scripts, and the sources that a reader downloads, which are what was read."""
    if exception or not speaks_chinese():
        return
    out = Path(app.outdir)
    say_in_scripts(out / "_static", "static/")
    for pictures in ("static/", "../appendix/"):  # of pages that are no notebooks
        say_in_scripts(out / "_images", pictures)
    for docname in app.env.found_docs:
        path = out / "_sources" / Path(app.env.doc2path(docname)).relative_to(app.srcdir)
        if path.exists():
            path.write_text(text_of(app, docname), encoding="utf-8")


def listen(app: Sphinx, config: Config) -> None:
    speak(config.language)


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", listen)
    app.connect("source-read", translate)
    app.connect("doctree-read", say_untranslated, priority=900)
    app.connect("html-page-context", speak_on_pages, priority=300)
    app.connect("build-finished", finish, priority=700)
    app.add_transform(Addresses)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
