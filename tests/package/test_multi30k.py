"""Multi30k as it is found and fetched, with small files and a server of our own in its place."""

import gzip
import hashlib
from collections import Counter
from contextlib import suppress
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from tools import needs
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
    files = {name: hashlib.sha256(data).hexdigest() for name, data in TEXTS.items()}
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
        self.files, self.asked, self.promised = dict(TEXTS), Counter(), {}
        self.address = f"http://127.0.0.1:{self.server_port}/data"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.removeprefix("/data/")
        self.server.asked[name] += 1
        if name not in self.server.files:
            return self.send_error(404)
        data = self.server.files[name]
        with suppress(ConnectionError):  # whoever asked has heard enough
            self.send_response(200)
            self.send_header("Content-Length", str(self.server.promised.get(name, len(data))))
            self.end_headers()
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


def test_only_what_is_missing_or_wrong_is_fetched_and_it_is_kept(fetch, server, tmp_path):
    data = fetch()
    assert list(data) == [data.train, data.dev, data.test] == PAIRS
    assert fetch() == data
    assert server.asked == Counter(list(TEXTS))
    folder = tmp_path / "cache" / "transformer-book" / "multi30k"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == TEXTS
    (folder / "val.en.gz").unlink()
    (folder / FIRST).write_bytes(b"<html>")
    server.asked.clear()
    assert list(fetch()) == PAIRS
    assert server.asked == Counter([FIRST, "val.en.gz"])


def test_a_connection_that_is_cut_leaves_no_half_file(fetch, server, tmp_path):
    server.files["val.de.gz"] = TEXTS["val.de.gz"][:-1]
    server.promised["val.de.gz"] = len(TEXTS["val.de.gz"])
    with pytest.raises(DataMissing, match=r"val\.de\.gz could not be fetched: .*Incomplete"):
        fetch()
    assert cached(tmp_path) == [FIRST, "train.en.gz"]  # which came before


def test_another_file_is_refused(fetch, server, tmp_path):
    server.files[FIRST] = TEXTS[FIRST] + b"x"
    with pytest.raises(DataMissing, match=rf"{FIRST} could not be fetched: .*match.* hash"):
        fetch()
    assert cached(tmp_path) == []


def test_a_server_that_lacks_a_file_or_is_not_there(fetch, server, tmp_path):
    del server.files[FIRST]
    with pytest.raises(DataMissing, match=r"train\.de\.gz could not be fetched: 404.*MULTI30K"):
        fetch()
    server.server_close()
    with pytest.raises(DataMissing, match=rf"^Multi30k is missing: {FIRST} could not be fetched: "):
        fetch()
    assert cached(tmp_path) == []


def test_no_download_was_asked_for(fetch, server, tmp_path):
    with pytest.raises(DataMissing, match=rf"missing: there is no {FIRST} in {tmp_path}"):
        fetch(download=False)
    assert not server.asked
    fetch()
    assert list(multi30k(download=False)) == PAIRS


def test_a_folder_comes_before_the_variable_and_both_before_the_cache(
    fetch, server, tmp_path, monkeypatch
):
    named, wrong = lay(tmp_path / "named"), lay(tmp_path / "wrong", val=b"<html>")
    monkeypatch.setenv("MULTI30K", str(named))
    assert list(fetch()) == PAIRS
    monkeypatch.setenv("MULTI30K", str(wrong))
    assert list(fetch(named)) == list(fetch(str(named))) == PAIRS
    message = rf"MULTI30K must name a folder with Multi30k's 6 files, got {wrong}: val\.de\.gz is "
    with pytest.raises(DataMissing, match=f"^the variable {message}"):
        fetch()
    with pytest.raises(DataMissing, match=f"^folder must .*, got {tmp_path}: there is no {FIRST}$"):
        fetch(tmp_path)
    assert not server.asked
    monkeypatch.setenv("MULTI30K", "")
    assert list(fetch()) == PAIRS
    assert server.asked


# How the tests and the rehearsal decide whether chapter 11 runs


def test_without_the_data_chapter_11_alone_is_skipped(server, monkeypatch, tmp_path):
    monkeypatch.setattr(room, "multi30k", partial(multi30k, source=server.address))
    assert needs.lacking(Path("chapters/10_decoding.ipynb")) is None
    assert not server.asked
    server.files = {}
    reasons = {needs.lacking(Path(f"chapters/11_{name}.ipynb")) for name in "ab"}
    [reason] = reasons
    assert reason.startswith(f"Multi30k is missing: {FIRST} could not be fetched: 404")
    assert server.asked == Counter([FIRST])  # once
    monkeypatch.setenv("MULTI30K", str(tmp_path))  # which the chapter itself will refuse
    assert needs.lacking(Path("chapters/11_a.ipynb")) is None


def test_the_data_is_what_chapter_11_says(monkeypatch):
    monkeypatch.undo()
    if reason := needs.lacking(Path("11_translation.ipynb")):
        pytest.skip(reason)
    assert SOURCE.endswith(f"/{room.COMMIT}/data/task1/raw")
    assert set(FILES) == set(TEXTS)
    real = multi30k()
    assert [len(pairs) for pairs in real] == [29_000, 1_014, 1_000]
    assert len(real.train) - len(set(real.train)) == 3
    assert not {german for german, _ in real.test} & {german for german, _ in real.train}
    german, english = zip(*real.train, strict=True)
    assert "".join(german).count("ß") > 1000 > "".join(english).count("ß")
