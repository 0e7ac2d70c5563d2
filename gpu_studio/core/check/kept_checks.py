"""The results of the checks on this PC, one file each, so that a second failure is known as one."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.check_record import LARGEST_RECORD_BYTES, CheckRecord
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.user_file import UnusableFileError, read_user_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FOLDER_NAME = "checks"
_MOST_READ = 200
_PREFIX = "check-"


class KeptCheck(msgspec.Struct, frozen=True, kw_only=True):
    """A result and the card that it belongs to.

    ``fingerprint`` is that of `CheckStarted`. It is not part of the record, which may be shared.
    """

    kept_at: str
    fingerprint: str
    record: CheckRecord


class KeptChecks:
    """Keeps results in a folder and reads them back.

    Args:
        folder: created with the first result.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def keep(self, record: CheckRecord, fingerprint: str, kept_at: str) -> Path:
        """Keep a result; return its file.

        Args:
            record: the result; one with a fault made on purpose is refused.
            fingerprint: that of the card.
            kept_at: the present time in ISO 8601.

        Raises:
            StudioError: it cannot be saved, or it is no result of the card.
        """
        if record.planted is not None:
            message = "A check with a fault made on purpose is no result of the card."
            raise StudioError(FailureKind.NOT_SAVED, message)
        moment = "".join(character for character in kept_at[:19] if character.isdecimal())
        path = self.folder / f"{_PREFIX}{moment or '0'}-{secrets.token_hex(4)}.json"
        kept = KeptCheck(kept_at=kept_at, fingerprint=fingerprint, record=record)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            new = path.with_suffix(".new")
            new.write_bytes(msgspec.json.encode(kept))
            new.replace(path)
        except OSError as error:
            reason = error.strerror or str(error)
            message = f"The result cannot be saved: {reason}."
            raise StudioError(FailureKind.NOT_SAVED, message) from error
        return path

    def newest_first(self) -> Iterator[KeptCheck]:
        """Yield the kept results; files that are none are left out."""
        try:
            paths = sorted(self.folder.glob(f"{_PREFIX}*.json"), reverse=True)
        except OSError:
            return
        for path in paths[:_MOST_READ]:
            try:
                text = read_user_file(path, LARGEST_RECORD_BYTES)
                yield msgspec.json.decode(text, type=KeptCheck)
            except (UnusableFileError, msgspec.MsgspecError, RecursionError):
                continue

    def latest(self, fingerprint: str) -> CheckRecord | None:
        """Return the last result of a card; None if there is none."""
        for kept in self.newest_first():
            if kept.fingerprint == fingerprint:
                return kept.record
        return None
