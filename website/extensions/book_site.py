"""What the built site adds to chapters that are written in Markdown every notebook viewer knows.

A chapter is read on the site, on GitHub and in Colab, and only the site understands Sphinx's own
markup. So the chapters carry their numbers in plain text, and this extension turns them into
anchors, which ordinary Markdown links reach:

    written in a chapter                      what the site makes of it
    ## 3.2 Learning what to match             [section 3.2](#sec-3.2)
    $$ … \\tag{3.1} $$                         a numbered equation, [(3.1)](#eq-3.1)
    **Figure 3.1.** What to look at …         a caption, [Figure 3.1](#fig-3.1)
    **Exercise 3.1.** …                       [exercise 3.1](#ex-3.1)
    [Vaswani et al. (2017)](#vaswani2017)     a link to that entry of references.bib
    chapter 6                                 a link, on other pages than that chapter's own
    ✓ shuffling the words …                   [shown](#claim-shuffling-the-words-…)

``ticks.py`` makes lines of their own of the ✓ lines.
"""

import re
from collections.abc import Iterator

from docutils import nodes
from sphinx.addnodes import desc_signature, index, pending_xref
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util.nodes import make_refnode

from website.words import alphabetical, said, speaks_chinese

BIBLIOGRAPHY = "appendix/bibliography"
TAG = re.compile(r"\s*\\tag\{([\w.]+)\}")
CAPTION = re.compile(r"(Figure|Exercise|图|练习) (\d+\.\d+)\.?")
SECTION = re.compile(r"(\d+\.\d+) ")
CHAPTER = re.compile(r"\b[Cc]hapter (\d+)\b|第 (\d+) 章")
NOT_RUNNING_TEXT = (
    *(nodes.reference, nodes.title, nodes.literal, nodes.literal_block, nodes.raw, nodes.math),
    *(nodes.math_block, desc_signature, pending_xref),
)
KIND = {"Figure": "fig", "Exercise": "ex", "图": "fig", "练习": "ex"}
CLASS = {"fig": "book-figure", "ex": "book-exercise"}
CHINESE = re.compile(r"[\u4e00-\u9fff]")


def is_chinese(term: nodes.term) -> bool:
    return bool(CHINESE.search(term.astext()))


def initial(name: str) -> str:
    """The index's heading for a Chinese term."""
    return alphabetical(name)[0].upper() if speaks_chinese() else "中文"


def anchor(app: Sphinx, node: nodes.Element, name: str) -> None:
    """Let ``[text](#name)`` reach ``node`` from any page; a name given twice is an error."""
    labels = app.env.domains["std"].anonlabels
    if name in labels:
        raise ValueError(f"{name} stands twice: in {labels[name][0]} and in {app.env.docname}")
    node["ids"].insert(0, name)
    labels[name] = (app.env.docname, name)


def number_what_is_numbered(app: Sphinx, doctree: nodes.document) -> None:
    """Give ids to the equations, captions, exercises and sections that carry a number.

    A Chinese term of the glossary is called Chinese, now that all quotation marks are set.
    """
    for block in doctree.findall(nodes.math_block):
        tag = TAG.search(block.astext())
        if tag:
            block.children = [nodes.Text(TAG.sub("", block.astext()).strip())]
            block["number"] = tag[1]
            block["nowrap"] = False
            anchor(app, block, f"eq-{tag[1]}")
    for paragraph in doctree.findall(nodes.paragraph):
        first = next((child for child in paragraph.children if child.astext()), None)
        caption = isinstance(first, nodes.strong) and CAPTION.fullmatch(first.astext())
        if caption:
            paragraph["classes"].append(CLASS[KIND[caption[1]]])
            anchor(app, paragraph, f"{KIND[caption[1]]}-{caption[2]}")
        if isinstance(first, nodes.strong) and first.astext() == said("The question."):
            paragraph["classes"].append("book-question")
    for term in doctree.findall(nodes.term):
        if is_chinese(term):
            term["classes"].append("language-zh-Hans")  # docutils writes lang="zh-Hans"
    for section in doctree.findall(nodes.section):
        title = SECTION.match(section[0].astext())
        if title:
            anchor(app, section, f"sec-{title[1]}")


class TermNames(SphinxTransform):
    """A Chinese term's address is the term. Sphinx's keeps only what is ASCII, or counts.

    In the index, all Chinese terms stand under one heading; each character would have its own. The
    Chinese edition has them by their pinyin.
    """

    default_priority = 700  # before the domains take note

    def apply(self, **kwargs) -> None:
        objects = self.env.domains["std"].objects
        for term in self.document.findall(nodes.term):
            number = term["ids"][0] if term["ids"] else ""
            text = term.astext()
            if text.isascii() and not re.fullmatch(r"term-\d+", number):
                continue
            term["ids"] = [f"term-{text.replace(' ', '-')}"]
            objects["term", text] = (self.env.docname, term["ids"][0])
            for entries in term.findall(index):
                entries["entries"] = [
                    (
                        kind,
                        name,
                        term["ids"][0],
                        main,
                        initial(name) if CHINESE.search(name) else heading,
                    )
                    for kind, name, _, main, heading in entries["entries"]
                ]


class Citations(SphinxPostTransform):
    """``[Vaswani et al. (2017)](#vaswani2017)``: the words as written, linked to the entry."""

    default_priority = 5  # before MyST looks the target up

    def run(self, **kwargs) -> None:
        entries = self.env.domains["cite"].data["bibdata"].data.entries
        for node in list(self.document.findall(pending_xref)):
            key = node.get("reftarget")
            if node.get("reftype") == "myst" and key in entries:
                words = nodes.inline("", "", *node.children)
                link = make_refnode(
                    self.app.builder, self.env.docname, BIBLIOGRAPHY, f"cite-{key}", words
                )
                node.replace_self(link)


class OtherNames(SphinxPostTransform):
    """A link to a term of the glossary has the term's name in the other language as its title."""

    default_priority = 20  # after links are resolved

    def run(self, **kwargs) -> None:
        links = [
            link
            for link in self.document.findall(nodes.reference)
            if "#term-" in link.get("refuri", "")
        ]
        terms = self.env.domains["std"].objects.items()
        names: dict[str, str] = {}
        for page in {page for (kind, _), (page, _) in terms if links and kind == "term"}:
            for entry in self.env.get_doctree(page).findall(nodes.definition_list_item):
                named = list(entry.findall(nodes.term))
                other = [t.astext() for t in named if is_chinese(t) != speaks_chinese()]
                names |= {name: other[0] for term in named for name in term["ids"] if other}
        for link in links:
            link["reftitle"] = names.get(link["refuri"].partition("#")[2], "")


class ChapterLinks(SphinxPostTransform):
    """Makes links of "chapter 6" in running text, once that chapter is there."""

    default_priority = 900  # after all that makes links

    def run(self, **kwargs) -> None:
        pages = {
            int(number[1]): name
            for name in self.env.found_docs
            if (number := re.fullmatch(r"chapters/(\d+)_\w+", name))
        }
        for parent in list(self._running_text(self.document)):
            for text in [child for child in parent if isinstance(child, nodes.Text)]:
                parent.replace(text, list(self._linked(text.astext(), pages)))

    def _running_text(self, node: nodes.Element) -> Iterator[nodes.Element]:
        if not isinstance(node, NOT_RUNNING_TEXT):
            yield node
            for child in node.children:
                if isinstance(child, nodes.Element):
                    yield from self._running_text(child)

    def _linked(self, words: str, pages: dict[int, str]) -> Iterator[nodes.Node]:
        end = 0
        for found in CHAPTER.finditer(words):
            page = pages.get(int(found[1] or found[2]))
            if page in (None, self.env.docname):
                continue
            yield nodes.Text(words[end : found.start()])
            label = nodes.inline("", found[0].replace(" ", "\N{NO-BREAK SPACE}"))
            yield make_refnode(self.app.builder, self.env.docname, page, "", label)
            end = found.end()
        yield nodes.Text(words[end:])


def says_nothing(app: Sphinx, what: str, name: str, member: object, skip: bool, options) -> bool:
    """Whether autodoc leaves a member out: a field of a named tuple has no words of its own."""
    return skip or (getattr(member, "__doc__", None) or "").startswith("Alias for field number")


def setup(app: Sphinx) -> None:
    app.connect("doctree-read", number_what_is_numbered)
    if "sphinx.ext.autodoc" in app.extensions:
        app.connect("autodoc-skip-member", says_nothing)
    app.add_transform(TermNames)
    app.add_post_transform(Citations)
    app.add_post_transform(OtherNames)
    app.add_post_transform(ChapterLinks)
