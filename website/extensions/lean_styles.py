"""A style sheet without what no page of the site can use: rules, and values that none asks for.

A selector is looked for in all pages, laid over each other as one tree. Where one may doubt it is
used: what a script could make or change is taken to be there, and neither states, nor what stands
in (), nor the order of siblings counts.
"""

import re
from functools import cache

import soupsieve
import tinycss2
from bs4 import BeautifulSoup, Tag
from lxml.html import HtmlElement
from sphinx.errors import ExtensionError

SCHEME = re.compile(r"""\[data-theme=["']?(dark|light)["']?\]""")
ICON = re.compile("fa[srb]?|fa-.*")  # icons are ours: icons.css
# Not .name and #name, by which a script looks for one; and of two letters there is no class.
GIVEN = re.compile(r"(?<![.#\w-])[\w-]{3,}")
# Names that scripts have words for, and that no page gets. A page that has one all the same stops
# the build: then it is to be taken out of here.
NEVER = re.compile(
    "btn-check|contents|disabled|error|full-width|h[1-6]|highlight-link|list-group-.*|margin(note)?"
    "|pst-collapse-.*|pst-sidebar-collapse|pst-squeeze|sidebar(-title)?|sidenote|thebe-.*"
    "|toggle-hidden|tooltip|translated|warning"
)
# Parts of fields for dates, colours, files and numbers: the book has fields for words alone.
FIELDS = re.compile(r"::(file-selector|-webkit-(calendar|color|date|file-upload|inner-spin))")
# Whatever comes after something: for such a rule a browser asks anew how all of a page looks
# whenever a script puts something in.
AFTER = re.compile(r"[+~]\s*(\*|:[^:])")
ALWAYS = "html:not([data-theme])"  # each page says of itself what its colours are
TAGS = re.compile(r"""["'`<](\w+)["'`\s>]""")
VALUE = re.compile(r"(?<![\w-])--[\w-]+")
ASKED = re.compile(r"var\(\s*(--[\w-]+)")
MANY = ("href", "src", "style", "title")  # what hardly stands twice: only whether it is there
GROUPS = ("media", "supports", "container")


class Pages:
    """What there is on the site, as far as ``sheets`` ask for it, and what its scripts may add."""

    def __init__(self, sheets: str) -> None:
        self.kept = {"class", *re.findall(r"\[\s*([\w-]+)", sheets)}  # attributes
        self.ids = set(re.findall(r"#([\w-]+)", sheets))
        self.names: set[str] = set()  # the classes and ids that a page has, or a script may give
        self.given: set[str] = set()
        self.made: set[str] = set()  # the tags of elements that a script may make
        self.changed = {"open"}  # attributes that a script, or the reader, may change
        self.asked: set[str] = set()  # values that are asked for outside of the style sheets
        self.tree = BeautifulSoup("", "lxml")
        self._places: dict[tuple, Tag] = {}

    def add_page(self, page: HtmlElement, text: str) -> None:
        own = {name for names in page.xpath("//@class | //@id") for name in names.split()}
        if known := {name for name in own if NEVER.fullmatch(name)}:
            raise ExtensionError(f"NEVER has {', '.join(sorted(known))}, and so has a page")
        self.names |= own
        self.asked.update(VALUE.findall(text))
        self._lay(page, self.tree)

    def add_script(self, text: str, gives: bool = True) -> None:
        """Where it ``gives``, a word in it may be a class, and a tag that of a new element."""
        words = set(re.findall(r"[\w-]+", text))
        self.changed |= words | {f"data-{dashed(word)}" for word in words}
        self.asked.update(VALUE.findall(text))
        if gives:
            self.given.update(n for n in GIVEN.findall(text) if not NEVER.fullmatch(n))
            self.made.update(TAGS.findall(text))

    def _lay(self, element: HtmlElement, parent: Tag) -> None:
        """Lays an element under ``parent``, or onto one there that looks the same."""
        told = {name: "" if name in MANY else element.get(name) for name in self.kept}
        told |= {"id": name if (name := element.get("id")) in self.ids else None}
        told = {name: value for name, value in told.items() if value is not None}
        key = (id(parent), element.tag, *sorted(told.items()))
        if key not in self._places:
            self._places[key] = self.tree.new_tag(element.tag, attrs=told)
            parent.append(self._places[key])
        for inner in element.iterchildren(tag="*"):
            self._lay(inner, self._places[key])

    def use(self, selector: list) -> bool:
        """Whether some element may be selected."""
        sought = weak(selector, self)
        return not sought or soupsieve.select_one(sought, self.tree) is not None


@cache
def dashed(word: str) -> str:
    """``dataset.bsTheme`` is the attribute data-bs-theme."""
    return re.sub("[A-Z]", lambda capital: f"-{capital[0].lower()}", word)


def compounds(selector: list) -> list[tuple[str, list]]:
    """The parts of a selector, each with what stands before it: " ", ">", "+" or "~"."""
    parts: list[tuple[str, list]] = [(" ", [])]
    for token in selector:
        last = parts[-1][1]
        between = token.value if token.type == "literal" and token.value in ">+~" else ""
        if between and last:
            parts.append((between, []))
        elif between:
            parts[-1] = (between, [])
        elif token.type != "whitespace":
            last.append(token)
        elif last:
            parts.append((" ", []))
    return [(between, part) for between, part in parts if part]


def static(part: list, pages: Pages) -> str | None:
    """A part without states; None for one that a script may have made, or made to fit."""
    kept, named, tag, before = [], False, "", ""
    for token in part:
        name = token.value if token.type in ("ident", "hash") else ""
        if name and (before == "." or token.type == "hash"):
            if name in pages.given:
                return None
            named = True
            kept.append(f".{token.serialize()}" if before == "." else f'[id="{name}"]')
        elif name and not before:
            tag = name
            kept.append(token.serialize())
        elif token.type == "[] block":
            name, *rest = (t for t in token.content if t.type != "whitespace")
            if name.value not in pages.changed:
                whole = name.value in MANY or not rest
                kept.append(f"[{name.value}]" if whole else token.serialize())
        before = token.value if token.type == "literal" else ""
    if tag in pages.made and not named:
        return None
    return "".join(kept) or "*"


def weak(selector: list, pages: Pages) -> str:
    """A selector without what cannot be seen in a page that no script has changed yet."""
    said: list[tuple[str, str]] = []
    gap = False
    for between, part in compounds(selector):
        text = static(part, pages)
        if between in "+~" and not gap and said:
            between = said.pop()[0]  # a sibling stands where the one before it stands
        if text is not None:
            said.append((" " if gap else between, text))
        gap = text is None
    return " ".join(f"{between} {text}" for between, text in said).strip(" >+~")


def is_used(selector: list, pages: Pages, ours: bool) -> bool:
    """Whether each class and id of a selector stands somewhere, and all of it in some place."""
    text = tinycss2.serialize(selector).strip()
    if text.startswith(ALWAYS) or FIELDS.search(text):
        return False
    if AFTER.search(text):
        if ours:
            raise ExtensionError(f"{text} is about whatever comes after something: say what")
        return False
    for before, token in zip([None, *selector], selector, strict=False):
        name = token.value if token.type in ("ident", "hash") else ""
        is_class = token.type == "ident" and before is not None and before == "."
        if is_class and not ours and ICON.fullmatch(name):
            return False
        if (is_class or token.type == "hash") and name not in pages.names:
            return False
    return pages.use(selector)


def selectors(prelude: list) -> list[list]:
    parts: list[list] = [[]]
    for token in prelude:
        if token.type == "literal" and token.value == ",":
            parts.append([])
        elif token.type != "comment":
            parts[-1].append(token)
    return parts


def written(kept: list[str], body: str) -> str:
    """A rule; one for dark mode not on paper, and one for light mode also there."""
    dark = [one for one in kept if (found := SCHEME.search(one)) and found[1] == "dark"]
    light = [one for one in kept if (found := SCHEME.search(one)) and found[1] == "light"]
    others = [one for one in kept if one not in dark + light]
    by_day = [SCHEME.sub(":not([data-theme=dark])", one) for one in light]
    on_paper = [SCHEME.sub("[data-theme]", one) for one in light]
    rules = [f"{','.join(others + by_day)}{{{body}}}"] if others + by_day else []
    if dark:
        rules.append(f"@media not print{{{','.join(dark)}{{{body}}}}}")
    if on_paper:
        rules.append(f"@media print{{{','.join(on_paper)}{{{body}}}}}")
    return "\n".join(rules)


def lean(rules: list, pages: Pages, ours: bool) -> str:
    """A style sheet without the rules that no page uses."""
    out = []
    for rule in rules:
        if rule.type == "error":
            raise ExtensionError(f"a style sheet cannot be read: {rule.message}")
        if rule.type == "qualified-rule":
            every = selectors(rule.prelude)
            kept = [s for s in every if is_used(s, pages, ours)]
            if ours and len(kept) < len(every):
                dead = [tinycss2.serialize(s).strip() for s in every if s not in kept]
                raise ExtensionError(f"no page has {', '.join(dead)} of a style sheet of ours")
            if kept:
                body = [token for token in rule.content if token.type != "comment"]
                texts = [tinycss2.serialize(one).strip() for one in kept]
                out.append(written(texts, " ".join(tinycss2.serialize(body).split())))
        elif rule.at_keyword in GROUPS:
            inner = tinycss2.parse_rule_list(rule.content, True, True)
            if inside := lean(inner, pages, ours):
                out.append(
                    f"@{rule.at_keyword} {tinycss2.serialize(rule.prelude).strip()}{{{inside}}}"
                )
        elif rule.at_keyword not in ("import", "charset"):
            text = rule.serialize()
            if "Font Awesome" not in text.replace("\\", ""):
                out.append(text)
    return "\n".join(out)
