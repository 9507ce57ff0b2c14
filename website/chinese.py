"""``python -m website zh``: the Chinese edition, built into ``zh/`` of the built site.

``zh check`` brings the translations up to the English of today: it writes new English above the
Chinese, which is stale then, and says what a program finds. It stops nobody who changes English.
"""

import shutil
import subprocess
import sys
from difflib import get_close_matches
from pathlib import Path

import yaml

from website import ROOT, SITE
from website.editions import epub, pdf
from website.translation import FOLDER, Piece, faults, pieces_of, read, replace, synced, write
from website.words import said, site, speak

STAGE = ROOT / "_build" / "zh"


def check() -> int:
    """Brings all translations up; 1 if a program finds a sure fault in one that isn't stale."""
    wrong = 0
    for path in sorted(FOLDER.rglob("*.md")):
        pieces = brought_up(path) or read(path)  # of a page that is gone, all stay
        write(pieces, path)
        name = path.relative_to(FOLDER).with_suffix("")
        for piece in pieces:
            told = ["its English is another now"] if piece.stale else faults(piece)
            for fault in told:
                print(f"{name}: {piece.kind} {piece.key or piece.english}: {fault}")
                wrong += not (piece.stale or fault.startswith("numbers"))  # which may be in words
        done, stale = sum(bool(p.chinese) for p in pieces), sum(p.stale for p in pieces)
        print(f"{name}: {done} of {len(pieces)} pieces are in Chinese, {stale} of them stale")
    return int(wrong > 0)


def brought_up(path: Path) -> list[Piece]:
    """The pieces of a translation file, with the English of today; none of a page that is gone."""
    if path.parent.name == "scripts":
        return [script_of_today(piece) for piece in read(path)]
    page = ROOT / path.relative_to(FOLDER)
    sources = [source for source in (page.with_suffix(".ipynb"), page) if source.exists()]
    return [
        piece
        for source in sources
        for piece in synced(pieces_of(source.read_text(encoding="utf-8")), read(path))
    ]


def script_of_today(piece: Piece) -> Piece:
    """A script's piece; one whose English is no more gets the lines that are most like it."""
    folder = ROOT / ("transformer_book" if piece.key.startswith("explorer/") else "website")
    path = folder / piece.key
    if not path.is_file():
        return replace(piece, stale=True)
    text = path.read_text(encoding="utf-8")
    if piece.english in text:
        return piece
    lines, n = text.split("\n"), len(piece.english.split("\n"))
    parts = ["\n".join(lines[i : i + n]) for i in range(len(lines) - n + 1)]
    like = get_close_matches(piece.english, parts, n=1, cutoff=0)
    return replace(piece, english=like[0] if like else piece.english, stale=True)


def build() -> int:
    """Builds the Chinese site into ``zh/`` of the English one, which is built before."""
    if not (SITE / "index.html").exists():
        print("There is no English site to put it in: run make book first.", file=sys.stderr)
        return 1
    configure()
    book = Path(sys.executable).with_name("jupyter-book")
    files = f"--config {STAGE}/_config.yml --toc {STAGE}/_toc.yml --path-output {STAGE}".split()
    done = subprocess.run([book, "build", ".", *files, "--all", "-q"], cwd=ROOT, check=False)
    if done.returncode == 0:
        shutil.rmtree(SITE / "zh", ignore_errors=True)
        shutil.copytree(STAGE / "_build" / "html", SITE / "zh")
        link(SITE)
    return done.returncode


def configure() -> None:
    """Writes the book's configuration to the stage, with the Chinese one over it."""
    speak("zh")
    config, toc = (
        yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
        for name in ("_config.yml", "_toc.yml")
    )
    config |= {name: site()[name] for name in ("title", "author")}
    config["sphinx"]["config"] |= site()["config"]
    if config["html"]["baseurl"]:
        config["html"]["baseurl"] += "zh/"
    for part in toc["parts"]:
        part["caption"] = said(part["caption"])
    STAGE.mkdir(parents=True, exist_ok=True)
    for name, data in (("_config.yml", config), ("_toc.yml", toc)):
        text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
        (STAGE / name).write_text(text, encoding="utf-8")


def link(english: Path) -> None:
    """Has each English page link to its Chinese one: theme/other-language.html."""
    for chinese in (english / "zh").rglob("*.html"):
        page = english / chinese.relative_to(english / "zh")
        if page.exists():
            text = page.read_text(encoding="utf-8")
            page.write_text(text.replace("<a data-href=", "<a href="), encoding="utf-8")


def publish_pdf() -> int:
    configure()
    return pdf.publish_pdf(STAGE, SITE / "zh")


def publish_epub() -> int:
    configure()
    return epub.publish_epub(STAGE, SITE / "zh")
