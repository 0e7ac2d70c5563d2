"""Every finished run, kept in a folder: one file per run, so that none can damage another."""

from __future__ import annotations

import os
import re
import secrets
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import (
    LARGEST_FILE_BYTES,
    KeptHeader,
    KeptRun,
    clean_name,
    decode_header,
    decode_kept,
    encode_kept,
    kept_of,
    refused,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import moment_order
from gpu_studio.core.user_file import UnusableFileError, read_own_file, write_atomically

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.benchmark.run import Run


# In the user's data folder, so that window and terminal share one history.
FOLDER_NAME = "history"
_ENDING = ".json"
_KEY = re.compile(r"[0-9A-Za-z-]{1,64}")


class HistoryEntry(msgspec.Struct, frozen=True):
    """A kept run in the list; ``key`` is its name in the history."""

    key: str
    header: KeptHeader


class RefusedFile(msgspec.Struct, frozen=True):
    """An unreadable file in the folder, with the reason as a sentence; it stays unchanged."""

    file_name: str
    reason: str


class HistoryList(msgspec.Struct, frozen=True):
    """The contents of a history: the runs, newest first, and the files that are not runs.

    ``unread_count`` is the number of older files that were not read.
    """

    entries: tuple[HistoryEntry, ...]
    refused: tuple[RefusedFile, ...]
    unread_count: int = 0


class History:
    """Keeps runs in a folder and reads them back.

    A run that cannot be saved (a full disk, no permission) waits in memory for `save_waiting`.

    Args:
        folder: created with the first run; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self.folder = folder
        self._waiting: dict[str, KeptRun] = {}

    def keep(self, run: Run, kept_at: str) -> str:
        """Keep a finished run; return its key.

        Args:
            run: a run with a result.
            kept_at: the present time in ISO 8601.

        Raises:
            StudioError: the run could not be saved, and waits in memory.
        """
        return self.add(kept_of(run, kept_at))

    def add(self, kept: KeptRun) -> str:
        """Keep a run that is already in its kept form, such as an import; otherwise as `keep`."""
        moment = "".join(character for character in kept.kept_at[:19] if character.isdecimal())
        key = f"{moment or '0'}-{secrets.token_hex(4)}"
        self._waiting[key] = kept
        self.save_waiting()
        return key

    def save_waiting(self) -> None:
        """Save the runs that are only in memory.

        Raises:
            StudioError: one could not be saved; those after it wait as well.
        """
        for key, kept in [*self._waiting.items()]:
            self._save(key, kept)
            del self._waiting[key]

    def contents(
        self, most: int | None = None, is_over: Callable[[], bool] = lambda: False
    ) -> HistoryList:
        """Return the newest runs, newest first.

        A file's name begins with the time when its run was kept. So the names are the index, and
        only the files to show are read.

        Args:
            most: the maximum number of files to read; None reads all.
            is_over: returns whether the result is no longer needed; called before each file.

        Raises:
            StudioError: the folder exists but cannot be read.
        """
        keys = self._keys()
        entries, refusals = [], []
        read = keys if most is None else keys[:most]
        for key in read:
            if is_over():
                break
            try:
                header = decode_header(read_capped(self._path(key)))
                entries.append(HistoryEntry(key, header))
            except StudioError as error:
                refusals.append(RefusedFile(f"{key}{_ENDING}", str(error)))
        entries.sort(
            key=lambda entry: (*moment_order(entry.header.kept_at), entry.key), reverse=True
        )
        return HistoryList(tuple(entries), tuple(refusals), len(keys) - len(read))

    def load(self, key: str) -> KeptRun:
        """Return a run with its samples.

        Raises:
            StudioError: there is no run of that key, or its file cannot be read.
        """
        return decode_kept(read_capped(self._path(key)))

    def rename(self, key: str, name: str) -> None:
        """Give a run a name; an empty name removes it.

        Raises:
            StudioError: there is no run of that key, or saving failed; the old file stays.
        """
        self._save(key, msgspec.structs.replace(self.load(key), name=clean_name(name)))

    def delete(self, key: str) -> None:
        """Delete a run.

        Raises:
            StudioError: its file cannot be removed.
        """
        try:
            self._path(key).unlink(missing_ok=True)
        except OSError as error:
            raise _trouble("Cannot delete the run", error) from error

    def _keys(self) -> list[str]:
        """Return the keys of all runs, newest first; a file of another name is none."""
        if self.folder is None or not self.folder.is_dir():
            return []
        try:
            names = [name for name in os.listdir(self.folder) if name.endswith(_ENDING)]
        except OSError as error:
            raise _trouble("Cannot read the history", error) from error
        keys = (name.removesuffix(_ENDING) for name in names)
        return sorted(filter(_KEY.fullmatch, keys), reverse=True)

    def _path(self, key: str) -> Path:
        # Keys come from `contents`; any other text could name a file outside the folder.
        if self.folder is None or _KEY.fullmatch(key) is None:
            raise StudioError(FailureKind.BAD_REQUEST, "There is no such run in the history.")
        return self.folder / f"{key}{_ENDING}"

    def _save(self, key: str, kept: KeptRun) -> None:
        if self.folder is None:
            return
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._path(key), encode_kept(kept), is_private=True)
        except OSError as error:
            raise _trouble("Cannot save results in the history", error) from error


def read_capped(path: Path) -> bytes:
    """Return the contents of a file of the history.

    Raises:
        StudioError: it cannot be read, is not an ordinary file, or is larger than any result.
    """
    try:
        return read_own_file(path, LARGEST_FILE_BYTES)
    except UnusableFileError as error:
        raise refused(str(error)) from error


def _trouble(what: str, error: OSError) -> StudioError:
    return StudioError(FailureKind.NOT_SAVED, f"{what}: {error.strerror or error}.")
