"""Downloads one file so that nothing is lost: it resumes, it checks, and it says what went wrong.

The part of a file stays on the disk (``NAME.part``, with a small ``NAME.part.json`` beside it), so
a broken line, a pause or a restart of the program continues there. A server that cannot continue
sends the whole file again. A file counts only after its SHA-256 matched. A server is not trusted:
it cannot lead to a weaker address, send more than was announced, or hold a line without sending.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import http.client
import queue
import socket
import ssl
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import msgspec

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.addresses import is_wheel_name, whole_number, why_refused
from gpu_studio.core.builds.record import LARGEST_FILE_BYTES
from gpu_studio.core.builds.trouble import Trouble, TroubleError, hashes_text
from gpu_studio.core.user_file import UnusableFileError, read_own_text, write_atomically

_CHUNK = 1 << 18
_TIMEOUT_S = 30.0
# Of the timeouts of a line: so long may the head of an answer drip.
_DRIPPING_TIMEOUTS = 4
# So often a wait for a server looks whether you stopped.
_LOOK_S = 0.1
# A line that brings less in this time is a broken one: a server that sends a byte now and then.
_LEAST_BYTES = 1 << 14
# PyTorch's page has 0.6 MB, PyPI's longest some MB.
_PAGE_BYTES = 16 << 20
_PAGE_S = 120.0
# For a file of unknown size: several times the largest wheel.
_MOST_BYTES = 8_000_000_000
# Waits between attempts that brought nothing; an attempt that brought bytes starts them again.
_WAITS_S = (1.0, 2.0, 4.0, 8.0, 15.0)
_ERROR_DISK_FULL = 112  # of winerror.h
_ERRORS_HELD = (32, 33)  # ERROR_SHARING_VIOLATION and ERROR_LOCK_VIOLATION of winerror.h
# Between attempts at a file that another program holds: a virus scanner looks for seconds.
_HELD_WAITS_S = (0.2, 0.5, 1.0, 2.0, 4.0, 8.0)
_Result = TypeVar("_Result")
_AGENT = {"User-Agent": "gpu-studio", "Accept-Encoding": "identity"}


class StoppedError(Exception):
    """The user paused or stopped; the parts stay."""


class WheelFile(msgspec.Struct, frozen=True):
    """A file to download.

    Attributes:
        name: Its file name.
        url: Its address, ``https:`` or ``file:``.
        sha256: The published hash; "" if there is none.
        size_bytes: Its size; None if unknown.

    Raises:
        ValueError: The name is no wheel's.
    """

    name: str
    url: str
    sha256: str = ""
    size_bytes: int | None = None

    def __post_init__(self) -> None:
        if not is_wheel_name(self.name):
            raise ValueError(f"{self.name!r} is not the file name of a wheel")

    @property
    def local_path(self) -> Path | None:
        """Its path, if it is on this PC already."""
        parts = urlsplit(self.url)
        if parts.scheme != "file":
            return None
        return Path(urllib.request.url2pathname(parts.path))


class _Mark(msgspec.Struct):
    """What a part is of: "" for what is unknown."""

    url: str = ""
    etag: str = ""
    sha256: str = ""


class _Redirects(urllib.request.HTTPRedirectHandler):
    """Follows a server to another address, but never to a weaker one."""

    def redirect_request(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any, newurl: str
    ) -> urllib.request.Request | None:
        require_followed(newurl, (req.full_url,))
        return super().redirect_request(req, fp, code, msg, headers, newurl)

    def http_error_302(
        self, req: urllib.request.Request, fp: Any, code: int, msg: str, headers: Any
    ) -> Any:
        try:
            return super().http_error_302(req, fp, code, msg, headers)
        except (ValueError, TroubleError):
            fp.close()
            raise

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302


class Downloader:
    """Downloads files into a folder.

    Args:
        folder: The folder, which is made if it is missing.
        is_over: Returns whether to stop.
        wait: Waits some seconds.
        on_broken: Called before each wait for a broken line.
        timeout_s: How long a server may be silent.
        clock: Returns seconds that never go back.
    """

    def __init__(
        self,
        folder: Path,
        is_over: Callable[[], bool] = lambda: False,
        wait: Callable[[float], None] = time.sleep,
        on_broken: Callable[[], None] = lambda: None,
        timeout_s: float = _TIMEOUT_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.folder, self._timeout_s = folder, timeout_s
        self._is_over, self._wait, self._on_broken = is_over, wait, on_broken
        self._clock = clock
        self._opener = urllib.request.build_opener(_Redirects)

    def begin(self) -> None:
        """Make the folder.

        Raises:
            TroubleError: This user cannot write there.
        """
        probe = self.folder / "writable"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            probe.write_bytes(b"")
            probe.unlink()
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(self.folder), None)) from error

    def kept_bytes(self, file: WheelFile) -> int:
        """Return how many bytes of a file are on the disk already."""
        if file.local_path is not None:
            return file.size_bytes or 0
        for path in (self.folder / file.name, self._part(file)):
            with contextlib.suppress(OSError):
                return path.stat().st_size
        return 0

    def content(self, url: str, sha256: str = "") -> bytes:
        """Return the content of a small file, with as many attempts as a large one has.

        Args:
            url: Its address.
            sha256: Its published hash; "" if there is none.

        Raises:
            TroubleError: It cannot be had, is larger than any page, or another one.
            StoppedError: The user stopped.
        """
        waits = list(_WAITS_S[:3])
        while True:
            self._stop_if_over()
            try:
                with self._opened(url, {}) as answer:
                    content = self._page(answer, url)
                if sha256 and hashlib.sha256(content).hexdigest() != sha256:
                    raise _untrusted(url, "a file there has another hash than the list says")
                return content
            except (OSError, http.client.HTTPException) as error:
                self._wait_or_give_up(waits, error, url)

    def size(self, url: str) -> int | None:
        """Return the size of a file on a server; None if the server does not say."""
        self._stop_if_over()
        try:
            with self._opened(url, {}, method="HEAD") as answer:
                return whole_number(answer.headers["Content-Length"])
        except urllib.error.HTTPError as error:
            error.close()
        except (OSError, http.client.HTTPException):
            pass
        return None

    def fetch(self, file: WheelFile, on_bytes: Callable[[int], None] = lambda _bytes: None) -> Path:
        """Return the path of a whole and checked file; download what is missing of it.

        Args:
            file: The file.
            on_bytes: Gets the number of bytes of this file that are there, again and again. It may
                become smaller: a changed file starts again.

        Raises:
            TroubleError: It cannot be had.
            StoppedError: The user stopped; the part stays.
        """
        local = file.local_path
        path = local or self.folder / file.name
        for is_last in (False, True):
            found = self._hash(path) if path.exists() else ""
            if not found and local is None:
                self._download(file, on_bytes)
                found = self._hash(path)
            if found and found == (file.sha256 or found):
                on_bytes(path.stat().st_size)
                return path
            if local is not None:
                raise TroubleError(troubles.other_file(file.name, hashes_text(file.sha256, found)))
            # Changed on its way, or removed: once is an accident.
            self._remove(path)
            if is_last and not found:
                raise TroubleError(troubles.file_removed(str(path)))
        raise TroubleError(troubles.changed_file(file.name, hashes_text(file.sha256, found)))

    def _download(self, file: WheelFile, on_bytes: Callable[[int], None]) -> None:
        """Bring the part to its end, whatever the line does, and name it as the file."""
        waits = list(_WAITS_S)
        while True:
            self._stop_if_over()
            before = self._part_size(file)
            try:
                if self._continue(file, on_bytes):
                    break
                error: Exception = http.client.IncompleteRead(b"")
            except TroubleError:
                raise
            except (OSError, http.client.HTTPException) as raised:
                error = raised
            if self._part_size(file) >= before + _LEAST_BYTES:
                waits = list(_WAITS_S)
            self._wait_or_give_up(waits, error, file.url)
        self._name(file)

    def _continue(self, file: WheelFile, on_bytes: Callable[[int], None]) -> bool:
        """Ask for the missing bytes and write them; return whether the file is whole."""
        part, mark = self._part(file), self._read_mark(file)
        is_same = mark.url == file.url
        # Another server's file with the same published hash has the same bytes: the end proves it.
        is_equal = bool(file.sha256) and mark.sha256 == file.sha256
        start = self._part_size(file) if is_same or is_equal else 0
        headers = {}
        if start:
            headers["Range"] = f"bytes={start}-"
            if mark.etag and is_same:
                headers["If-Range"] = mark.etag
        try:
            answer = self._opened(file.url, headers)
        except urllib.error.HTTPError as error:
            if error.code != http.client.REQUESTED_RANGE_NOT_SATISFIABLE:
                raise
            error.close()
            # Nothing is left to send, or the file has become shorter.
            whole = error.headers.get("Content-Range", "").rpartition("/")[2]  # bytes */1234
            if start and start == whole_number(whole):
                return True
            self._remove(part)
            return False
        with answer:
            sent_from = _start_in(answer)
            if sent_from not in (0, start):  # some other part: useless
                self._remove(part)
                return False
            start = sent_from
            length = whole_number(answer.headers.get("Content-Length"))
            total = None if length is None else start + length
            self._write_mark(file, answer.headers.get("ETag", ""))
            return self._write(file, answer, start, total, on_bytes)

    def _write(
        self, file: WheelFile, answer: Any, start: int, total: int | None,
        on_bytes: Callable[[int], None],
    ) -> bool:  # fmt: skip
        part = self._part(file)
        missing = None if total is None else total - start
        most = _MOST_BYTES if file.size_bytes is None else file.size_bytes
        if total is not None and total > most:
            self._remove(part)
            raise TroubleError(troubles.larger_file(file.name, f"over {most} bytes"))
        with self._opened_part(part, start, missing) as out:
            done = start
            on_bytes(done)
            for chunk in self._chunks(answer):
                if done + len(chunk) > most:
                    break
                try:
                    out.write(chunk)
                except OSError as error:
                    left = None if total is None else total - done
                    raise TroubleError(disk_trouble(error, str(part), left)) from error
                done += len(chunk)
                on_bytes(done)
                self._stop_if_over()
            else:
                return total is None or done == total
        self._remove(part)
        raise TroubleError(troubles.larger_file(file.name, f"over {most} bytes"))

    def _page(self, answer: Any, url: str) -> bytes:
        """Return the content of a page.

        Raises:
            TroubleError: It is larger than any page.
            TimeoutError: It takes longer than any page.
            IncompleteRead: The line broke.
        """
        begun_s, parts, size = self._clock(), [], 0
        for chunk in self._chunks(answer):
            parts.append(chunk)
            size += len(chunk)
            if size > _PAGE_BYTES:
                raise _untrusted(url, "it is larger than any list of packages")
            if self._clock() - begun_s > _PAGE_S:
                raise TimeoutError("the page did not end")
            self._stop_if_over()
        total = whole_number(answer.headers.get("Content-Length"))
        if total is not None and size < total:
            raise http.client.IncompleteRead(b"", total - size)
        return b"".join(parts)

    def _chunks(self, answer: Any) -> Iterator[bytes]:
        """Yield what arrives, as it arrives.

        Raises:
            TimeoutError: Next to nothing arrives.
        """
        since_s, arrived = self._clock(), 0
        while chunk := answer.read1(_CHUNK):
            yield chunk
            arrived += len(chunk)
            if self._clock() - since_s >= self._timeout_s:
                if arrived < _LEAST_BYTES:
                    raise TimeoutError(f"{arrived} bytes in {self._timeout_s:.0f} s")
                since_s, arrived = self._clock(), 0

    def _opened_part(self, part: Path, start: int, missing: int | None) -> Any:
        def opened() -> Any:
            # Unbuffered: what was counted is on the disk, however this process ends.
            out = open(part, "r+b" if start else "wb", buffering=0)  # noqa: SIM115
            out.seek(start)
            return out

        try:
            return patiently(opened, self._wait)
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(part), missing)) from error

    def _name(self, file: WheelFile) -> None:
        part, path = self._part(file), self.folder / file.name
        try:
            patiently(lambda: part.replace(path), self._wait, _is_there)
        except FileNotFoundError as error:
            raise TroubleError(troubles.file_removed(str(part))) from error
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(path), None)) from error
        self._remove(self._mark(file))

    def _hash(self, path: Path) -> str:
        """Return the SHA-256 of a file; "" if it is gone."""

        def hashed() -> str:
            total = hashlib.sha256()
            with open(path, "rb") as file:
                while chunk := file.read(_CHUNK):
                    total.update(chunk)
                    self._stop_if_over()
            return total.hexdigest()

        try:
            return patiently(hashed, self._wait, _is_there)
        except FileNotFoundError:
            return ""
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(path), None)) from error

    def _opened(self, url: str, headers: dict[str, str], method: str = "GET") -> Any:
        try:
            request = urllib.request.Request(url, headers=_AGENT | headers, method=method)
            return self._answer(lambda: self._opener.open(request, timeout=self._timeout_s))
        # The address, or the one of a redirect.
        except (ValueError, http.client.InvalidURL) as error:
            raise _untrusted(url, "an address in it is none") from error

    def _answer(self, opened: Callable[[], Any]) -> Any:
        """Open a line in a thread: one whose head drips never meets the socket's timeout."""
        said: queue.SimpleQueue[Any] = queue.SimpleQueue()
        is_left = threading.Event()

        def work() -> None:
            try:
                answer = opened()
            except Exception as error:
                said.put(error)
                return
            if is_left.is_set():
                answer.close()
            else:
                said.put(answer)

        threading.Thread(target=work, daemon=True).start()
        end_s = self._clock() + _DRIPPING_TIMEOUTS * self._timeout_s
        try:
            while self._clock() <= end_s:
                self._stop_if_over()
                with contextlib.suppress(queue.Empty):
                    answer = said.get(timeout=_LOOK_S)
                    if isinstance(answer, Exception):
                        raise answer
                    return answer
            raise TimeoutError("an answer dripped without end")
        finally:
            is_left.set()

    def _wait_or_give_up(self, waits: list[float], error: Exception, url: str) -> None:
        trouble = network_trouble(error, url)
        if isinstance(error, urllib.error.HTTPError):
            error.close()
        if not waits or not _may_pass(error):
            raise TroubleError(trouble) from error
        self._on_broken()
        self._wait(waits.pop(0))
        self._stop_if_over()

    def _stop_if_over(self) -> None:
        if self._is_over():
            raise StoppedError

    def _part(self, file: WheelFile) -> Path:
        return self.folder / f"{file.name}.part"

    def _mark(self, file: WheelFile) -> Path:
        return self.folder / f"{file.name}.part.json"

    def _part_size(self, file: WheelFile) -> int:
        try:
            return self._part(file).stat().st_size
        except OSError:
            return 0

    def _read_mark(self, file: WheelFile) -> _Mark:
        with contextlib.suppress(UnusableFileError, msgspec.MsgspecError, RecursionError):
            text = read_own_text(self._mark(file), LARGEST_FILE_BYTES)
            return msgspec.json.decode(text, type=_Mark)
        return _Mark()

    def _write_mark(self, file: WheelFile, etag: str) -> None:
        # A weak ETag promises no equal bytes: RFC 9110, section 13.1.5.
        etag = "" if etag.startswith("W/") else etag
        content = msgspec.json.encode(_Mark(file.url, etag, file.sha256))
        try:
            patiently(lambda: write_atomically(self._mark(file), content), self._wait)
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(self.folder), None)) from error

    def _remove(self, path: Path) -> None:
        with contextlib.suppress(OSError):
            path.unlink()


def require_followed(url: str, named: tuple[str, ...]) -> None:
    """Refuse a link or redirect that no honest index has.

    Args:
        url: Where it leads.
        named: As for `why_refused`.

    Raises:
        TroubleError: It leads to a weaker address, or to this PC.
    """
    if why := why_refused(url, named):
        raise _untrusted(named[0], f"a link in it is refused, because {why}", url)


def _untrusted(url: str, why: str, detail: str = "") -> TroubleError:
    try:
        host = urlsplit(url).hostname or url
    except ValueError:
        host = url
    return TroubleError(troubles.untrusted_index(host, detail or url, why=why))


def is_held(error: OSError) -> bool:
    """Return whether another program holds a file: it may let go."""
    code = getattr(error, "winerror", None)
    return code in _ERRORS_HELD or isinstance(error, PermissionError)


def patiently(
    work: Callable[[], _Result],
    wait: Callable[[float], None],
    may_pass: Callable[[OSError], bool] = is_held,
) -> _Result:
    """Do something to a file, and again after a while if another program holds the file.

    Args:
        work: What to do; it begins anew each time.
        wait: Waits some seconds.
        may_pass: Returns whether another attempt may succeed after an error.

    Raises:
        OSError: Of the last attempt.
    """
    for seconds in _HELD_WAITS_S:
        try:
            return work()
        except OSError as error:
            if not may_pass(error):
                raise
        wait(seconds)
    return work()


def disk_trouble(error: OSError, path: str, missing_bytes: int | None) -> Trouble:
    """Return an error of the disk in words.

    Args:
        error: The error.
        path: The file or folder.
        missing_bytes: The bytes that were still to be written; None if unknown.
    """
    detail = str(error)
    if error.errno in (errno.ENOSPC, errno.EDQUOT) or (
        getattr(error, "winerror", None) == _ERROR_DISK_FULL
    ):
        return troubles.disk_full(str(Path(path).parent), missing_bytes, detail)
    if getattr(error, "winerror", None) in _ERRORS_HELD:
        return troubles.file_held(path, detail)
    if isinstance(error, FileNotFoundError):
        return troubles.file_removed(path)
    if isinstance(error, PermissionError) and Path(path).is_file():
        return troubles.file_held(path, detail)
    return troubles.no_write(path, detail)


def network_trouble(error: Exception, url: str, proxies: dict[str, str] | None = None) -> Trouble:
    """Return an error of the network in words.

    Args:
        error: From `urllib` or `http.client`.
        url: The address.
        proxies: The system's proxies, by scheme; None asks the system.
    """
    parts = urlsplit(url)
    host = parts.hostname or url
    if proxies is None:
        proxies = {} if _is_bypassed(host) else urllib.request.getproxies()
    proxy = proxies.get(parts.scheme, "")
    detail = f"{url}\n{type(error).__name__}: {error}"
    if isinstance(error, urllib.error.HTTPError):
        if error.code == http.client.PROXY_AUTHENTICATION_REQUIRED:
            return troubles.proxy_refused(_without_password(proxy), detail)
        return troubles.server_refused(host, error.code, detail)
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return troubles.untrusted(host, detail)
    if "Tunnel connection failed" in str(reason) or (
        proxy and isinstance(reason, (socket.gaierror, ConnectionRefusedError))
    ):
        return troubles.proxy_refused(_without_password(proxy), detail)
    if isinstance(reason, (http.client.HTTPException, ConnectionResetError, BrokenPipeError)):
        return troubles.broken_line(host, detail)
    return troubles.no_network(host, detail)


def _is_bypassed(host: str) -> bool:
    try:
        return bool(urllib.request.proxy_bypass(host))
    except OSError:
        return False


def _without_password(proxy: str) -> str:
    return proxy.rpartition("@")[2].removeprefix("http://").rstrip("/") or "of this PC"


def _is_there(error: OSError) -> bool:
    """Return whether a file that could not be used may be had later."""
    return not isinstance(error, FileNotFoundError)


def _may_pass(error: Exception) -> bool:
    """Return whether another attempt makes sense."""
    if isinstance(error, urllib.error.HTTPError):
        return error.code >= 500 or error.code in (
            http.client.REQUEST_TIMEOUT,
            http.client.TOO_MANY_REQUESTS,
        )
    return not isinstance(getattr(error, "reason", error), ssl.SSLCertVerificationError)


def _start_in(answer: Any) -> int:
    """Return the first byte that a server sends: 0 if it ignored the wish for a part."""
    if answer.status != http.client.PARTIAL_CONTENT:
        return 0
    range_text = str(answer.headers.get("Content-Range", ""))
    first = range_text.removeprefix("bytes ").partition("-")[0]
    number = whole_number(first)
    return -1 if number is None else number
