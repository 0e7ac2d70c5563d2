"""The standard run in a file from anywhere: a picture, a report, a recording, or JSON.

What a file is follows from its contents, never from its name. Only the JSON inside is read, and
`decode_standard` decides whether it is a standard run.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import LARGEST_FILE_BYTES
from gpu_studio.core.benchmark.recording import text_of
from gpu_studio.core.benchmark.standard_record import CHUNK, decode_standard
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.page_json import json_in_page
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.user_file import SilentDriveError, UnusableFileError, read_part, read_user_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from gpu_studio.core.benchmark.standard_record import StandardRun

LAST_EVENT = "standard_finished"
# The beginnings of the pictures that chat programs and web sites make of a PNG.
_OTHER_PICTURES = (b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
_FAMILY_AT = 4  # bytes before the brand of an AVIF or HEIC file
_LONGEST_HEAD = 16
# Also of a file that is cut off or too large, so that the sentence can say so.
_BEGINNING = re.compile(rb'\{\s*"schema"\s*:\s*-?[0-9]+\s*,\s*"standard"\s*:')
_LONGEST_EVENT_BYTES = LARGEST_RECORD_BYTES + (1 << 16)
_NO_DATA = (
    "The picture {name} has lost its data: chat programs and web sites remove it. Ask for the "
    "report (HTML) or the JSON file, which keep it, or for the PNG as a file."
)


class _LastEvent(msgspec.Struct):
    type: str
    run: msgspec.Raw


def read_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> StandardRun:
    """Return the standard run in a file.

    Args:
        path: the file.
        is_over: returns whether the run is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, from a newer version, or of
            another standard; the sentence says which.
    """
    name = file_name(path)
    try:
        text = _json_in(path, is_over)
    except UnusableFileError as error:
        raise _refused(f"{name} cannot be opened: {error}.") from error
    if text is None:
        raise _refused(
            _NO_DATA.format(name=name)
            if _is_picture(path, is_over)
            else f"There is no standard run in {name}."
        )
    return decode_standard(text, name)


def has_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a file has a standard run, damaged or not.

    Raises:
        SilentDriveError: its drive does not answer; any other file that cannot be read has none.
    """
    try:
        return _json_in(path, is_over) is not None
    except SilentDriveError:
        raise
    except (UnusableFileError, StudioError):
        return False


def _json_in(path: Path, is_over: Callable[[], bool]) -> bytes | None:
    """Return the JSON of the standard run in a file; None if it has none, empty if damaged."""
    is_png, text = read_part(path, _text_in_picture, is_over)
    if is_png:
        return text
    if read_part(path, _is_other_picture, is_over):
        return None
    return standard_in(read_user_file(path, LARGEST_FILE_BYTES, is_over))


def standard_in(content: bytes) -> bytes | None:
    """Return the JSON of the standard run in a report, a recording, or JSON; None without one."""
    content = text_of(content).strip()
    if content.startswith(b"<"):
        return json_in_page(content, CHUNK)
    # Limits before each decoding: it would hold the window's interpreter as long as it takes.
    last = content[-_LONGEST_EVENT_BYTES:].rpartition(b"\n")[2]
    try:
        event = msgspec.json.decode(last, type=_LastEvent)
        if event.type == LAST_EVENT:
            return bytes(event.run)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass  # no recording, or of something else
    return content if _BEGINNING.match(content) else None


def _text_in_picture(file: BinaryIO) -> tuple[bool, bytes | None]:
    """Return whether a file is a PNG, and the text of its standard run."""
    if file.read(len(PNG_HEAD)) != PNG_HEAD:
        return False, None
    return True, png_text(file, CHUNK.encode(), LARGEST_RECORD_BYTES)


def _is_other_picture(file: BinaryIO) -> bool:
    head = file.read(_LONGEST_HEAD)
    return head.startswith(_OTHER_PICTURES) or head[_FAMILY_AT:].startswith(b"ftyp")


def _is_picture(path: Path, is_over: Callable[[], bool]) -> bool:
    return read_part(path, lambda file: file.read(len(PNG_HEAD)), is_over) == PNG_HEAD or read_part(
        path, _is_other_picture, is_over
    )


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, sentence)
