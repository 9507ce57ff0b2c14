"""What a host sends: each file, and the compressed one beside it where a browser can read that."""

import gzip
import subprocess
import sys
import urllib.request

import pytest

from website import ROOT
from website.hosting import badly_compressed, compress, serve

LONG = "<p>a page that is long enough</p>\n" * 100


@pytest.fixture
def site(tmp_path):
    place = tmp_path / "site"
    (place / "chapters").mkdir(parents=True)
    (place / "index.html").write_text("<p>short</p>", encoding="utf-8")
    (place / "chapters" / "a.html").write_text(LONG, encoding="utf-8")
    (place / "b.js").write_text(f"/* {LONG} */", encoding="utf-8")
    (place / "c.woff2").write_bytes(bytes(9000))
    compress(place)
    return place


def stored(site):
    return {path.relative_to(site).as_posix() for path in site.rglob("*.gz")}


def test_long_files_of_text_are_stored_compressed_and_all_others_are_not(site):
    assert stored(site) == {"chapters/a.html.gz", "b.js.gz"}
    assert gzip.decompress((site / "chapters" / "a.html.gz").read_bytes()).decode() == LONG
    assert badly_compressed(site) == []


def test_what_is_compressed_changes_only_with_its_file(site):
    before = (site / "b.js.gz").stat().st_mtime_ns
    (site / "chapters" / "a.html").write_text(LONG + "new", encoding="utf-8")
    (site / "chapters" / "old.html.gz").write_bytes(b"")
    compress(site)
    assert stored(site) == {"chapters/a.html.gz", "b.js.gz"}
    assert gzip.decompress((site / "chapters" / "a.html.gz").read_bytes()).endswith(b"new")
    assert (site / "b.js.gz").stat().st_mtime_ns == before
    (site / "b.js.gz").write_bytes((site / "b.js.gz").read_bytes()[:-20])  # cut off
    compress(site)
    assert badly_compressed(site) == []


def test_a_page_that_was_changed_afterwards_is_named_and_so_is_what_has_no_file(site):
    (site / "chapters" / "a.html").write_text(LONG + "new", encoding="utf-8")
    (site / "b.js").unlink()
    first, second = badly_compressed(site)
    assert first.startswith("chapters/a.html is not in a.html.gz as it is")
    assert second == "b.js.gz is of no file that is there"
    (site / "chapters" / "a.html.gz").unlink()
    assert badly_compressed(site)[0] == first


def got(address, **headers):
    with urllib.request.urlopen(urllib.request.Request(address, headers=headers)) as answer:
        return answer.headers, answer.read()


def test_a_browser_gets_what_it_can_read(site):
    server, base = serve(site)
    try:
        headers, body = got(f"{base}chapters/a.html?highlight=x", **{"Accept-Encoding": "br, gzip"})
        assert (headers["Content-Encoding"], headers["Vary"]) == ("gzip", "Accept-Encoding")
        assert headers["Content-Type"].startswith("text/html")
        assert int(headers["Content-Length"]) == len(body) < len(LONG)
        assert gzip.decompress(body).decode() == LONG
        for address, accepted in (("chapters/a.html", "br"), ("c.woff2", "gzip"), ("", "gzip")):
            headers, body = got(base + address, **{"Accept-Encoding": accepted})
            assert headers["Content-Encoding"] is None
            assert body == (site / (address or "index.html")).read_bytes()
        # nothing beside the folder is sent in its place
        (site.parent / "site.gz").write_bytes(gzip.compress(b"a secret"))
        assert got(base, **{"Accept-Encoding": "gzip"})[1] == b"<p>short</p>"
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("port", ["many", "99999"])
def test_a_port_that_cannot_be_is_told_in_a_line(port):
    command = [sys.executable, "-m", "website", "serve", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"PORT={port}: ")
    assert done.stderr.count("\n") == 1
