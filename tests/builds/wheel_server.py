"""A server on this PC that behaves as the bad ones do: it breaks lines, ignores Range, and lies."""

from __future__ import annotations

import contextlib
import hashlib
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING
from urllib.parse import unquote

if TYPE_CHECKING:
    from types import TracebackType


@dataclass
class Served:
    """A file of the server, and how it is sent.

    Attributes:
        content: The bytes.
        breaks_after: For each request in turn, the bytes after which the line breaks.
        statuses: For each request in turn, an error instead of the file; 0 for none.
        ignores_range: Whether it always sends everything.
        etag: Its ETag, "" for none.
        stalls: Whether it sends half and then nothing until the server ends.
        kind: Its Content-Type.
        leads_to: The address of a redirect instead of the file.
        drips: Whether it sends a byte now and then, and never ends.
        head_drips: The same of its head.
        pours: Whether it sends the content again and again, and never ends.
        length: A Content-Length of its own; "" for none at all.
    """

    content: bytes
    breaks_after: list[int] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)
    ignores_range: bool = False
    etag: str = '"one"'
    stalls: bool = False
    kind: str = "application/octet-stream"
    leads_to: str = ""
    drips: bool = False
    head_drips: bool = False
    pours: bool = False
    length: str | None = None

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()


class WheelServer:
    """Serves files on the loopback address; a context manager, before which nothing answers there.

    Attributes:
        files: By path, "/a.whl".
        asked: (method, path, value of Range) of each request.
    """

    def __init__(self) -> None:
        self.files: dict[str, Served] = {}
        self.asked: list[tuple[str, str, str]] = []
        self._ended = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                server.answer(self, is_whole=True)

            def do_HEAD(self) -> None:
                server.answer(self, is_whole=False)

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        address = ("127.0.0.1", 0)
        self._server = ThreadingHTTPServer(address, Handler, bind_and_activate=False)
        self._server.daemon_threads = True
        self._server.server_bind()
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    def ranges_of(self, path: str) -> list[str]:
        """Return the value of Range of each GET of a file."""
        return [wish for method, asked, wish in self.asked if (method, asked) == ("GET", path)]

    def __enter__(self) -> WheelServer:
        self._server.server_activate()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._ended.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def answer(self, request: BaseHTTPRequestHandler, *, is_whole: bool) -> None:
        path = unquote(request.path)
        wish = request.headers.get("Range", "")
        self.asked.append((request.command, path, wish))
        served = self.files.get(path)
        if served is None:
            self._refuse(request, 404)
            return
        if is_whole and served.statuses and (status := served.statuses.pop(0)):
            self._refuse(request, status)
            return
        if served.leads_to:
            self._refuse(request, 302, location=served.leads_to)
            return
        start = self._start_of(request, served, wish)
        if start > 0 and start >= len(served.content):
            self._refuse(request, 416, f"bytes */{len(served.content)}")
            return
        self._send(request, served, start, is_whole=is_whole)

    def _start_of(self, request: BaseHTTPRequestHandler, served: Served, wish: str) -> int:
        wanted_etag = request.headers.get("If-Range", served.etag)
        if not wish or served.ignores_range or wanted_etag != served.etag:
            return 0
        return int(wish.removeprefix("bytes=").partition("-")[0])

    def _refuse(
        self, request: BaseHTTPRequestHandler, status: int, range_text: str = "", location: str = ""
    ) -> None:
        request.send_response(status)
        if location:
            request.send_header("Location", location)
        if range_text:
            request.send_header("Content-Range", range_text)
        request.send_header("Content-Length", "0")
        request.end_headers()

    def _send(
        self, request: BaseHTTPRequestHandler, served: Served, start: int, *, is_whole: bool
    ) -> None:
        if served.head_drips:
            request.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            self._send_for_ever(request, b"x")
            return
        wish = request.headers.get("Range", "")
        last = wish.rpartition("-")[2] if not served.ignores_range else ""
        body = served.content[start : int(last) + 1 if last else None]
        request.send_response(206 if start or last else 200)
        request.send_header("Content-Type", served.kind)
        if not served.ignores_range:
            request.send_header("Accept-Ranges", "bytes")
        length_text = str(len(body)) if served.length is None else served.length
        if length_text:
            request.send_header("Content-Length", length_text)
        if start or last:
            end = start + len(body) - 1
            request.send_header("Content-Range", f"bytes {start}-{end}/{len(served.content)}")
        if served.etag:
            request.send_header("ETag", served.etag)
        request.end_headers()
        if not is_whole:
            return
        length = served.breaks_after.pop(0) if served.breaks_after else len(body)
        if served.stalls:
            length = len(body) // 2
        request.close_connection = served.length is not None
        if served.drips or served.pours:
            self._send_for_ever(request, b"x" if served.drips else body)
            return
        request.wfile.write(body[:length])
        request.wfile.flush()
        if served.stalls:
            self._ended.wait()
        if length < len(body):
            request.close_connection = True

    def _send_for_ever(self, request: BaseHTTPRequestHandler, chunk: bytes) -> None:
        request.close_connection = True
        with contextlib.suppress(OSError):
            while not self._ended.wait(0.005 if len(chunk) == 1 else 0):
                request.wfile.write(chunk)
                request.wfile.flush()
