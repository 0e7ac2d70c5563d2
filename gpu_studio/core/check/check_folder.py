"""The checks on this PC: the one that is running, those that were cut off, and all records.

A running check keeps its record so far in a file, and its program has the user's only turn to
check, which is the lock of another file. The system releases the lock if the process is killed or
the PC restarts: a record so far that is there while nobody has the turn was cut off. It becomes a
result at the next start.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from gpu_studio.core.check.check_record import CheckRecord, Interruption
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.texts import with_plain_texts
from gpu_studio.core.user_file import UnusableFileError, read_own_file, try_lock, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

# In the user's data folder, so that window and terminal share the checks.
FOLDER_NAME = "checks"
STATE_EVERY_S = 60.0
"""The longest time until the record so far of a running check is in its file, in seconds."""
_STATE, _LOCK, _RECORD = ".running", ".lock", ".json"
_MOST_READ = 200
_CLOCK_SET_S = 120.0  # a start time computed from the present time moves if the clock is set
_NAME = re.compile(r"[0-9A-Za-z-]{1,64}")


class KeptCheck(msgspec.Struct, frozen=True, kw_only=True):
    """The record of a check, so far if it runs; ``boot`` is the start of the PC that it ran in.

    ``fingerprint`` tells a card from another one and stays on this PC.
    """

    record: CheckRecord
    fingerprint: str = ""
    boot: str = ""


class CheckFolder:
    """Keeps the states of running checks and the records of finished ones.

    Args:
        folder: created with the first check; None keeps nothing.
        boot: differs after each start of the PC: any identifier, or the start's time in seconds.
    """

    def __init__(self, folder: Path | None, boot: str = "") -> None:
        self._folder, self._boot = folder, boot
        self._turn: BinaryIO | None = None

    def keep_progress(self, check_id: str, record: CheckRecord, fingerprint: str) -> None:
        """Keep the record so far of a check that runs in this process.

        Raises:
            StudioError: it cannot be written.
        """
        if record.planted is None:
            self._write(f"{check_id}{_STATE}", record, fingerprint)

    def claim(self) -> bool:
        """Take this user's only turn to check, until `release` or the process's end.

        To look and to take it is one step: of two programs that begin at once, one gets it.
        Returns whether it is this program's; a folder that cannot be written to has no turns.
        """
        if self._folder is None or self._turn is not None:
            return True
        place = self._folder.with_name(f"{self._folder.name}{_LOCK}")
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            file = open(place, "ab")  # noqa: SIM115
        except OSError:
            return True
        if try_lock(file.fileno()):
            self._turn = file
        else:
            file.close()
        return self._turn is not None

    def release(self) -> None:
        """Give the turn to check back: a state that is still there was cut off."""
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.close()

    def conclude_cut_off(self) -> CheckRecord | None:
        """Make results of the checks that were cut off, unless another one runs.

        It is not asked while a check runs in this process.

        Returns:
            The record of the last one; None if there is none.

        Raises:
            StudioError: it cannot be written.
        """
        states = sorted(self._files(_STATE), key=_written_at)
        if not states or not self.claim():
            return None
        ended: CheckRecord | None = None
        for path in states:
            kept = _decoded(path)
            if kept is None:
                with contextlib.suppress(OSError):
                    path.unlink()  # of an older version, or damaged
                continue
            is_restart = not is_same_boot(kept.boot, self._boot)
            stop = Interruption(after_s=kept.record.seconds, is_restart=is_restart)
            ended = msgspec.structs.replace(kept.record, interruptions=(stop,))
            self.conclude(path.stem, ended, kept.fingerprint)
        self.release()
        return ended

    def conclude(self, check_id: str, record: CheckRecord, fingerprint: str) -> None:
        """Keep the record of a check that is over, and forget that it ran.

        A check that tested nothing is no result, nor is one with a fault made on purpose.

        Raises:
            StudioError: it cannot be written.
        """
        if self._folder is None or record.planted is not None:
            return
        try:
            if record.has_tested:
                moment = "".join(filter(str.isdecimal, record.started_at[:19])) or "0"
                self._write(f"{moment}-{check_id}{_RECORD}", record, fingerprint)
        finally:
            with contextlib.suppress(OSError):
                (self._folder / f"{check_id}{_STATE}").unlink()

    def records(self) -> tuple[CheckRecord, ...]:
        """Return the kept records, the last one first."""
        return tuple(stored.record for stored in self._kept())

    def earlier(self, fingerprint: str) -> CheckRecord | None:
        """Return the last record of a card."""
        same = (one.record for one in self._kept() if one.fingerprint == fingerprint != "")
        return next(same, None)

    def _kept(self) -> tuple[KeptCheck, ...]:
        newest = sorted(self._files(_RECORD), key=lambda path: path.name, reverse=True)
        read = (_decoded(path) for path in newest[:_MOST_READ])
        return tuple(stored for stored in read if stored is not None)

    def _files(self, ending: str) -> list[Path]:
        try:
            files = list(self._folder.iterdir()) if self._folder is not None else []
        except OSError:
            return []
        return [one for one in files if one.suffix == ending and _NAME.fullmatch(one.stem)]

    def _write(self, name: str, record: CheckRecord, fingerprint: str) -> None:
        if self._folder is None:
            return
        kept = KeptCheck(record=record, fingerprint=fingerprint, boot=self._boot)
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / name, msgspec.json.encode(kept), is_private=True)
        except OSError as error:
            sentence = f"The check could not be kept: {error.strerror or error}."
            raise StudioError(FailureKind.NOT_SAVED, sentence) from error


def is_same_boot(one: str, other: str) -> bool:
    """Return whether two marks are from the same start of the PC."""
    if one.isdecimal() and other.isdecimal():
        return abs(int(one) - int(other)) <= _CLOCK_SET_S
    return one == other


def _written_at(path: Path) -> float:
    try:
        return path.stat().st_mtime
    except OSError:  # its program has forgotten it meanwhile
        return 0.0


def _decoded(path: Path) -> KeptCheck | None:
    try:
        kept = msgspec.json.decode(read_own_file(path, LARGEST_RECORD_BYTES), type=KeptCheck)
        return with_plain_texts(kept)
    except (UnusableFileError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
