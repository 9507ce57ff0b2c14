"""The built site at an address of this machine: for ``make serve``, the checks and the tests."""

import http.server
import sys
import threading
from functools import partial
from pathlib import Path

from website import SITE


class Handler(http.server.SimpleHTTPRequestHandler):
    """Sends a file; for one that is not there the site's own page, as hosts do."""

    def send_error(self, code, message=None, explain=None) -> None:
        lost = Path(self.directory) / "404.html"
        if code != 404 or not lost.is_file():
            super().send_error(code, message, explain)
            return
        self.send_response(404)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(lost.stat().st_size))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(lost.read_bytes())

    def log_message(self, *args) -> None:
        pass


class Server(http.server.ThreadingHTTPServer):
    def handle_error(self, *_) -> None:
        """Silence: a browser may leave a page before all of a file has come."""


def serve(folder: Path, port: int = 0) -> tuple[Server, str]:
    """A server of a folder in a thread of its own, and its address. Port 0 is any free one."""
    server = Server(("127.0.0.1", port), partial(Handler, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}/"


def serve_until_stopped(port: str) -> int:
    """What ``make serve`` does; 2 if nothing can listen there."""
    try:
        server, base = serve(SITE, int(port))
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
