"""What a child answers that opened a picture file, and what it means.

The child decodes what a stranger made, so its answer is as untrusted as the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.plain_text import file_name, plain_text
from gpu_studio.core.race.frame_file import CHANNELS, LARGEST_SIDE
from gpu_studio.core.race.photo_file import Photo
from gpu_studio.core.race.shared_race import LARGEST_BYTES, SharedRace, decode_shared

if TYPE_CHECKING:
    from pathlib import Path

DECODER = "gpu_studio.ui.race.picture_decoder"
LONGEST_S = 5.0
"""How long a picture may take."""
MEMORY_BYTES = 512 << 20
"""How much memory a picture may take, with the program that decodes it."""
MOST_ANSWER_BYTES = 4 << 20
_KINDS = "PNG, JPEG, WebP, BMP or GIF"
NO_PICTURE = f"it is not a {_KINDS} picture"
DAMAGED = "it is damaged"
NEEDS_MEMORY = f"it needs more than {MEMORY_BYTES >> 20} MiB of memory"
_LATE = (
    f"opening it takes longer than {LONGEST_S:.0f} seconds. Make it smaller, or copy it to this PC "
    "first"
)
DAMAGED_OR_LARGE = f"{DAMAGED}, or it needs more than {MEMORY_BYTES >> 20} MiB of memory"


class DecodedPicture(msgspec.Struct, frozen=True, tag=True):
    """A picture: rows of RGB bytes from the top."""

    width: Annotated[int, Meta(ge=1, le=LARGEST_SIDE)]
    height: Annotated[int, Meta(ge=1, le=LARGEST_SIDE)]
    rgb: bytes


class FoundRace(msgspec.Struct, frozen=True, tag=True):
    """The text of a race that was saved in a picture."""

    text: Annotated[str, Meta(max_length=LARGEST_BYTES + 1)]


class RefusedPicture(msgspec.Struct, frozen=True, tag=True):
    """Why a file is not opened: “it does not exist”."""

    reason: Annotated[str, Meta(max_length=200)]


PictureAnswer = DecodedPicture | FoundRace | RefusedPicture
_decoder = msgspec.msgpack.Decoder(PictureAnswer)


def encode_answer(answer: PictureAnswer) -> bytes:
    """Return an answer for the child's standard output."""
    return msgspec.msgpack.encode(answer)


def opened_picture(
    path: Path, content: bytes, *, is_answered: bool, is_late: bool
) -> Photo | SharedRace:
    """Return the picture or the race in a child's answer.

    Args:
        path: the file.
        content: the answer.
        is_answered: whether the child ended with an answer.
        is_late: whether the child took too long and was killed.

    Raises:
        StudioError: there is none.
    """
    if is_late:
        raise refused(path, _LATE)
    if not is_answered or len(content) > MOST_ANSWER_BYTES:
        raise refused(path, DAMAGED_OR_LARGE)
    try:
        answer = _decoder.decode(content)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise refused(path, DAMAGED) from error
    if isinstance(answer, FoundRace):
        return decode_shared(answer.text)
    if isinstance(answer, RefusedPicture):
        raise refused(path, plain_text(answer.reason, "") or DAMAGED)
    if len(answer.rgb) != answer.width * answer.height * CHANNELS:
        raise refused(path, DAMAGED)
    import numpy as np  # 80 ms

    shape = (answer.height, answer.width, CHANNELS)
    return Photo(file_name(path), np.frombuffer(answer.rgb, np.uint8).reshape(shape))


def refused(path: Path, reason: str) -> StudioError:
    """Return the error for a picture that cannot be learned."""
    return StudioError(FailureKind.FILE_REFUSED, f"{file_name(path)} cannot be learned: {reason}.")
