"""The checks on this PC: those that are running, those that were cut off, and all records.

A running check keeps its state in a file, and its program has the user's only turn to check, which
is the lock of another file. The system releases the lock if the process is killed or the PC
restarts: a state that is there while nobody has the turn was cut off.
"""

from __future__ import annotations

import contextlib
import re
import time
from typing import TYPE_CHECKING, BinaryIO, NamedTuple, TypeVar

import msgspec

from gpu_studio.core.check.check_record import CheckRecord, Interruption
from gpu_studio.core.check.check_run import (  # noqa: TC001  # msgspec reads the annotations
    CheckRun,
    CheckState,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.texts import with_plain_texts
from gpu_studio.core.user_file import UnusableFileError, read_own_file, try_lock, write_atomically

if TYPE_CHECKING:
    from pathlib import Path

# In the user's data folder, so that window and terminal share the checks.
FOLDER_NAME = "checks"
STATE_EVERY_S = 60.0
"""The longest time between two states of a running check in its file, in seconds."""
CONTINUE_WITHIN_S = 24 * 3600.0
"""A check that was cut off longer ago is not continued, in seconds."""
_STATE, _LOCK, _RECORD = ".running", ".lock", ".json"
_MOST_READ = 200
_CLOCK_SET_S = 120.0  # a start time computed from the present time moves if the clock is set
_NAME = re.compile(r"[0-9A-Za-z-]{1,64}")


class CutOffCheck(NamedTuple):
    """A check whose program ended without its consent.

    ``can_continue`` says whether it ended a short time ago, so that the card, the driver and the
    room are most likely the same; otherwise, it can only be kept as a result.
    """

    state: CheckState
    interruption: Interruption
    can_continue: bool = True


class _KeptState(msgspec.Struct, frozen=True, kw_only=True):
    boot: str
    state: CheckState


class _KeptRecord(msgspec.Struct, frozen=True, kw_only=True):
    fingerprint: str
    record: CheckRecord


_Kept = TypeVar("_Kept", _KeptState, _KeptRecord)


class CheckFolder:
    """Keeps the states of running checks and the records of finished ones.

    Args:
        folder: created with the first check; None keeps nothing.
        boot: differs after each start of the PC: any identifier, or the start's time in seconds.
    """

    def __init__(self, folder: Path | None, boot: str = "") -> None:
        self._folder, self._boot = folder, boot
        self._turn: BinaryIO | None = None

    def keep_state(self, state: CheckState) -> None:
        """Keep the state of a check that runs in this process, unless its fault is made on purpose.

        Raises:
            StudioError: it cannot be written.
        """
        if state.plan.plant is None:
            self._write(f"{state.check_id}{_STATE}", _KeptState(boot=self._boot, state=state))

    def forget_state(self, check_id: str) -> None:
        """Remove the state of a check that is over, or whose end was told."""
        if self._folder is None:
            return
        for path in self._folder.glob(f"{check_id}.*"):  # an older version kept a lock as well
            with contextlib.suppress(OSError):
                path.unlink()

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

    def cut_off(self) -> tuple[CutOffCheck, ...]:
        """Return the checks that were cut off, the last one first; none while another one runs.

        It is not asked while a check runs in this process.
        """
        states, had_turn = self._files(_STATE), self._turn is not None
        if not states or not self.claim():
            return ()
        if not had_turn:
            self.release()
        found: list[tuple[float, CutOffCheck]] = []
        for path in states:
            stored = _decoded(path, _KeptState)
            if stored is None or stored.state.check_id != path.stem:
                continue
            is_restart = not is_same_boot(stored.boot, self._boot)
            ended = Interruption(after_s=stored.state.elapsed_s, is_restart=is_restart)
            with contextlib.suppress(OSError):  # its program has forgotten it meanwhile
                ended_at = path.stat().st_mtime
                is_recent = time.time() - ended_at <= CONTINUE_WITHIN_S
                found.append((ended_at, CutOffCheck(stored.state, ended, is_recent)))
        return tuple(check for _, check in sorted(found, key=lambda one: -one[0]))

    def conclude(self, run: CheckRun) -> None:
        """Keep the record of a check that is over, and forget its state.

        A check that tested nothing is no result, nor is one with a fault made on purpose.

        Raises:
            StudioError: it cannot be written.
        """
        if run.plan.plant is not None:
            return
        record = run.record()
        try:
            if record.has_tested:
                moment = "".join(filter(str.isdecimal, record.started_at[:19])) or "0"
                kept = _KeptRecord(fingerprint=run.fingerprint, record=record)
                self._write(f"{moment}-{run.check_id}{_RECORD}", kept)
        finally:
            self.forget_state(run.check_id)

    def records(self) -> tuple[CheckRecord, ...]:
        """Return the kept records, the last one first."""
        return tuple(stored.record for stored in self._kept())

    def earlier(self, fingerprint: str) -> CheckRecord | None:
        """Return the last record of a card."""
        same = (one.record for one in self._kept() if one.fingerprint == fingerprint != "")
        return next(same, None)

    def _kept(self) -> tuple[_KeptRecord, ...]:
        newest = sorted(self._files(_RECORD), key=lambda path: path.name, reverse=True)
        read = (_decoded(path, _KeptRecord) for path in newest[:_MOST_READ])
        return tuple(stored for stored in read if stored is not None)

    def _files(self, ending: str) -> list[Path]:
        try:
            files = list(self._folder.iterdir()) if self._folder is not None else []
        except OSError:
            return []
        return [one for one in files if one.suffix == ending and _NAME.fullmatch(one.stem)]

    def _write(self, name: str, kept: _KeptState | _KeptRecord) -> None:
        if self._folder is None:
            return
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


def _decoded(path: Path, kind: type[_Kept]) -> _Kept | None:
    try:
        stored = msgspec.json.decode(read_own_file(path, LARGEST_RECORD_BYTES), type=kind)
        return with_plain_texts(stored)
    except (UnusableFileError, msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        return None
