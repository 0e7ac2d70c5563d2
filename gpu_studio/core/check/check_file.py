"""The record of a check as JSON, in a file of its own or in a picture; and read again.

It has nothing that identifies you, your PC, or this copy of the card, beyond the last characters of
its UUID. A record comes back from strangers: only the JSON in their file is read.
"""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.check.check_record import SCHEMA, CheckRecord
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.devices.card_identity import identity_of
from gpu_studio.core.devices.devices import Device
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES, decode_record_of
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_part, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from gpu_studio.core.messages.check_messages import CheckedDevice

CHUNK = "gpu-studio-check"
"""The keyword of the picture's text chunk."""
RECORD_ENDINGS = (".png", ".json")
LARGEST_FILE_BYTES = 8 << 20
_HEAD_BYTES = 1 << 16
_LONGEST_ORIGIN = 100


class _Claim(msgspec.Struct, frozen=True):
    verdict: str = ""


def encode_record(record: CheckRecord) -> bytes:
    """Return a record as JSON, with what follows from it for those who read it elsewhere."""
    follows = {
        "verdict": record.verdict, "sentence": record.sentence, "next_action": record.next_action,
    }  # fmt: skip
    return msgspec.json.encode(msgspec.to_builtins(record) | follows)


def decode_record(text: bytes, name: str = "") -> CheckRecord:
    """Return the record in a JSON text, which may come from a stranger; see `decode_record_of`.

    Its parts are compared with the card's name once more, as a text is easily changed.
    """

    def refused(reason: str) -> StudioError:
        sentence = f"{name or 'This'} is not the record of a check: {reason}."
        return StudioError(FailureKind.FILE_REFUSED, sentence)

    record = decode_record_of(CheckRecord, text, SCHEMA, refused, name)
    claimed = msgspec.json.decode(text, type=_Claim).verdict
    if claimed not in ("", record.verdict):
        reason = f"it says “{plain_text(claimed)[:20]}”, but its stages say “{record.verdict}”"
        raise refused(reason)
    return msgspec.structs.replace(record, device=_identified(record.device))


def _identified(device: CheckedDevice) -> CheckedDevice:
    """Return a device that admits a chip or a compute capability that its name does not have."""
    found = re.fullmatch(r".* \(([0-9a-f]{4})\)", device.silicon)
    card = Device(
        kind="cuda", name=device.name, compute_capability=device.compute_capability,
        pci_device_id=int(found[1], 16) if found else None,
    )  # fmt: skip
    contradiction = identity_of(card, None).contradiction if not is_cpu(device.address) else ""
    if device.contradiction or not contradiction:
        return device
    return msgspec.structs.replace(device, contradiction=contradiction, agreement="")


def read_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> CheckRecord:
    """Return the record in a picture or a JSON file, with its origin.

    Args:
        path: the file.
        is_over: returns whether the record is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, or from a newer version.
    """
    name = file_name(path)
    try:
        content = read_user_file(path, LARGEST_FILE_BYTES, is_over)
    except UnusableFileError as error:
        raise _refused(name, str(error)) from error
    text: bytes | None = content
    if content.startswith(PNG_HEAD):
        text = png_text(io.BytesIO(content), CHUNK.encode(), LARGEST_RECORD_BYTES)
    if text is None:
        raise _refused(name, "it has no record of a check inside")
    return msgspec.structs.replace(decode_record(text, name), origin=name[:_LONGEST_ORIGIN])


def has_record(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a picture has the record of a check; reads only its beginning.

    Raises:
        SilentDriveError: as `read_part`; any other file that cannot be read has none.
    """
    try:
        head = read_part(path, lambda file: file.read(_HEAD_BYTES), is_over)
    except SilentDriveError:
        raise
    except UnusableFileError:
        return False
    return head.startswith(PNG_HEAD) and CHUNK.encode() + b"\0" in head


def _refused(name: str, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{name} cannot be opened: {reason}.")
