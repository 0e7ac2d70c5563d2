"""Unpacks wheels into a folder, file by file, each checked against the wheel's own record.

This and not pip, for three reasons: pip says nothing while it unpacks gigabytes; if a virus scanner
holds one file of twelve thousand, pip gives up on all; and pip needs the shorter paths of Windows.
The wheel's RECORD is written last, when its files have reached the disk. So a wheel with a whole
RECORD in the folder is whole, even after a power cut.
"""

from __future__ import annotations

import base64
import concurrent.futures
import contextlib
import csv
import hashlib
import io
import os
import re
import time
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from gpu_studio.builds.download import StoppedError, disk_trouble, is_held, patiently
from gpu_studio.builds.shelf import extended
from gpu_studio.core import operating_system
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.addresses import whole_number
from gpu_studio.core.builds.trouble import TroubleError, hashes_text
from gpu_studio.core.user_file import write_atomically

_CHUNK = 1 << 20
_EXECUTABLE = 0o111
_SYNCED_AT_ONCE = 8
# What Windows reads as another place or device, or writes under another name (Microsoft, "Naming
# Files, Paths, and Namespaces"). A wheel must mean the same on every system.
_ELSEWHERE = re.compile(r'[<>:"|?*\\\x00-\x1f]|[. ]$')
_DEVICE = re.compile(r"(?:con|prn|aux|nul|com[0-9¹²³]|lpt[0-9¹²³])(?:\..*)?", re.IGNORECASE)


class _DamagedError(Exception):
    """The wheel cannot be read."""


class _Entry(NamedTuple):
    path: str
    sha256: str
    size_bytes: int | None


class Unpacker:
    """Unpacks wheels into one folder.

    Args:
        folder: The folder, which is made if it is missing.
        is_over: Returns whether to stop.
        wait: Waits some seconds.
    """

    def __init__(
        self,
        folder: Path,
        is_over: Callable[[], bool] = lambda: False,
        wait: Callable[[float], None] = time.sleep,
    ) -> None:
        self._folder, self._is_over, self._wait = folder, is_over, wait

    def unpack(self, wheel: Path, on_bytes: Callable[[int], None] = lambda _bytes: None) -> None:
        """Unpack a wheel; one that is whole in the folder already is left alone.

        Args:
            wheel: The wheel.
            on_bytes: Gets the unpacked bytes of this wheel, again and again.

        Raises:
            TroubleError: A file cannot be written, or the wheel is broken.
            StoppedError: The user stopped; the wheel has no RECORD in the folder.
        """
        try:
            with _opened(wheel) as archive:
                record = _record_in(archive)
                if self._entries_of(record) is not None:
                    on_bytes(sum(one.file_size for one in archive.infolist()))
                    return
                self._unpack_all(archive, record, on_bytes)
        except _DamagedError as error:
            raise TroubleError(troubles.broken_wheel(wheel.name, str(error))) from error

    def damaged(self) -> tuple[str, ...]:
        """Return the RECORD of each wheel in the folder with a missing or changed file.

        A RECORD that cannot be read, or has lost its end, is one of them.
        """
        found = []
        for record in self._records():
            entries = self._entries_of(record)
            if entries is None or not all(map(self._is_whole, entries)):
                found.append(record)
        return tuple(found)

    def has_unlisted(self) -> bool:
        """Return whether there is a folder or file that no RECORD lists: its RECORD is gone."""
        listed = {record.partition("/")[0] for record in self._records()}
        for record in self._records():
            listed |= {entry.path.partition("/")[0] for entry in self._entries_of(record) or ()}
        with contextlib.suppress(OSError):
            found = {name for name in os.listdir(extended(self._folder)) if name != "__pycache__"}
            return not found <= listed
        return False

    def forget(self, record: str) -> None:
        """Remove a wheel's RECORD, so that `unpack` writes the wheel again."""
        with contextlib.suppress(FileNotFoundError):
            os.unlink(self._path(record))

    def require_all(self) -> None:
        """Make sure that every file is still there.

        Raises:
            TroubleError: A virus scanner removed one.
        """
        for record in self._records():
            for entry in self._entries_of(record) or ():
                path = self._path(entry.path)
                if not os.path.exists(path):
                    self.forget(record)
                    raise TroubleError(troubles.file_removed(path.removeprefix("\\\\?\\")))

    def _unpack_all(
        self, archive: zipfile.ZipFile, record: str, on_bytes: Callable[[int], None]
    ) -> None:
        with _readable():
            listed = archive.read(record).decode("utf-8")
        hashes = {one.path: one.sha256 for one in _entries(listed)}
        done = 0
        written = []
        for info in archive.infolist():
            if self._is_over():
                raise StoppedError
            place = _place_of(info.filename)
            if info.is_dir() or info.filename == record or place is None:
                continue
            sha256 = self._write(archive, info, place, hashes.get(info.filename, ""))
            written.append((place, sha256, info.file_size))
            done += info.file_size
            on_bytes(done)
        self._sync([place for place, _, _ in written])
        self._write_record(record, written)

    def _write(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str, sha256: str
    ) -> str:
        """Write a file and return its SHA-256."""
        path = self._path(place)

        def write() -> str:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            found = _copied(archive, info, path)
            if sha256 and found != sha256:
                raise TroubleError(troubles.changed_file(place, hashes_text(sha256, found)))
            if info.external_attr >> 16 & _EXECUTABLE:
                os.chmod(path, 0o755)
            return found

        try:
            # A scanner holds the file, or has removed it while it was written.
            return patiently(
                write, self._wait, lambda one: is_held(one) or isinstance(one, FileNotFoundError)
            )
        except OSError as error:
            raise TroubleError(disk_trouble(error, path, info.file_size)) from error

    def _sync(self, places: Sequence[str]) -> None:
        """Wait until the files have reached the disk: a power cut must not take them later."""
        sync_all = getattr(os, "sync", None)  # Windows has none
        if sync_all is not None and operating_system.system() == "Linux":
            sync_all()  # sync(2): on Linux, it returns when everything is written
            return

        def sync(place: str) -> None:
            with contextlib.suppress(FileNotFoundError):  # `require_all` names it
                file = os.open(self._path(place), os.O_RDWR | getattr(os, "O_BINARY", 0))
                try:
                    os.fsync(file)
                finally:
                    os.close(file)

        def patient(place: str) -> None:
            patiently(lambda: sync(place), self._wait)

        try:
            with concurrent.futures.ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
                for _ in pool.map(patient, places):
                    if self._is_over():
                        raise StoppedError
        except OSError as error:
            raise TroubleError(disk_trouble(error, str(self._folder), None)) from error

    def _write_record(self, record: str, written: list[tuple[str, str, int]]) -> None:
        """Write a RECORD with the places that the files really have."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for place, sha256, size_bytes in written:
            writer.writerow((place, f"sha256={sha256}", size_bytes))
        writer.writerow((record, "", ""))
        path = self._path(record)
        try:
            write_atomically(Path(path), text.getvalue().encode("utf-8"))
        except OSError as error:
            raise TroubleError(disk_trouble(error, path, None)) from error

    def _records(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(extended(self._folder))):
                record = f"{name}/RECORD"
                if name.endswith(".dist-info") and os.path.exists(self._path(record)):
                    yield record

    def _entries_of(self, record: str) -> list[_Entry] | None:
        """Return the files of a RECORD in the folder; None if there is none that is whole.

        Its last line is its own: without it, its end was lost.
        """
        try:
            with open(self._path(record), encoding="utf-8", newline="") as file:
                text = file.read()
            entries = _entries(text)
        except (OSError, UnicodeDecodeError, _DamagedError):
            return None
        if not entries or entries[-1] != _Entry(record, "", None) or not text.endswith("\n"):
            return None
        return entries[:-1]

    def _is_whole(self, entry: _Entry) -> bool:
        if self._is_over():
            raise StoppedError
        path = self._path(entry.path)
        try:
            if os.path.getsize(path) != entry.size_bytes:
                return False
            with open(path, "rb") as file:
                return not entry.sha256 or _hash_of(file) == entry.sha256
        except OSError:
            return False

    def _path(self, place: str) -> str:
        return extended(self._folder.joinpath(*place.split("/")))


def unpacked_bytes(wheel: Path) -> int:
    """Return the size of a wheel's files; 0 for what is no wheel."""
    try:
        with _opened(wheel) as archive:
            return sum(one.file_size for one in archive.infolist())
    except (OSError, _DamagedError):
        return 0


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    """Turn whatever reading a damaged archive raises into one error.

    `zipfile` and the decompressors raise what they meet: zlib.error, EOFError, struct.error,
    NotImplementedError for an unknown method, RuntimeError for a password, OSError for a place
    before the file's beginning, and more.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        raise _DamagedError(f"{type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _opened(wheel: Path) -> Iterator[zipfile.ZipFile]:
    with open(wheel, "rb") as file:
        with _readable():
            archive = zipfile.ZipFile(file)
        with archive:
            yield archive


def _record_in(archive: zipfile.ZipFile) -> str:
    for name in archive.namelist():
        folder, _, rest = name.partition("/")
        if folder.endswith(".dist-info") and rest == "RECORD":
            return name
    raise _DamagedError("it has no RECORD")


def _place_of(name: str) -> str | None:
    """Return the place of a file below the folder; None if it has none here.

    A wheel may have files for other places in ``NAME.data`` (PEP 427): modules belong here, and so
    do the libraries that Intel's packages put beside Python's own. Scripts, headers and manual
    pages are of no use to the engine.
    """
    parts = name.removesuffix("/").split("/")
    if any(not part or _ELSEWHERE.search(part) or _DEVICE.fullmatch(part) for part in parts):
        raise _DamagedError(f"it has a file with a name that leads elsewhere: {name!r}")
    if not parts[0].endswith(".data"):
        return name
    is_library = parts[1:3] == ["data", "lib"] or parts[1:4] == ["data", "Library", "bin"]
    belongs_here = is_library or parts[1:2] in (["purelib"], ["platlib"])
    return "/".join(parts[2:]) if belongs_here and len(parts) > 2 else None


def _entries(record: str) -> list[_Entry]:
    found = []
    with _readable():
        for row in csv.reader(io.StringIO(record, newline="")):
            if len(row) < 3:
                continue
            kind, _, digest = row[1].partition("=")
            is_known = kind == "sha256"
            found.append(_Entry(row[0], _hex(digest) if is_known else "", whole_number(row[2])))
    return found


def _hex(digest: str) -> str:
    """Return a hash of a RECORD, or of ours, in hexadecimal digits."""
    if len(digest) == 64:
        return digest
    return base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()


def _copied(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> str:
    total = hashlib.sha256()
    with open(path, "wb") as target:
        for chunk in _content(archive, info):
            total.update(chunk)
            target.write(chunk)
    return total.hexdigest()


def _content(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Iterator[bytes]:
    with _readable():
        source = archive.open(info)
    with source:
        while True:
            with _readable():
                chunk = source.read(_CHUNK)
            if not chunk:
                return
            yield chunk


def _hash_of(file: io.BufferedReader) -> str:
    total = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        total.update(chunk)
    return total.hexdigest()
