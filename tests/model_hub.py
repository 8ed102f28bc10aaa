"""A model hub on the loopback: the part of its protocol that fetches one file, and ways
to fail.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

COMMIT = "0123456789abcdef0123456789abcdef01234567"


@dataclass
class Hub:
    """The contents of a hub, and the requests to it: method, path and range of each.

    ``breaks`` are the numbers of bytes after which the next answers end, first to last.
    """

    repository: str
    name: str
    content: bytes
    url: str = ""
    #: The hash of the content according to the hub.
    etag: str = ""
    breaks: list[int] = field(default_factory=list)
    asked: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def ranges(self) -> list[str]:
        """The ranges of the requests for the content itself."""
        return [
            part
            for method, path, part in self.asked
            if method == "GET" and path.startswith("/files/")
        ]


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve a hub; its ``url`` is the value for HF_ENDPOINT."""
    hub.etag = hub.etag or hashlib.sha256(hub.content).hexdigest()

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.answer(body=False)

        def do_GET(self) -> None:
            self.answer(body=True)

        def answer(self, body: bool) -> None:
            hub.asked.append((self.command, self.path, self.headers["Range"] or ""))
            at, _, rest = self.path[1:].partition("/resolve/")
            revision, _, name = rest.partition("/")
            if self.path.startswith("/files/"):
                self.content(body)
            elif at != hub.repository or name != hub.name:
                self.send_response(404)
                self.send_header("X-Error-Code", "EntryNotFound")
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("Content-Length", "0")
                self.end_headers()
            else:
                # A large file is elsewhere, but the hub itself describes it.
                self.send_response(302)
                elsewhere = hub.url.replace("127.0.0.1", "localhost")
                self.send_header("Location", f"{elsewhere}/files/{revision}/{name}")
                self.send_header("X-Repo-Commit", COMMIT)
                self.send_header("X-Linked-Etag", f'"{hub.etag}"')
                self.send_header("X-Linked-Size", str(len(hub.content)))
                self.send_header("Content-Length", "0")
                self.end_headers()

        def content(self, body: bool) -> None:
            part = self.headers["Range"] or "bytes=0-"
            start = int(part.removeprefix("bytes=").partition("-")[0])
            content = hub.content[start:]
            self.send_response(206 if start else 200)
            self.send_header("ETag", f'"{hub.etag}"')
            self.send_header("Content-Length", str(len(content)))
            if start:
                last = len(hub.content) - 1
                self.send_header(
                    "Content-Range", f"bytes {start}-{last}/{len(hub.content)}"
                )
            self.end_headers()
            if body:
                self.wfile.write(content[: hub.breaks.pop(0) if hub.breaks else None])

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        hub.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield hub
        server.shutdown()
        thread.join()
