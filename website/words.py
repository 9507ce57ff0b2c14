"""What the site and the editions say of themselves, in the language of the build.

It works as gettext does: a process speaks one language at a time, and ``said`` gives what
``translations/zh/`` has for English words, or the English words where it has nothing.
"""

import re
from functools import cache

import yaml
from pypinyin import lazy_pinyin

from website.translation import FOLDER, read

_spoken = ["en"]


def speak(language: str) -> None:
    _spoken[0] = language


def speaks_chinese() -> bool:
    return _spoken[0].startswith("zh")


def language() -> str:
    """What HTML calls the build's language."""
    return "zh-Hans" if speaks_chinese() else "en"


@cache
def site() -> dict:
    """``site.yml``: a configuration, words, patterns of lines, synonyms for the search."""
    return yaml.safe_load((FOLDER / "site.yml").read_text(encoding="utf-8"))


@cache
def claims() -> dict[str, str]:
    """Each claim's Chinese; a claim in other words than its translation's is English."""
    pieces = [piece for path in FOLDER.glob("chapters/*.md") for piece in read(path)]
    return {p.english: p.chinese for p in pieces if p.kind == "claim" and p.chinese and not p.stale}


def said(english: str) -> str:
    """A claim, a line that a check prints, or words of the site's own, in the build's language."""
    if not speaks_chinese():
        return english
    if chinese := claims().get(english) or site()["words"].get(english):
        return chinese
    for pattern, words in site()["patterns"].items():
        if found := re.fullmatch(pattern, english, re.S):
            return found.expand(words)
    return english


def alphabetical(name: str) -> str:
    """What a name is sorted by, in an index or a glossary: a Chinese one by its pinyin."""
    return " ".join(lazy_pinyin(name)).lower() if speaks_chinese() else name.lower()
