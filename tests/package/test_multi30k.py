"""Multi30k as it is found and fetched, with small files and a server of our own in its place."""

import gzip
import hashlib
import os
import subprocess
import sys
import time
from collections import Counter
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import nbformat
import pytest
from tqdm import tqdm

from tools import needs
from tools.chapters import ROOT
from transformer.data import multi30k as room
from transformer.data.multi30k import FILES, SOURCE, DataMissing, multi30k

TEXTS = {
    f"{part}.{side}.gz": gzip.compress(f"{part} {side} 1\n{part} {side} 2\n".encode(), mtime=0)
    for part in ("train", "val", "test_2016_flickr")
    for side in ("de", "en")
}
PAIRS = [
    [(f"{part} de {n}", f"{part} en {n}") for n in (1, 2)]
    for part in ("train", "val", "test_2016_flickr")  # train, dev and test, in this order
]
FIRST = "train.de.gz"


@pytest.fixture(autouse=True)
def small(tmp_path, monkeypatch):
    """Files of two lines; an empty cache; no folder named; no proxy."""
    files = {name: (len(data), hashlib.sha256(data).hexdigest()) for name, data in TEXTS.items()}
    monkeypatch.setattr(room, "FILES", files)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.delenv("MULTI30K", raising=False)
    needs._no_data.cache_clear()
    yield
    needs._no_data.cache_clear()


class Server(ThreadingHTTPServer):
    """Hands out ``files``, of the length ``promised``; counts how often each is asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.asked, self.promised, self.wait = dict(TEXTS), Counter(), {}, 0
        self.address = f"http://127.0.0.1:{self.server_port}/data"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/data/")
        self.server.asked[name] += 1
        if name not in self.server.files:
            return self.send_error(404)
        time.sleep(self.server.wait)
        data = self.server.files[name]
        self.send_response(200)
        self.send_header("Content-Length", str(self.server.promised.get(name, len(data))))
        self.end_headers()
        with suppress(ConnectionError):  # whoever asked has heard enough
            self.wfile.write(data)
        return None

    def log_message(self, *_):
        """Nothing on the screen."""


@pytest.fixture
def server():
    with Server() as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture
def fetch(server):
    return partial(multi30k, source=server.address)


def cached(folder):
    return sorted(path.name for path in folder.glob("cache/**/*") if path.is_file())


def lay(folder, **changed):
    """All files in a folder, but for those that are changed."""
    folder.mkdir(parents=True)
    for name, data in TEXTS.items():
        (folder / name).write_bytes(changed.get(name.partition(".")[0], data))
    return folder


def test_what_is_fetched_is_read_and_kept(fetch, server, tmp_path):
    data = fetch()
    assert list(data) == [data.train, data.dev, data.test] == PAIRS
    assert server.asked == Counter(list(TEXTS))
    assert cached(tmp_path) == sorted(TEXTS)
    folder = tmp_path / "cache" / "transformer-book" / "multi30k"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == TEXTS


def test_each_part_is_that_of_its_own_files(fetch):
    data = fetch()
    for part, name in (("train", "train"), ("dev", "val"), ("test", "test_2016_flickr")):
        assert getattr(data, part)[0] == (f"{name} de 1", f"{name} en 1")
    # by which the real files are known: 29,000 pairs, 1,014 and 1,000 are of these lengths
    sizes = {name.partition(".")[0]: size for name, (size, _) in FILES.items()}
    assert sizes == {"train": 568_929, "val": 21_650, "test_2016_flickr": 21_077}


def test_what_is_there_is_not_asked_for(fetch, server):
    assert fetch() == fetch()
    assert server.asked == Counter(list(TEXTS))


def test_only_what_is_missing_or_wrong_is_fetched(fetch, server, tmp_path):
    fetch()
    folder = tmp_path / "cache" / "transformer-book" / "multi30k"
    (folder / "val.en.gz").unlink()
    (folder / FIRST).write_bytes(b"<html>")
    server.asked.clear()
    assert list(fetch()) == PAIRS
    assert server.asked == Counter([FIRST, "val.en.gz"])


@pytest.mark.parametrize("sent", [0, 1, len(TEXTS[FIRST]) - 1])
def test_a_connection_that_is_cut_leaves_no_half_file(fetch, server, tmp_path, sent):
    server.files[FIRST] = TEXTS[FIRST][:sent]
    server.promised[FIRST] = len(TEXTS[FIRST])
    cut = r"^Multi30k is missing: train\.de\.gz (is cut off, or|could not be fetched: Incomplete)"
    with pytest.raises(DataMissing, match=cut):
        fetch()
    assert cached(tmp_path) == []


def test_what_came_before_the_cut_is_kept_and_the_rest_fetched_later(fetch, server, tmp_path):
    server.files["val.de.gz"] = b""
    with pytest.raises(DataMissing, match=r"missing: val\.de\.gz is cut off, or .*: got 0 bytes"):
        fetch()
    assert cached(tmp_path) == [FIRST, "train.en.gz"]
    server.files = TEXTS
    assert list(fetch()) == PAIRS
    assert server.asked == Counter([*TEXTS, "val.de.gz"])


@pytest.mark.parametrize(
    "data", [TEXTS[FIRST][:-1] + b"x", TEXTS[FIRST] + bytes(10**6)], ids=["other", "longer"]
)
def test_another_file_is_refused(fetch, server, tmp_path, data):
    server.files[FIRST] = data
    size, wanted = room.FILES[FIRST]
    read = data[: size + 1]  # and no more
    got = hashlib.sha256(read).hexdigest()
    with pytest.raises(DataMissing) as raised:
        fetch()
    assert str(raised.value) == (
        f"Multi30k is missing: {FIRST} is cut off, or another file: got {len(read)} bytes of "
        f"SHA-256 {got[:16]}…, wanted {size} of {wanted[:16]}…. Fetch its 6 files from "
        f"{server.address} and set MULTI30K to their folder."
    )
    assert cached(tmp_path) == []


def test_a_file_that_the_server_does_not_have(fetch, server):
    del server.files[FIRST]
    with pytest.raises(DataMissing, match=r"train\.de\.gz could not be fetched: HTTP Error 404"):
        fetch()


def test_a_server_that_is_silent(fetch, server):
    server.wait = 0.5
    with pytest.raises(DataMissing, match=r"could not be fetched: .*timed out.*MULTI30K"):
        fetch(timeout=0.1)


def test_without_a_network_one_line_says_where_the_data_is_and_where_to_put_it(server, tmp_path):
    server.server_close()
    with pytest.raises(DataMissing) as raised:
        multi30k(source=server.address)
    line = str(raised.value)
    assert "\n" not in line
    assert line.startswith(f"Multi30k is missing: {FIRST} could not be fetched: ")
    assert line.endswith(f" from {server.address} and set MULTI30K to their folder.")
    assert isinstance(raised.value.__cause__, OSError)
    assert not (tmp_path / "cache").exists()


def test_a_cache_that_cannot_be_written(fetch, tmp_path):
    (tmp_path / "cache").write_text("no folder", encoding="utf-8")
    with pytest.raises(DataMissing, match=r"could not be fetched: \[.*cache"):
        fetch()


def test_no_download_was_asked_for(fetch, server, tmp_path):
    with pytest.raises(DataMissing, match=rf"missing: there is no {FIRST} in {tmp_path}"):
        fetch(download=False)
    assert not server.asked
    fetch()
    assert list(multi30k(download=False)) == PAIRS


@pytest.mark.parametrize("timeout", [0.0, -1.0, float("nan")])
def test_a_timeout_is_positive(fetch, timeout):
    with pytest.raises(ValueError, match=f"timeout must be positive, got {timeout}"):
        fetch(timeout=timeout)


def test_a_folder_comes_before_the_variable_and_both_before_the_cache(
    fetch, server, tmp_path, monkeypatch
):
    named = lay(tmp_path / "named")
    wrong = lay(tmp_path / "wrong", val=b"")
    monkeypatch.setenv("MULTI30K", str(named))
    assert list(fetch()) == PAIRS
    monkeypatch.setenv("MULTI30K", str(wrong))
    assert list(fetch(named)) == list(fetch(str(named))) == PAIRS
    assert not server.asked
    monkeypatch.setenv("MULTI30K", "")
    assert list(fetch()) == PAIRS
    assert server.asked


@pytest.mark.parametrize("by_variable", [True, False])
def test_a_named_folder_is_an_error_where_it_is_wrong_and_nothing_is_written(
    fetch, server, tmp_path, monkeypatch, by_variable
):
    def refused(folder, fault):
        before = sorted(tmp_path.rglob("*"))
        monkeypatch.setenv("MULTI30K", str(folder if by_variable else tmp_path))
        name = "the variable MULTI30K" if by_variable else "folder"
        said = rf"^{name} must name a folder with Multi30k's 6 files, got {folder}: {fault}"
        with pytest.raises(DataMissing, match=said):
            fetch(None if by_variable else folder)
        assert sorted(tmp_path.rglob("*")) == before
        assert not server.asked

    refused(tmp_path / "none", f"there is no {FIRST}$")
    refused(lay(tmp_path / "wrong", val=b"<html>"), r"val\.de\.gz is cut off, .* got 6 bytes of ")


def test_the_bar_counts_the_bytes_that_are_missing_and_can_be_silenced(
    fetch, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(room, "tqdm", partial(tqdm, disable=False, mininterval=0))  # a person's
    fetch(progress=False)
    assert capsys.readouterr().err == ""
    missing = list(tmp_path.glob("cache/*/*/t*"))
    size = sum(path.stat().st_size for path in missing)
    for path in missing:
        path.unlink()
    fetch()
    assert f"Multi30k: 100%|██████████| {size}/{size} " in capsys.readouterr().err
    monkeypatch.setattr(room, "tqdm", tqdm)  # for which pytest has set TQDM_DISABLE
    for path in missing:
        path.unlink()
    fetch()
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("system", "variables", "cache"),
    [
        ("linux", {}, "home/.cache"),
        ("linux", {"XDG_CACHE_HOME": "else"}, "else"),
        ("darwin", {}, "home/Library/Caches"),
        ("darwin", {"XDG_CACHE_HOME": "else"}, "else"),
        ("win32", {}, "home/AppData/Local"),
        ("win32", {"LOCALAPPDATA": "local"}, "local"),
    ],
)
def test_every_system_has_a_cache(system, variables, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", system)
    monkeypatch.setattr(Path, "home", lambda: tmp_path / "home")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    for name, folder in variables.items():
        monkeypatch.setenv(name, str(tmp_path / folder))
    expected = tmp_path / cache / "transformer-book" / "multi30k"
    with pytest.raises(DataMissing) as raised:
        multi30k(download=False)
    assert f" in {expected}. " in str(raised.value)


def test_the_address_is_that_of_one_commit():
    assert SOURCE.startswith("https://raw.githubusercontent.com/multi30k/dataset/")
    assert len(room.COMMIT) == 40
    assert f"/{room.COMMIT}/" in SOURCE
    assert set(FILES) == set(TEXTS)


# How tests and the rehearsal decide whether chapter 11 runs.


def test_only_chapter_11_needs_the_data(server, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "multi30k", partial(multi30k, source=server.address))
    lacking = needs.lacking
    assert lacking(Path("chapters/10_decoding.ipynb")) is None
    assert lacking(Path("tests/11_none.py")) is None
    assert not server.asked
    assert lacking(Path("chapters/11_any.ipynb")) is None
    assert cached(tmp_path) == sorted(TEXTS)


def test_a_machine_without_the_data_is_asked_once(server, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "multi30k", partial(multi30k, source=server.address))
    server.files = {}
    first, second = (needs.lacking(Path(f"chapters/11_{name}.ipynb")) for name in "ab")
    assert first == second
    assert first.startswith(f"Multi30k is missing: {FIRST} could not be fetched: HTTP Error 404")
    assert server.asked == Counter([FIRST])
    monkeypatch.setenv("MULTI30K", str(tmp_path))  # which the chapter itself will refuse
    assert needs.lacking(Path("chapters/11_a.ipynb")) is None


@pytest.fixture
def run_chapters(tmp_path):
    """pytest on small chapters, of a good and a bad cell, where no server can be reached."""
    cells = [
        nbformat.v4.new_code_cell(
            "print(1)", execution_count=1, outputs=[nbformat.v4.new_output("stream", text=text)]
        )
        for text in ("1\n", "2\n")
    ]

    def run(*names, **variables):
        paths = [tmp_path / name for name in names]
        for path in paths:
            nbformat.write(nbformat.v4.new_notebook(cells=cells), path)
        closed = "http://127.0.0.1:9"  # where nobody listens
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "conftest", "-n", "0",
             "-rs", "-q", "--nbval", *paths],
            cwd=ROOT, env=os.environ | {"https_proxy": closed, "HTTPS_PROXY": closed} | variables,
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return done.stdout

    return run


def test_without_the_data_every_cell_of_chapter_11_is_skipped_with_the_reason(run_chapters):
    said = run_chapters("11_needs.ipynb", "12_needs_none.ipynb")
    assert "1 failed, 1 passed, 2 skipped in" in said
    assert "SKIPPED [2] conftest.py" in said
    assert "Multi30k is missing: train.de.gz could not be fetched: " in said


def test_a_folder_that_was_named_is_for_the_chapter_to_refuse(run_chapters):
    assert "1 failed, 1 passed in" in run_chapters("11_named.ipynb", MULTI30K="/a/wrong/folder")


@pytest.fixture
def real(monkeypatch):
    """The data itself, where it can be had."""
    monkeypatch.undo()
    if reason := needs.lacking(Path("11_translation.ipynb")):
        pytest.skip(reason)
    return multi30k()


def test_the_data_is_what_chapter_11_says(real):
    assert [len(pairs) for pairs in real] == [29_000, 1_014, 1_000]
    assert len(real.train) - len(set(real.train)) == 3
    assert not {german for german, _ in real.test} & {german for german, _ in real.train}
    german, english = zip(*real.train, strict=True)
    assert "".join(german).count("ß") > 1000 > "".join(english).count("ß")
