"""A page in another language: the same page with other words in the same places.

``translations/zh/chapters/NAME.md`` has a piece for each place of a page that has words. The
English of which it is the translation stands in a comment, and the Chinese below it::

    <!-- cell names
    Three words name the parts. …
    -->

    三样东西各有名字。……

A piece is a Markdown cell (``cell ID``) or a part of a page that is no notebook (``part NAME``),
the alt text of a picture (``alt ID``), the words in it (``words ID``, a line ``weight ⇒ 权重`` for
each), the title of a fold (``fold ID``), a comment in code (``comment ID``), a claim (``claim``),
or code with words in it (``script PATH``). A piece without Chinese shows the English. One whose
English has changed since is *stale*: its Chinese is shown with a line that says so; only a claim,
which must hold, and a script, which must run, are English then.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from difflib import get_close_matches
from html import unescape
from pathlib import Path

from transformer_book.claims import MIME as CLAIM

FOLDER = Path(__file__).resolve().parents[1] / "translations" / "zh"
KINDS = "cell|part|alt|words|fold|comment|claim|script"
PIECE = re.compile(rf"^<!-- ({KINDS}) ?(.*)\n((?s:.*?))\n-->$\n?", re.M)
STALE = "<!-- stale -->"
SAYS_STALE = "*（这一段的英文已有改动，译文待更新。）*"
NAMED_BY_ENGLISH = ("claim", "comment", "script")  # a cell or a file has many of them
SVG = "image/svg+xml"
IN_SVG = re.compile(r"<text[^>]*>.*?</text>", re.S)
IN_TEXT = re.compile(r">([^<>]*[A-Za-z]{2}[^<>]*)<")
COMMENT = re.compile(r"^( *)# (?!@title).*(?:\n\1# .*)*|(?<=  )# (?!fmt:).*$", re.M)
HIDDEN = {"hide-input", "hide-cell", "remove-cell"}  # but solutions, their comments stay English
HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
FENCE = re.compile(r"^(```|:::).*?^\1", re.M | re.S)
# A page that is no notebook: its sections, an entry of the errata, a term of the glossary.
PART = re.compile(
    r"^(?=## |\*\*.+\*\*\n: )|^(?=```\n\Z)"
    r"|(?:(?<=\n\n)|(?<=glossary\}\n))(?=\S.*\n.*[\u4e00-\u9fff].*\n  )",
    re.M,
)


@dataclass(frozen=True)
class Piece:
    kind: str
    key: str  # a cell's id, a part's first words, a script's path; a claim has none
    english: str
    chinese: str = ""
    stale: bool = False

    @property
    def name(self) -> tuple[str, str]:
        return self.kind, self.english if self.kind in NAMED_BY_ENGLISH else self.key

    @property
    def lines(self) -> dict[str, str]:
        """What ``words`` makes of a picture's words."""
        pairs = (line.split(" ⇒ ", 1) for line in self.chinese.splitlines() if " ⇒ " in line)
        return {english.strip(): chinese.strip() for english, chinese in pairs}

    def __str__(self) -> str:
        head = f"<!-- {self.kind} {self.key}".rstrip() + f"\n{self.english}\n-->\n"
        return head + f"{STALE}\n" * self.stale + f"\n{self.chinese}".rstrip() + "\n"


# ------------------------------------------------------------------------------- a translation file


def read(path: Path) -> list[Piece]:
    """The pieces of a translation file, in their order; none if it isn't there."""
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    parts = PIECE.split(text)[1:]  # kind, key, English, and what stands below
    pieces = []
    for kind, key, english, below in zip(*[iter(parts)] * 4, strict=True):
        stale = below.startswith(STALE)
        chinese = below.removeprefix(STALE).strip("\n")
        pieces.append(Piece(kind, key, english, chinese, stale))
    return pieces


def write(pieces: list[Piece], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    said = [str(piece) for piece in pieces if re.search("[A-Za-z]", piece.english)]
    path.write_text("\n".join(said), encoding="utf-8")


def synced(now: list[Piece], before: list[Piece]) -> list[Piece]:
    """Today's pieces with the Chinese that there was; where the English is another, it's stale.

    A piece with a new name takes the Chinese of one that is like it and is no more.
    """
    old = {piece.name: piece for piece in before if piece.chinese}
    names = {piece.name for piece in now}
    gone = {piece.english: piece for name, piece in old.items() if name not in names}
    found = []
    for piece in now:
        was = old.get(piece.name)
        if was is None and (like := get_close_matches(piece.english, gone, n=1, cutoff=0.7)):
            was = gone.pop(like[0])
        if was is not None and was.kind == piece.kind:
            stale = was.stale or was.english != piece.english
            piece = replace(piece, chinese=was.chinese, stale=stale)
        found.append(piece)
    return found


# ---------------------------------------------------------------------------- the pieces of a page


def joined(source: str | list[str]) -> str:
    return source if isinstance(source, str) else "".join(source)


def words_in(svg: str) -> list[str]:
    """The words in a picture, each once, in their order: what stands between two tags."""
    nodes = (node for text in IN_SVG.findall(svg) for node in IN_TEXT.findall(text))
    return list(dict.fromkeys(unescape(node).strip() for node in nodes))


def comments_in(cell: dict) -> list[str]:
    """The comments that a reader sees, without their signs, if they are more than a word."""
    title = cell["metadata"].get("mystnb", {}).get("code_prompt_show", "")
    if HIDDEN & {*cell["metadata"].get("tags", [])} and not title.startswith("Solution"):
        return []
    runs = [without_signs(run[0]) for run in COMMENT.finditer(joined(cell["source"]))]
    shapes = r"\((?:\w+, )*\w+,?\)"  # which need no words
    return [run for run in runs if len(re.findall("[A-Za-z]{2,}", re.sub(shapes, "", run))) > 1]


def without_signs(comment: str) -> str:
    return re.sub(r"\n *#", "", comment.strip()).removeprefix("# ")


def in_cell(cell: dict) -> Iterator[Piece]:
    key = cell["id"]
    if cell["cell_type"] == "markdown":
        yield Piece("cell", key, joined(cell["source"]))
        return
    shown = cell["metadata"].get("mystnb", {})
    if title := shown.get("code_prompt_show"):
        yield Piece("fold", key, title)
    for comment in comments_in(cell):
        yield Piece("comment", key, comment)
    outputs = [output.get("data", {}) for output in cell.get("outputs", [])]
    yield from (Piece("claim", "", data[CLAIM]["text"]) for data in outputs if CLAIM in data)
    if alt := shown.get("image", {}).get("alt"):
        yield Piece("alt", key, alt)
    if words := [word for data in outputs for word in words_in(joined(data.get(SVG, "")))]:
        yield Piece("words", key, "\n".join(words))


def in_markdown(text: str) -> list[Piece]:
    """A page's parts, which are the whole page; one without words has no Chinese."""
    pieces: list[Piece] = []
    for part in (part.strip() for part in PART.split(text) if part.strip()):
        first = part.partition("\n")[0]
        key = slug(first)[:60] or first
        again = sum(piece.key.startswith(key) for piece in pieces)
        pieces.append(Piece("part", f"{key}-{again + 1}" if again else key, part))
    return pieces


def pieces_of(text: str) -> list[Piece]:
    """The pieces of a page's source, a notebook's or a Markdown page's, without Chinese."""
    if not text.lstrip().startswith("{"):
        return in_markdown(text)
    return [piece for cell in json.loads(text)["cells"] for piece in in_cell(cell)]


def slug(heading: str) -> str:
    """The address that Sphinx gives to a section of this heading."""
    plain = re.sub(r"[^a-z0-9]+", "-", re.sub(r"[*`$]", "", heading).lower())
    return re.sub(r"^[-0-9]+|-+$", "", plain)


def headings(text: str) -> list[str]:
    return HEADING.findall(FENCE.sub("", text))


# ------------------------------------------------------------------------ what a program can check

HAN = "\u3400-\u9fff"
SAME = {
    "formulas": r"\$\$.*?\$\$|\$[^$\n]+\$",
    "code": r"(?<!`)`[^`\n]+`(?!`)",
    "links": r"\]\((<[^>]*>|[^)\s]*)\)",
    "blocks": r"^ *(?:```|:::)[^\n]*|</?(?:div|details|span|p)\b[^>]*>",
    "headings": r"^#+ (?:\d+\.\d* )?",
}
NUMBER = re.compile(r"(?<![A-Za-z\d_.])\d+(?:,\d{3})*(?:\.\d+)*")
FEW = {str(number) for number in range(101)}  # which English may have in words
TYPE = {
    "a line break in a paragraph shows as a blank": rf"[{HAN}，。；：、]\n[{HAN}]",
    "half-width punctuation": rf"[{HAN}][,;:?!]|[{HAN}]\([{HAN}]",
    "no blank between Chinese and Latin": rf"[{HAN}][A-Za-z0-9]|[A-Za-z0-9%][{HAN}]",
    "Chinese does not slant": rf"(?<!\*)\*[{HAN}]+\*(?!\*)",
}


def faults(piece: Piece) -> Iterator[str]:
    """What differs from the English and may not, and what Chinese type does not do."""
    lost = [word for word in piece.lines if word not in piece.english.splitlines()]
    if piece.kind == "words" and lost:
        yield f"the picture has no such words: {lost}"
    if not piece.chinese or piece.kind in ("script", "words"):
        return
    english, chinese = (re.sub(r"\\text\{[^}]*\}", "", t) for t in (piece.english, piece.chinese))
    for name, pattern in SAME.items():
        theirs, ours = (sorted(re.findall(pattern, t, re.S | re.M)) for t in (english, chinese))
        if ours != theirs:
            less, more = ([x for x in a if x not in b] for a, b in ((theirs, ours), (ours, theirs)))
            yield f"{name}: {len(theirs)} and {len(ours)}, only English {less}, only Chinese {more}"
    english, chinese = (re.sub(SAME["links"], "", t) for t in (english, chinese))
    told, said = ({*NUMBER.findall(t)} for t in (english, chinese))
    if told - said or said - told - FEW:
        yield f"numbers: only English {[*told - said]}, only Chinese {[*said - told - FEW]}"
    prose = re.sub(r"\$\$.*?\$\$|```.*?```|^ *[|:].*$", "", chinese, flags=re.S | re.M)
    prose = re.sub(r"<[^>]*>|`[^`]*`|\]\([^)]*\)|\$[^$]*\$", "|", prose)
    for name, pattern in TYPE.items():
        if near := re.search(pattern, prose.replace("**", "")):
            yield f"{name}: {near[0]!r}"
    for bold, after in re.findall(r"\*\*([^*\n]+)\*\*(.?)", prose):
        if (after.isalnum() and not bold[-1].isalnum()) or bold != bold.strip():
            yield f"Markdown does not close this bold: **{bold}**{after}"
