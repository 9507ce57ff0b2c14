"""The repository is named once, in _config.yml; everything else repeats it."""

import gzip
import re
import subprocess
from pathlib import Path

import pytest

from tools.needs import lacking
from tools.set_up import ROOT, repository
from transformer.data.multi30k import multi30k

OWNER, NAME = repository().split("/")[-2:]  # https://github.com/OWNER/NAME


def tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout: the files cannot be listed")
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in names.stdout.split("\0") if name]


def test_no_file_names_another():
    """Who names the repository writes it into ``_config.yml``; ``make chapters`` does the rest."""
    pattern = re.compile(rf"(?<![\w-])[\w-]+(?:\.github\.io)?/{re.escape(NAME)}\b")
    own = {f"{OWNER}/{NAME}", f"{OWNER}.github.io/{NAME}"}
    for path in tracked():
        if path.is_file():
            text = path.read_bytes().decode(errors="replace")  # pictures and weights, too
            assert set(pattern.findall(text)) <= own, path.name


QUOTED = 60  # sentences of Multi30k that chapter 11 may show, and sources beside their references
LONG = re.compile(r"\w[\w ,]{29,}")  # what is shorter may be anybody's


def quoted(paths, sentences):
    """Those of ``sentences`` that stand in a file, plain or packed; the short are left out."""
    starts = {at[0].strip(): sentence for sentence in sentences if (at := LONG.match(sentence))}
    found = set()
    for path in paths:
        data = path.read_bytes()
        data = gzip.decompress(data) if data.startswith(b"\x1f\x8b") else data
        text = re.sub(r"\\[nt]|<[^>]*>|[<>]", "\n", data.decode(errors="replace"))
        found |= starts.keys() & {run.strip() for run in LONG.findall(text)}
    return {starts[start] for start in found}


def test_no_more_of_multi30k_is_committed_than_is_quoted():
    if reason := lacking(Path("11_translation.ipynb")):
        pytest.skip(reason)
    sentences = [sentence for pairs in multi30k() for pair in pairs for sentence in pair]
    found = quoted([path for path in tracked() if path.is_file()], sentences)
    assert 0 < len(found) <= QUOTED, sorted(found)  # none: the search is broken
