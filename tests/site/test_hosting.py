"""What a host sends: each file, and the compressed one beside it where a browser can read that."""

import gzip
import subprocess
import sys
import urllib.request

import pytest

from website import ROOT
from website.hosting import compress, serve

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
