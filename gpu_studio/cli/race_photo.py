"""A picture of yours for ``gpu-studio race learn --picture FILE``: decoded as the window does."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.plain_text import file_name
from gpu_studio.core.race.photo_file import Photo, encode_photo, photo_id
from gpu_studio.core.race.picture_answer import (
    DECODER,
    LONGEST_S,
    MEMORY_BYTES,
    MOST_ANSWER_BYTES,
    opened_picture,
)
from gpu_studio.process.child_call import ChildCall
from gpu_studio.process.family_folder import FamilyFolder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_FILE_NAME = "race-photo.ppm"


class EnginePhoto(NamedTuple):
    """A picture to learn, as a request names it; both are empty for that of this program.

    Attributes:
        identity: `RaceParameters.photo`.
        path: `Showing.photo_path`.
    """

    identity: str = ""
    path: str = ""


@contextlib.contextmanager
def engine_photo(path: Path | None) -> Iterator[EnginePhoto]:
    """Yield the picture in a file for the engine, which reads it from a temporary folder.

    Raises:
        StudioError: the file is no picture to learn, or there is no room for its copy.
    """
    if path is None:
        yield EnginePhoto()
        return
    photo = _opened(path)
    try:
        folder = FamilyFolder()
    except OSError as error:
        raise _refused(path, f"its copy cannot be saved ({error.strerror or error})") from error
    try:
        copy = folder.path / _FILE_NAME
        copy.write_bytes(encode_photo(photo.pixels))
        yield EnginePhoto(photo_id(photo.pixels), str(copy))
    finally:
        folder.close()


def _opened(path: Path) -> Photo:
    try:
        answer = ChildCall(DECODER, memory_bytes=MEMORY_BYTES).run(
            os.fsencode(path.absolute()), longest_s=LONGEST_S, most_bytes=MOST_ANSWER_BYTES
        )
    except OSError as error:
        raise _refused(path, "no process can be started for it") from error
    photo = opened_picture(
        path, answer.content, is_answered=answer.exit_code == 0, is_late=answer.is_late
    )
    if not isinstance(photo, Photo):
        raise _refused(path, "it is the result of a race. Drop it on the window to race against it")
    return photo


def _refused(path: Path, reason: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, f"{file_name(path)} cannot be learned: {reason}.")
