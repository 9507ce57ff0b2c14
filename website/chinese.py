"""``python -m website zh``: the Chinese edition, built into ``zh/`` of the built site.

``zh check`` brings the translations up to the English of today: it writes new English above the
Chinese, which is stale then, and says what is missing or wrong. It stops nobody who changes English.
"""

import posixpath
import re
import shutil
import subprocess
import sys
from difflib import get_close_matches
from pathlib import Path

import yaml

from website import ROOT, SITE
from website.translation import FOLDER, STALE, Piece, faults, pieces_of, read, replace, synced, write
from website.words import said, site, speak

STAGE = ROOT / "_build" / "zh"
PLACE = re.compile(r'(<p class="book-language">).*?(</p>)', re.S)
# To the last section, figure, equation or exercise above the window's upper third.
SWITCH = """<a href="{address}" hreflang="{code}" lang="{code}" rel="alternate" onclick="
const places = document.querySelectorAll('.bd-article :is(section, [id^=fig-], [id^=eq-], [id^=ex-])[id]');
const seen = [...places].filter((place) =&gt; place.getBoundingClientRect().top &lt; innerHeight / 3);
this.hash = scrollY &gt; 200 &amp;&amp; seen.length ? seen.at(-1).id : '';">{name}</a>"""


def source_of(path: Path) -> Path | None:
    """The page that a translation file is of; none if it is no more."""
    page = ROOT / path.relative_to(FOLDER)
    return next((p for p in (page.with_suffix(".ipynb"), page) if p.exists()), None)


def script_of_today(piece: Piece) -> Piece:
    """A script's piece whose English is no more is stale, below the English that is most like it."""
    path = ROOT / "website" / piece.key.replace("explorer/", "../transformer_book/explorer/")
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    if piece.english in text:
        return piece
    lines, n = text.split("\n"), len(piece.english.split("\n"))
    windows = ["\n".join(lines[i : i + n]) for i in range(len(lines) - n + 1)]
    like = get_close_matches(piece.english, windows, n=1, cutoff=0.5)
    return replace(piece, english=like[0] if like else piece.english, stale=True)


def brought_up(path: Path) -> list[Piece]:
    """The pieces of a translation file, with the English of today."""
    if path.parent.name == "scripts":
        return [script_of_today(piece) for piece in read(path)]
    source = source_of(path)
    return synced(pieces_of(source.read_text(encoding="utf-8")), read(path)) if source else []


def check() -> int:
    """Brings all translations up; 1 if a program finds fault with one that isn't stale."""
    wrong = 0
    for path in sorted(FOLDER.rglob("*.md")):
        pieces = brought_up(path)
        write(pieces, path)
        name = path.relative_to(FOLDER).with_suffix("")
        for piece in pieces:
            told = ["stale: bring the Chinese up to its English"] if piece.stale else faults(piece)
            for fault in told:
                print(f"{name}: {piece.kind} {piece.key or piece.english}: {fault}")
                wrong += not piece.stale
        done, stale = sum(bool(p.chinese) for p in pieces), sum(p.stale for p in pieces)
        print(f"{name}: {done} of {len(pieces)} pieces are in Chinese, {stale} of them stale")
    return int(wrong > 0)


def merged(config: dict, over: dict) -> dict:
    """A configuration with another one's values over its own, at every depth."""
    both = {name: merged(config[name], over[name]) for name in config.keys() & over.keys()
            if isinstance(over[name], dict)}
    return config | over | both


def configure() -> None:
    """Writes the book's configuration, with the Chinese one over it, to the stage."""
    speak("zh")
    config = merged(yaml.safe_load((ROOT / "_config.yml").read_text("utf-8")), site()["config"])
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf-8"))
    for part in toc["parts"]:
        part["caption"] = said(part["caption"])
    if config["html"]["baseurl"]:
        config["html"]["baseurl"] += "zh/"
    STAGE.mkdir(parents=True, exist_ok=True)
    for name, data in (("_config.yml", config), ("_toc.yml", toc)):
        text = yaml.safe_dump(data, allow_unicode=True, sort_keys=False)
        (STAGE / name).write_text(text, encoding="utf-8")


def link_languages(english: Path) -> None:
    """Puts the switch on every page that the site has in both languages."""
    for chinese in sorted((english / "zh").rglob("*.html")):
        name = chinese.relative_to(english / "zh")
        if not (english / name).exists():
            continue
        pages = ((chinese, english / name, "en", "English"), (english / name, chinese, "zh-Hans", "中文"))
        for page, other, code, words in pages:
            address = posixpath.relpath(other.as_posix(), page.parent.as_posix())
            switch = SWITCH.format(address=address, code=code, name=words)
            text = page.read_text(encoding="utf-8")
            page.write_text(PLACE.sub(lambda p: p[1] + switch + p[2], text), encoding="utf-8")


def build() -> int:
    """Builds the Chinese site into ``zh/`` of the English one, which is built before."""
    if not (SITE / "index.html").exists():
        print("There is no English site to put it in: run make book first.", file=sys.stderr)
        return 1
    configure()
    book = Path(sys.executable).with_name("jupyter-book")
    files = ["--config", STAGE / "_config.yml", "--toc", STAGE / "_toc.yml", "--path-output", STAGE]
    done = subprocess.run([book, "build", ".", *files, "--all", "-q"], cwd=ROOT, check=False)
    if done.returncode == 0:
        shutil.rmtree(SITE / "zh", ignore_errors=True)
        shutil.copytree(STAGE / "_build" / "html", SITE / "zh")
        link_languages(SITE)
    return done.returncode


def main(*what: str) -> int:
    match what:
        case ():
            return build()
        case ("check",):
            return check()
        case ("pdf" | "epub",):
            return publish(what[0])
    return 2
