"""Standard runs in files: this PC's own in a folder, and those of others in files from anywhere.

What a file is follows from its contents, never from its name. Only the JSON inside is read, and
`decode_standard` decides whether it is a standard run.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.kept_run import LARGEST_FILE_BYTES
from gpu_studio.core.benchmark.recording import text_of
from gpu_studio.core.benchmark.standard_record import (
    CHUNK,
    LAST_EVENT,
    decode_standard,
    encode_standard,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.png_chunks import PNG_HEAD, png_text
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from gpu_studio.core.texts import file_name
from gpu_studio.core.user_file import (
    SilentDriveError,
    UnusableFileError,
    read_own_file,
    read_part,
    read_user_file,
    write_atomically,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import BinaryIO

    from gpu_studio.core.benchmark.standard_record import StandardRun

FOLDER_NAME = "standard"
# The beginnings of the pictures that chat programs and web sites make of a PNG.
_OTHER_PICTURES = (b"\xff\xd8\xff", b"GIF8", b"RIFF", b"BM")
_FAMILY_AT = 4  # bytes before the brand of an AVIF or HEIC file
_LONGEST_HEAD = 16
# Also of a file that is cut off or too large, so that the sentence can say so.
_BEGINNING = re.compile(rb'\{\s*"schema"\s*:\s*-?[0-9]+\s*,\s*"standard"\s*:')
_LONGEST_EVENT_BYTES = LARGEST_RECORD_BYTES + (1 << 16)
_NO_DATA = (
    "The picture {name} has lost its data: chat programs and web sites remove it. Ask for the "
    "JSON file, which keeps it, or for the PNG as a file."
)


def read_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> StandardRun:
    """Return the standard run in a picture, a recording or JSON, whatever the file's name.

    Args:
        path: the file.
        is_over: returns whether the run is no longer needed.

    Raises:
        StudioError: the file has none, or it is damaged, too large, from a newer version, or of
            another standard; the sentence says which.
    """
    found = find_standard(path, is_over)
    if found is None:
        raise _unread(f"There is no standard run in {file_name(path)}.")
    return found


def find_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> StandardRun | None:
    """Return the standard run in a file as `read_standard`; None if it holds something else."""
    name = file_name(path)
    try:
        is_picture, text = _json_in(path, is_over)
    except UnusableFileError as error:
        raise _unread(f"{name} cannot be opened: {error}.") from error
    if text is None and is_picture:
        raise _unread(_NO_DATA.format(name=name))
    return None if text is None else decode_standard(text, name)


def has_standard(path: Path, is_over: Callable[[], bool] = lambda: False) -> bool:
    """Return whether a file has a standard run, damaged or not.

    Raises:
        SilentDriveError: its drive does not answer; any other file that cannot be read has none.
    """
    try:
        return _json_in(path, is_over)[1] is not None
    except SilentDriveError:
        raise
    except (UnusableFileError, StudioError):
        return False


def _json_in(path: Path, is_over: Callable[[], bool]) -> tuple[bool, bytes | None]:
    """Return whether a file is a picture, and the JSON in it: None without, empty if damaged."""
    is_picture, text = read_part(path, _text_in_picture, is_over)
    if is_picture:
        return True, text
    return False, standard_in(read_user_file(path, LARGEST_FILE_BYTES, is_over))


def _text_in_picture(file: BinaryIO) -> tuple[bool, bytes | None]:
    head = file.read(_LONGEST_HEAD)
    if head.startswith(PNG_HEAD):
        return True, png_text(file, CHUNK.encode(), LARGEST_RECORD_BYTES)
    return head.startswith(_OTHER_PICTURES) or head[_FAMILY_AT:].startswith(b"ftyp"), None


def standard_in(content: bytes) -> bytes | None:
    """Return the JSON of the standard run in a recording, or in JSON; None without one."""
    content = text_of(content).strip()
    # Limits before each decoding: it would hold the window's interpreter as long as it takes.
    last = content[-_LONGEST_EVENT_BYTES:].rpartition(b"\n")[2]
    try:
        event = msgspec.json.decode(last, type=_LastEvent)
        if event.type == LAST_EVENT:
            return bytes(event.run)
    except (msgspec.MsgspecError, RecursionError, UnicodeDecodeError):
        pass  # no recording, or of something else
    return content if _BEGINNING.match(content) else None


class _LastEvent(msgspec.Struct):
    type: str
    run: msgspec.Raw


def _unread(sentence: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, sentence)


class StandardFolder:
    """The last standard runs of this PC; window and terminal share the folder.

    Args:
        folder: need not exist yet; None keeps nothing.
    """

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def keep(self, run: StandardRun) -> str:
        """Keep a run; return why it is not kept, or nothing."""
        if self._folder is None:
            return ""
        name = "".join(letter for letter in run.made_at if letter.isascii() and letter.isalnum())
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            write_atomically(self._folder / f"{name}.json", encode_standard(run))
        except OSError as error:
            return f"The run could not be kept: {error.strerror or error}."
        return ""

    def newest(self) -> StandardRun | None:
        """Return the newest run; None if there is none. A file that cannot be read is left out."""
        if self._folder is not None:
            for path in sorted(self._folder.glob("*.json"), reverse=True):
                with contextlib.suppress(OSError, StudioError, UnusableFileError):
                    content = read_own_file(path, LARGEST_RECORD_BYTES)
                    return decode_standard(content, path.name)
        return None
