"""A page without what no reader sees of its HTML: the templates' indents and their scripts' notes.

Code and what it printed stay letter by letter; the names of its colours, a thousand on a page, lose
their quotes.
"""

import re

import rjsmin

VERBATIM = re.compile(r"(<(pre|script|style|textarea)\b[^>]*>)(.*?)(</\2>)", re.DOTALL)
LINES = re.compile(r"[ \t]*\n\s*")
NOTE = re.compile(r"/\*.*?\*/", re.DOTALL)
COLOUR = re.compile(r'<span class="([\w-]+)">')
# With it Pygments keeps an empty first line, which a browser would leave out.
NEEDED = re.compile(r"^<span></span>(?!\n)")


def lean_inside(tag: str, inside: str) -> str:
    if tag == "script":
        return rjsmin.jsmin(inside)
    if tag == "style":
        return LINES.sub("\n", NOTE.sub("", inside)).strip()
    if tag == "pre":
        return COLOUR.sub(r"<span class=\1>", NEEDED.sub("", inside))
    return inside


def lean_page(page: str) -> str:
    """A page that looks and runs as before, of fewer letters."""
    out, last = [], 0
    for found in VERBATIM.finditer(page):
        opening, tag, inside, closing = found.groups()
        out += [LINES.sub("\n", page[last : found.start()]), opening]
        out += [lean_inside(tag, inside), closing]
        last = found.end()
    return "".join([*out, LINES.sub("\n", page[last:])])
