"""What a host needs to send the site: its files, and beside each one of text the same compressed.

A phone far away waits for bytes, and text is a fifth as long when it is compressed. Some hosts do
that by themselves. Others send ``page.html.gz`` where there is one (nginx's ``gzip_static``), as
``make serve`` does.
"""

import gzip
import http.server
import sys
import threading
from functools import partial
from pathlib import Path

from sphinx.application import Sphinx

TEXT = frozenset((".html", ".css", ".js", ".json", ".svg", ".tsv", ".txt", ".xml"))
AT_LEAST = 1400  # bytes: what is shorter goes in one packet


def compressed_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.gz")


def worth_it(site: Path) -> list[Path]:
    """The files of a site that have a compressed one beside them."""
    files = (path for path in sorted(site.rglob("*")) if path.suffix in TEXT)
    return [path for path in files if path.is_file() and path.stat().st_size >= AT_LEAST]


def compress(site: Path) -> None:
    """Writes what is missing or old, and removes what an older build has left."""
    wanted = set()
    for path in worth_it(site):
        to, text = compressed_of(path), path.read_bytes()
        wanted.add(to)
        if not holds(to, text):
            to.write_bytes(gzip.compress(text, mtime=0))
    for left in set(site.rglob("*.gz")) - wanted:
        left.unlink()


def holds(path: Path, text: bytes) -> bool:
    """Whether a compressed file is there, and is this text's."""
    try:
        return gzip.decompress(path.read_bytes()) == text
    except (OSError, EOFError):  # there is none, or it is cut off
        return False


def badly_compressed(site: Path) -> list[str]:
    """What a host that sends compressed files would send otherwise than the files say."""
    files = worth_it(site)
    strangers = sorted(set(site.rglob("*.gz")) - {compressed_of(path) for path in files})
    return [
        f"{path.relative_to(site)} is not in {path.name}.gz as it is: make book writes it"
        for path in files
        if not holds(compressed_of(path), path.read_bytes())
    ] + [f"{path.relative_to(site)} is of no file that is there" for path in strangers]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Sends a file, or the compressed one beside it to a browser that can read it."""

    protocol_version = "HTTP/1.1"  # a connection stays open for the next file

    def send_head(self):
        path = Path(self.translate_path(self.path))
        packed = compressed_of(path)
        there = path.is_file() and packed.is_file()
        if not there or "gzip" not in self.headers.get("Accept-Encoding", ""):
            return super().send_head()
        file = packed.open("rb")
        self.send_response(200)
        self.send_header("Content-Type", self.guess_type(path))
        self.send_header("Content-Encoding", "gzip")
        self.send_header("Vary", "Accept-Encoding")
        self.send_header("Content-Length", str(packed.stat().st_size))
        self.end_headers()
        return file

    def log_message(self, *args) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_) -> None:
        """Silence: a browser may leave a page before all of a file has come."""


def serve(folder: Path, port: int = 0) -> tuple[Server, str]:
    """A server of a folder in a thread of its own, and its address. Port 0 is any free one."""
    server = Server(("127.0.0.1", port), partial(Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


def serve_until_stopped(site: Path, port: str) -> int:
    """What ``make serve`` does; 2 if nothing can listen there."""
    try:
        server, base = serve(site, int(port))
    except (ValueError, OverflowError, OSError) as error:
        print(f"PORT={port}: {error}", file=sys.stderr)
        return 2
    print(f"{base}  (Ctrl-C stops)", flush=True)
    try:
        threading.Event().wait()
    except KeyboardInterrupt:
        server.shutdown()
        server.server_close()
    return 0


def compress_built_site(app: Sphinx, exception: Exception | None) -> None:
    if exception is None and app.builder.name == "html":
        compress(Path(app.outdir))


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("build-finished", compress_built_site, priority=990)  # once all files are there
    return {"parallel_read_safe": True, "parallel_write_safe": True}
