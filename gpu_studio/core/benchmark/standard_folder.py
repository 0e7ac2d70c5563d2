"""This PC's standard runs, kept in a folder: one file per run."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from gpu_studio.core.atomic_file import write_atomically
from gpu_studio.core.benchmark.standard_record import decode_standard, encode_standard
from gpu_studio.core.failure import StudioError
from gpu_studio.core.moments import moment_order
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.user_file import UnusableFileError, read_own_file

if TYPE_CHECKING:
    from pathlib import Path

    from gpu_studio.core.benchmark.standard_record import StandardRun

FOLDER_NAME = "standard"
_MOST_KEPT = 20


class StandardFolder:
    """The last standard runs of this PC; window and terminal share the folder.

    Args:
        folder: need not exist yet; None keeps the runs only in memory.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._runs: list[StandardRun] = []

    def keep(self, run: StandardRun) -> None:
        """Keep a run, and no more than the last twenty.

        Raises:
            OSError: the folder refuses it; this object keeps it nevertheless.
        """
        self._runs.append(run)
        if self._folder is None:
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        name = "".join(letter for letter in run.made_at if letter.isascii() and letter.isalnum())
        write_atomically(self._folder / f"{name}.json", encode_standard(run))
        files = sorted(self._folder.glob("*.json"))
        for old in files[:-_MOST_KEPT]:
            with contextlib.suppress(OSError):
                old.unlink()

    def newest(self) -> StandardRun | None:
        """Return the newest run; None if there is none. A file that cannot be read is left out."""
        runs = [*self._runs, *self._read()]
        return max(runs, key=lambda run: moment_order(run.made_at), default=None)

    def _read(self) -> list[StandardRun]:
        runs: list[StandardRun] = []
        if self._folder is None:
            return runs
        with contextlib.suppress(OSError):
            for path in sorted(self._folder.glob("*.json"))[-_MOST_KEPT:]:
                with contextlib.suppress(StudioError, UnusableFileError):
                    runs.append(
                        decode_standard(read_own_file(path, LARGEST_RECORD_BYTES), path.name)
                    )
        return runs
