"""Pages without what slows them: the theme's page, rewritten as it leaves its template.

The theme loads ten style sheets, a dozen scripts that block, 800 KB of icons and the search index
on every page. Here each page gets one style sheet and one deferred script, which ``lean_files.py``
makes; its pictures get a size, and wait until they are needed. The pages of other builders stay as
they are. What is changed here and stands on no page any more, since the theme has changed, is an
error.
"""

import re
from functools import cache
from pathlib import Path

import imagesize
from sphinx.application import Sphinx
from sphinx.builders import Builder
from sphinx.errors import ExtensionError
from sphinx.jinja2glue import BuiltinTemplateLoader

from website.extensions.lean_files import LEFT_BY_THE_THEME, SCRIPTS, SHEETS, UNUSED, plain

LINK = re.compile(r'[ \t]*<link\b[^>]*\bhref="(?:\.\./)*_static/(?P<file>[^"?]+)[^"]*"[^>]*>\n?')
SCRIPT = re.compile(
    r'[ \t]*<script\b[^>]*\bsrc="(?:\.\./)*(?:_static/)?(?P<file>[^"?]+)[^"]*"[^>]*></script>\n?'
)
# Of the theme's inline scripts none is needed but this one, which chooses light or dark: at once,
# so that a dark page does not begin with a white flash.
INLINE = {
    word: re.compile(rf"[ \t]*<script[^>]*>(?=[^<]*{re.escape(word)})[^<]*</script>\n?")
    for word in (
        "dataset.mode",
        "DOCUMENTATION_OPTIONS.pagename",
        "DOCUMENTATION_OPTIONS.search_as_you_type",
    )
}
SCHEME = """<script>
  (root => {
    const mode = localStorage.getItem("mode") || "auto";
    const night = mode === "auto" && matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.mode = mode;
    root.dataset.theme = night ? "dark" : mode === "auto" ? "light" : mode;
    // A fresh page is laid out section by section when it is idle, or all of it at the first touch;
    // one that the reader comes back to, or opens at a place, is laid out at once.
    const [visit] = performance.getEntriesByType("navigation");
    if (visit?.type !== "navigate" || location.hash || !window.requestIdleCallback) return;
    root.dataset.fresh = "";
    const settle = () => delete root.dataset.fresh;
    for (const touch of ["pointerdown", "keydown", "hashchange"])
      addEventListener(touch, settle, { once: true, capture: true });
    addEventListener("load", () => {
      const left = [...document.querySelectorAll(".bd-article > section > section")];
      const next = () => {
        const section = left.shift();
        if (!section || root.dataset.fresh === undefined) return settle();
        section.style.contentVisibility = "visible";
        requestIdleCallback(next);
      };
      requestIdleCallback(next);
    });
  })(document.documentElement);
</script>"""
CHARSET = '<meta charset="utf-8" />'
VIEWPORT = re.compile(r'<meta name="viewport"[^>]*>\n?')
NOT_OURS = {
    "docsearch": re.compile(r'\s*<meta name="docsearch:[^>]*>'),
    "ethical-ad-placement": re.compile(r'\s*<div id="ethical-ad-placement".*?</div>', re.DOTALL),
}
ONLY_SEARCH = ("searchtools.js", "language_data.js", "searchindex.js")
IMAGE = re.compile(r"<img\b[^>]*>")
SOURCE = re.compile(r'\bsrc="[^"]*_images/([^"]+)"')
STYLED = re.compile(r' style="width: (\d+)px; height: (\d+)px;"')
CODE = re.compile(
    r'(<div class="highlight-ipython3[^>]*><div class="highlight"><pre><span></span>)(.*?)</pre>',
    re.DOTALL,
)
# Half of a chapter's elements: names, brackets and spaces of code, coloured like all text.
UNCOLOURED = re.compile(r'<span class="(?:n|nn|p|w)">([^<]*)</span>')
ROLES = {
    ' role="main"': "",  # a <main> is one
    ' role="doc-biblioentry"': "",  # deprecated
    ' aria-label="Toggle hidden content"': "",  # a fold has a title, which is to be read
    '<div role="list" class="citation-list">': '<div class="citation-list">',
    '<th class="head"><p></p></th>': "<td></td>",  # heads nothing
    '<div id="pst-primary-sidebar"': (
        '<div id="pst-primary-sidebar" role="complementary" aria-label="The book"'
    ),
}
TITLE = re.compile(r"<title>(.+?) &#8212; \1</title>")
TERM = re.compile(r'<dt id(?=="[^"]+">[^<]*[\u4e00-\u9fff])')  # a Chinese name of the glossary
NAMES = {  # what the theme says of its controls, and what they are
    "theme-switch-button": "Colours: light, dark, or as the system has them",
    "sidebar-toggle primary-toggle": "Chapters",
    "sidebar-toggle secondary-toggle": "Contents of this page",
}
NAMED = {control: re.compile(rf"<button[^>]*{re.escape(control)}[^>]*>") for control in NAMES}
# Each of these has to stand on some page, as the theme and Sphinx write it.
NEEDED = {
    **{"VIEWPORT": VIEWPORT, "STYLED": STYLED, "CODE": CODE, "UNCOLOURED": UNCOLOURED},
    **{"TERM": TERM, "TITLE": TITLE},
    **INLINE,
    **NOT_OURS,
    **NAMED,
    **{old: re.compile(re.escape(old)) for old in ROLES},
    **{name: re.compile(rf'/{name.replace(".", r"[.](?:[0-9a-f]+[.])?")}[?"]') for name in UNUSED},
}


class LeanPages(BuiltinTemplateLoader):
    """Renders as Sphinx does, then makes the page lean."""

    def init(self, builder: Builder, *arguments, **options) -> None:
        super().init(builder, *arguments, **options)
        self.builder = builder
        self.written: set[str] = set()
        self.in_vain = dict(NEEDED)  # and not seen so far

    def render(self, template: str, context: dict) -> str:
        page = super().render(template, context)
        if self.builder.name != "html" or "</html>" not in page:
            return page
        self.written.add(context["pagename"])
        self.note(page)
        page = lean_head(page, context["pathto"]("", 1), context["pagename"] == "search")
        names = {name: Path(path) for path, name in self.builder.images.items()}
        return with_names(with_lines(with_sizes(page, names, Path(self.builder.srcdir))))

    def note(self, page: str) -> None:
        """Strikes out what this page, as the theme has written it, has of NEEDED."""
        self.in_vain = {n: p for n, p in self.in_vain.items() if not p.search(page)}


def lean_head(page: str, root: str, searches: bool) -> str:
    """One style sheet, one deferred script, one viewport, and the scheme before the first paint.

    What a part of this page alone needs comes at the page's end, so that the text waits for none.
    """
    late: list[str] = []

    def sheet(link: re.Match) -> str:
        if plain(link["file"]) in (*SHEETS, *SCRIPTS, *UNUSED):  # the theme preloads its scripts
            return ""
        if 'rel="stylesheet"' not in link[0]:
            return link[0]
        late.append(link[0])
        return ""

    def script(tag: re.Match) -> str:
        if tag["file"] in (*SCRIPTS, *UNUSED):
            return ""
        if tag["file"] in ONLY_SEARCH:
            return tag[0].replace("<script", "<script defer") if searches else ""
        late.append(tag[0])
        return ""

    page = SCRIPT.sub(script, LINK.sub(sheet, page))
    for unwanted in (*INLINE.values(), *NOT_OURS.values(), VIEWPORT):
        page = unwanted.sub("", page)
    head = (
        f"{CHARSET}\n    "
        '<meta name="viewport" content="width=device-width, initial-scale=1" />\n    '
        f'{SCHEME}\n    <link rel="stylesheet" href="{root}_static/site.css" />\n'
        f'    <script defer src="{root}_static/site.js"></script>'
    )
    if page.count(CHARSET) != 1:
        raise ExtensionError(f"the theme has changed: a page has no {CHARSET}")
    page = page.replace(CHARSET, head)
    return page.replace("</body>", "".join(late) + "</body>", 1)


@cache
def size_of(path: Path) -> tuple[int, int]:
    """Width and height in pixels; an SVG's are those that it names itself."""
    width, height = imagesize.get(path)
    if width <= 0 or height <= 0:
        raise ValueError(f"{path} does not say how large it is")
    return round(width), round(height)


def with_sizes(page: str, files: dict[str, Path], folder: Path) -> str:
    """Pictures keep their place while they load; those after the first load when they are near."""
    seen = 0

    def sized(image: re.Match) -> str:
        nonlocal seen
        tag, name = image[0], SOURCE.search(image[0])
        if name is None or name[1] not in files:
            return tag if "logo__image" in tag else tag.replace("<img", '<img loading="lazy"', 1)
        styled = STYLED.search(tag)
        width, height = styled.groups() if styled else size_of(folder / files[name[1]])
        seen += 1
        lazy = ' loading="lazy"' if seen > 1 else ' fetchpriority="high"'
        tag = STYLED.sub("", tag)
        return tag.replace("<img", f'<img width="{width}" height="{height}"{lazy}', 1)

    return IMAGE.sub(sized, page)


def with_lines(page: str) -> str:
    """Each line of code in an element, so that a long one wraps and hangs."""

    def lines(code: re.Match) -> str:
        wrapped = (f'<span class="book-line">{line}</span>' for line in code[2].splitlines(True))
        return code[1] + "".join(wrapped) + "</pre>"

    return CODE.sub(lines, UNCOLOURED.sub(r"\1", page))


def with_names(page: str) -> str:
    """Labels that say what a control does, and titles that say a name once."""
    for control, name in NAMES.items():
        page = NAMED[control].sub(lambda tag, name=name: relabelled(tag[0], name), page)
    for old, new in ROLES.items():
        page = page.replace(old, new)
    page = TERM.sub(r'<dt lang="zh-Hans" id', page)
    return TITLE.sub(r"<title>\1</title>", page)


def relabelled(tag: str, name: str) -> str:
    tag = re.sub(r' (?:aria-label|title|data-bs-title)="[^"]*"', "", tag)
    return tag.replace("<button", f'<button aria-label="{name}" title="{name}"', 1)


def nothing_in_vain(app: Sphinx, exception: Exception | None) -> None:
    """Raises ExtensionError where something is changed or left out that is nowhere any more.

    Only a build that has written every page can know; one that goes on from an earlier one, or
    that has written in several processes, leaves some out.
    """
    pages = app.builder.templates if app.builder.name == "html" else None
    if exception is None and pages and pages.written >= app.env.found_docs:
        static = Path(app.outdir) / "_static"
        gone = [f"_static/{name}" for name in LEFT_BY_THE_THEME if not (static / name).exists()]
        if in_vain := [*pages.in_vain, *gone]:
            raise ExtensionError(f"the theme has changed: no page has {'; '.join(in_vain)}")


def setup(app: Sphinx) -> dict[str, bool]:
    app.config.template_bridge = f"{__name__}.{LeanPages.__name__}"
    app.connect("build-finished", nothing_in_vain)  # before lean_files.py deletes
    return {"parallel_read_safe": True, "parallel_write_safe": True}
