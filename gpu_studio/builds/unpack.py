"""Unpacks wheels into a folder, file by file, each checked against the wheel's own record.

This and not pip, for three reasons: pip says nothing while it unpacks gigabytes; if a virus scanner
holds one file of twelve thousand, pip gives up on all; and pip needs the shorter paths of Windows.
The wheel's RECORD is written last, so a wheel with a RECORD in the folder is whole.
"""

from __future__ import annotations

import base64
import contextlib
import csv
import hashlib
import io
import os
import time
import zipfile
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.builds.download import StoppedError, disk_trouble
from gpu_studio.builds.held_files import is_held, patiently
from gpu_studio.builds.shelf import extended
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.trouble import TroubleError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

_CHUNK = 1 << 20
_EXECUTABLE = 0o111


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
            with zipfile.ZipFile(wheel) as archive:
                record = _record_in(archive)
                if os.path.exists(self._path(record)):
                    on_bytes(sum(one.file_size for one in archive.infolist()))
                    return
                self._unpack_all(archive, record, on_bytes)
        except (zipfile.BadZipFile, KeyError, UnicodeDecodeError) as error:
            raise TroubleError(troubles.broken_wheel(wheel.name, str(error))) from error

    def damaged(self) -> tuple[str, ...]:
        """Return the RECORD of each wheel in the folder with a missing or changed file."""
        found = []
        for record in self._records():
            if any(not self._is_whole(entry) for entry in self._entries_of(record)):
                found.append(record)
        return tuple(found)

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
            for entry in self._entries_of(record):
                path = self._path(entry.path)
                if not os.path.exists(path):
                    self.forget(record)
                    raise TroubleError(troubles.file_removed(path.removeprefix("\\\\?\\")))

    def _unpack_all(
        self, archive: zipfile.ZipFile, record: str, on_bytes: Callable[[int], None]
    ) -> None:
        hashes = {one.path: one.sha256 for one in _entries(archive.read(record).decode("utf-8"))}
        done = 0
        written = []
        for info in archive.infolist():
            if self._is_over():
                raise StoppedError
            place = _place_of(info.filename)
            if info.is_dir() or info.filename == record or place is None:
                continue
            self._write(archive, info, place, hashes.get(info.filename, ""))
            written.append((place, hashes.get(info.filename, ""), info.file_size))
            done += info.file_size
            on_bytes(done)
        self._write_record(record, written)

    def _write(
        self, archive: zipfile.ZipFile, info: zipfile.ZipInfo, place: str, sha256: str
    ) -> None:
        path = self._path(place)

        def write() -> None:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            found = _copied(archive, info, path)
            if sha256 and found != sha256:
                raise TroubleError(troubles.changed_file(place, sha256, found))
            if info.external_attr >> 16 & _EXECUTABLE:
                os.chmod(path, 0o755)

        try:
            patiently(write, self._wait, _may_be_written_later)
        except OSError as error:
            raise TroubleError(disk_trouble(error, path, info.file_size)) from error

    def _write_record(self, record: str, written: list[tuple[str, str, int]]) -> None:
        """Write a RECORD with the places that the files really have."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        for place, sha256, size_bytes in written:
            writer.writerow((place, f"sha256={sha256}" if sha256 else "", size_bytes))
        writer.writerow((record, "", ""))
        path = self._path(record)
        try:
            with open(path, "w", encoding="utf-8", newline="") as file:
                file.write(text.getvalue())
        except OSError as error:
            raise TroubleError(disk_trouble(error, path, None)) from error

    def _records(self) -> Iterator[str]:
        with contextlib.suppress(OSError):
            for name in sorted(os.listdir(extended(self._folder))):
                record = f"{name}/RECORD"
                if name.endswith(".dist-info") and os.path.exists(self._path(record)):
                    yield record

    def _entries_of(self, record: str) -> list[_Entry]:
        with open(self._path(record), encoding="utf-8") as file:
            return [one for one in _entries(file.read()) if one.path != record]

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


def _may_be_written_later(error: OSError) -> bool:
    """Return whether a scanner holds a file, or has removed it while it was written."""
    return is_held(error) or isinstance(error, FileNotFoundError)


def unpacked_bytes(wheel: Path) -> int:
    """Return the size of a wheel's files; 0 for what is no wheel."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            return sum(one.file_size for one in archive.infolist())
    except (OSError, zipfile.BadZipFile):
        return 0


def _record_in(archive: zipfile.ZipFile) -> str:
    for name in archive.namelist():
        folder, _, rest = name.partition("/")
        if folder.endswith(".dist-info") and rest == "RECORD":
            return name
    raise KeyError("it has no RECORD")


def _place_of(name: str) -> str | None:
    """Return the place of a file below the folder; None if it has none here.

    A wheel may have files for other places in ``NAME.data`` (PEP 427): modules belong here, scripts
    and manual pages are of no use to the engine.
    """
    parts = name.split("/")
    if ".." in parts or name.startswith("/") or "\\" in name or ":" in parts[0]:
        raise KeyError(f"it has a file outside of its folder: {name}")
    if not parts[0].endswith(".data"):
        return name
    return "/".join(parts[2:]) if parts[1] in ("purelib", "platlib") else None


def _entries(record: str) -> list[_Entry]:
    found = []
    for row in csv.reader(io.StringIO(record)):
        if len(row) < 3:
            continue
        kind, _, digest = row[1].partition("=")
        is_known = kind == "sha256"
        found.append(_Entry(row[0], _hex(digest) if is_known else "", _whole_number(row[2])))
    return found


def _hex(digest: str) -> str:
    """Return a hash of a RECORD, or of ours, in hexadecimal digits."""
    if len(digest) == 64:
        return digest
    return base64.urlsafe_b64decode(digest + "=" * (-len(digest) % 4)).hex()


def _whole_number(text: str) -> int | None:
    return int(text) if text.isdigit() else None


def _copied(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: str) -> str:
    total = hashlib.sha256()
    with archive.open(info) as source, open(path, "wb") as target:
        while chunk := source.read(_CHUNK):
            total.update(chunk)
            target.write(chunk)
    return total.hexdigest()


def _hash_of(file: io.BufferedReader) -> str:
    total = hashlib.sha256()
    while chunk := file.read(_CHUNK):
        total.update(chunk)
    return total.hexdigest()
