"""The server of the built site: what a browser gets, and what is said where nothing can listen."""

import subprocess
import sys
import urllib.request
from urllib.error import HTTPError

import pytest

from website import ROOT


def test_what_is_not_there_is_answered_with_the_sites_own_page(tmp_path, served):
    (tmp_path / "a.html").write_text("<p>a</p>", encoding="utf-8")
    (tmp_path / "404.html").write_text("<p>lost</p>", encoding="utf-8")
    base = served(tmp_path)
    with urllib.request.urlopen(f"{base}a.html?highlight=x") as answer:
        assert answer.read() == b"<p>a</p>"
    with pytest.raises(HTTPError) as lost:
        urllib.request.urlopen(f"{base}chapters/b.html")
    assert (lost.value.code, lost.value.read()) == (404, b"<p>lost</p>")


@pytest.mark.parametrize("port", ["many", "99999"])
def test_a_port_that_cannot_be_is_told_in_a_line(port):
    command = [sys.executable, "-m", "website", "serve", port]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr.startswith(f"PORT={port}: ")
    assert done.stderr.count("\n") == 1
