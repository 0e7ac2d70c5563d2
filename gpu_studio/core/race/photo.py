"""A picture to learn: what a child answers that opened its file, and what it means.

The child decodes what a stranger made, so its answer is as untrusted as the file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, NamedTuple

import msgspec
from msgspec import Meta

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.packed_frame import PackedFrame  # noqa: TC001  # msgspec reads it
from gpu_studio.core.plain_text import file_name, plain_text
from gpu_studio.core.race.shared_race import LARGEST_BYTES, SharedRace, decode_shared

if TYPE_CHECKING:
    from pathlib import Path


DECODER = "gpu_studio.ui.race.picture_decoder"
LONGEST_S = 5.0
"""How long a picture may take."""
MEMORY_BYTES = 512 << 20
"""How much memory a picture may take, with the program that decodes it."""
MOST_ANSWER_BYTES = 4 << 20
NO_PICTURE = "it is not a PNG, JPEG, WebP, BMP or GIF picture"
DAMAGED = "it is damaged"
NEEDS_MEMORY = f"it needs more than {MEMORY_BYTES >> 20} MiB of memory"
DAMAGED_OR_LARGE = f"{DAMAGED}, or {NEEDS_MEMORY}"
_LATE = (
    f"opening it takes longer than {LONGEST_S:.0f} seconds. Make it smaller, or copy it to this PC "
    "first"
)
_SHARE = 0.12
# The middles that are looked at, along each side.
_PLACES = 24


class Detail(NamedTuple):
    """A square of a picture, which a lens shows.

    Attributes:
        x, y: its middle, as shares of the width and the height.
        share: its side, as a share of the width, or of the height if that is less.
    """

    x: float
    y: float
    share: float = _SHARE


LAKE = Detail(0.201, 0.750, 0.125)


class Photo(NamedTuple):
    """A picture to learn.

    Attributes:
        name: the file's name.
        picture: at most 512 on each side.
        detail: what a lens shows of it.
    """

    name: str
    picture: PackedFrame
    detail: Detail = LAKE


class DecodedPicture(msgspec.Struct, frozen=True, tag=True):
    """A picture that could be opened."""

    picture: PackedFrame


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
    if answer.picture.rows is None:
        raise refused(path, DAMAGED)
    return Photo(file_name(path), answer.picture, detail_of(answer.picture))


def refused(path: Path, reason: str) -> StudioError:
    """Return the error for a picture that cannot be learned."""
    return StudioError(FailureKind.FILE_REFUSED, f"{file_name(path)} cannot be learned: {reason}.")


def detail_of(picture: PackedFrame) -> Detail:
    """Return the detail of a picture with the sharpest edges."""
    import numpy as np  # 80 ms

    pixels = picture.pixels
    if pixels is None:
        return LAKE
    gray = pixels.astype(np.float64).mean(axis=2)
    edges = np.zeros_like(gray)
    edges[:, 1:] += np.abs(np.diff(gray, axis=1))
    edges[1:, :] += np.abs(np.diff(gray, axis=0))
    sums = np.zeros((gray.shape[0] + 1, gray.shape[1] + 1))
    sums[1:, 1:] = edges.cumsum(axis=0).cumsum(axis=1)
    height, width = gray.shape
    side = max(1, round(_SHARE * min(width, height)))
    tops, lefts = (
        np.unique(np.linspace(0, length - side, _PLACES).astype(int)) for length in gray.shape
    )
    above, below = sums[tops], sums[tops + side]
    inside = (below - above)[:, lefts + side] - (below - above)[:, lefts]
    row, column = np.unravel_index(inside.argmax(), inside.shape)
    top, left = tops[row], lefts[column]
    return Detail(float((left + side / 2) / width), float((top + side / 2) / height))
