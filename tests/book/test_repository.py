"""The repository is named once, in _config.yml; everything else repeats it."""

import gzip
import hashlib
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from tools.needs import lacking
from tools.repository import main, parts, renamed
from tools.set_up import ROOT, repository
from transformer.data.multi30k import FILES, multi30k

OWNER, NAME = parts(repository())


def tracked():
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a checkout: the files cannot be listed")
    names = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [ROOT / name for name in names.stdout.split("\0") if name]


def test_the_config_names_it_and_the_sites_address():
    config = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    site = f"https://{OWNER}.github.io/{NAME}/"
    assert config["html"]["baseurl"] == site
    assert config["sphinx"]["config"]["ogp_site_url"] == site


def test_the_package_names_it():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["urls"]["Source"] == repository()


def test_the_readme_names_it():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert f"colab.research.google.com/github/{OWNER}/{NAME}/blob/main/chapters/" in readme


def test_no_file_names_another():
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


def test_no_file_of_multi30k_is_committed():
    sums = {wanted for _, wanted in FILES.values()}
    for path in tracked():
        if path.is_file():
            assert path.name not in FILES
            assert hashlib.sha256(path.read_bytes()).hexdigest() not in sums, path.name


def test_what_is_quoted_is_found(tmp_path):
    sentences = ["Zwei Männer, die lange auf einer Bank sitzen.", "A dog.", "A man on a bench " * 3]
    contents = {
        "text": b"x\n%s\n",
        "packed": None,
        "notebook": b'{"text": ["de  \\t%s\\n"]}',
        "page": b"<td>%s</td>",
        "table": b"| %s |",
    }
    for name, content in contents.items():
        for sentence in sentences:
            line = sentence.encode()
            packed = gzip.compress(line + b"\n") if content is None else content % line
            (tmp_path / name).write_bytes(packed)
            expected = set() if sentence == "A dog." else {sentence}
            assert quoted([tmp_path / name], sentences) == expected, name
    (tmp_path / "other").write_text("Drei Männer, die lange auf einer Bank sitzen.", "utf-8")
    assert quoted([tmp_path / "other"], sentences) == set()


def test_no_more_of_multi30k_is_committed_than_is_quoted():
    if reason := lacking(Path("11_translation.ipynb")):
        pytest.skip(reason)
    sentences = [sentence for pairs in multi30k() for pair in pairs for sentence in pair]
    found = quoted([path for path in tracked() if path.is_file()], sentences)
    assert len(found) <= QUOTED, sorted(found)


NAMING = ("_config.yml", "README.md", "pyproject.toml", "chapters/03_queries_keys_values.ipynb")


@pytest.fixture
def small(tmp_path, monkeypatch):
    """A repository of the files that name it, and of one that is no text."""
    for name in NAMING:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "serif.woff2").write_bytes(b"wOF2\0\xff")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    monkeypatch.setattr("tools.repository.ROOT", tmp_path)
    return tmp_path


def test_where_one_file_cannot_be_read_none_is_renamed(small):
    (small / "zz.txt").write_bytes(b"\xff")  # neither text nor known as something else
    with pytest.raises(UnicodeDecodeError):
        main("https://github.com/ada/engine-notes/")
    for name in NAMING:
        assert (small / name).read_bytes() == (ROOT / name).read_bytes()


def test_a_new_name_reaches_everything(small, capsys):
    assert main("https://github.com/ada/engine-notes/") == 0
    assert len(capsys.readouterr().out.splitlines()) == 4
    for path in small.rglob("*.*"):
        if ".git" not in path.parts and path.suffix != ".woff2":
            text = path.read_text(encoding="utf-8")
            assert f"{OWNER}/{NAME}" not in text
            assert "ada/engine-notes" in text
    assert "https://ada.github.io/engine-notes/" in (small / "_config.yml").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize(
    "url",
    [
        "",
        "github.com/a/b",
        "https://gitlab.com/a/b",
        "https://github.com/a",
        "https://github.com/a/b c",
        "https://github.com/-a/b",
        "https://github.com/a/..",
    ],
)
def test_what_is_no_repository_is_refused(url, capsys):
    assert main(url) == 2
    assert (
        f"URL must look like https://github.com/OWNER/NAME, got {url!r}" in capsys.readouterr().err
    )


def test_renaming_touches_only_the_name():
    text = "x/n https://github.com/o/n/blob xo/n o/nish data/no o.github.io/n/ o/n.git"
    expected = "x/n https://github.com/a/b/blob xo/n o/nish data/no a.github.io/b/ a/b.git"
    assert renamed(text, ("o", "n"), ("a", "b")) == expected
    assert renamed("o/n.x o/nyx", ("o", "n.x"), ("a", "b")) == "a/b o/nyx"  # a dot is a dot
