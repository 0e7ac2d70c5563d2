"""The reading of a file of weights in a child process: the messages, and the work of `answer`.

A header may be a stranger's: it may take all time and memory. The child reads the file itself.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.memory.networks import Network
from gpu_studio.core.memory.weights.weights_file import read_config_file, read_weights
from gpu_studio.core.plain_text import file_name, plain_text
from gpu_studio.core.user_file import UnusableFileError, read_part

if TYPE_CHECKING:
    from collections.abc import Callable

MODULE = "gpu_studio.core.memory.weights.weights_call"
MEMORY_BYTES = 2 << 30
LONGEST_S = 60.0
MOST_ANSWER_BYTES = 32 << 20


class ReadWeights(msgspec.Struct, frozen=True):
    """Read a file of weights, or only a configuration; paths are as the file system spells them."""

    path: bytes | None
    config_path: bytes | None = None


class CallEnd(Protocol):
    """How the call of a child ended; see ``process.child_call``."""

    @property
    def content(self) -> bytes: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def is_late(self) -> bool: ...
    @property
    def reason(self) -> str: ...


def answer(content: bytes) -> bytes:
    """Return the `Network` of a file as msgpack; raise ValueError with the reason."""
    question = msgspec.msgpack.decode(content, type=ReadWeights)
    path, config_path = (
        None if one is None else Path(os.fsdecode(one))
        for one in (question.path, question.config_path)
    )
    try:
        network = (
            Network(name="", config=None if config_path is None else read_config_file(config_path))
            if path is None
            else read_weights(path, config_path)
        )
    except StudioError as error:
        raise ValueError(str(error).replace("\u202f", " ")) from error
    except MemoryError as error:
        raise ValueError("The header of this file needs more memory than it is given.") from error
    return msgspec.msgpack.encode(network)


def ask_weights(
    path: Path | None,
    config_path: Path | None,
    call: Callable[[bytes], CallEnd],
    is_over: Callable[[], bool] = lambda: False,
) -> Network:
    """Return the network of a file; without one, a network of which only the shape is known.

    Args:
        path: see `read_weights`; None for only a configuration.
        config_path: see `read_weights`.
        call: calls `answer` in a child process (`MODULE`) with the limits of this module.
        is_over: returns whether the answer is no longer needed.

    Raises:
        StudioError: why there is none.
    """
    paths = [one for one in (path, config_path) if one is not None]
    at, shown = paths[0], file_name(paths[0])
    try:
        for at in paths:
            read_part(at, lambda file: file.read(1), is_over)  # a silent drive is found out here
        spelled = [None if one is None else os.fsencode(one) for one in (path, config_path)]
        ended = call(msgspec.msgpack.encode(ReadWeights(*spelled)))
        if ended.exit_code == 0:
            return msgspec.msgpack.decode(ended.content, type=Network)
        reason = ended.reason
    except UnusableFileError as error:
        raise _refused(f"Cannot read {plain_text(str(at))}: {error}.") from error
    except OSError as error:
        raise _refused(f"No process can be started to read {shown}.") from error
    except msgspec.MsgspecError:
        reason = ""
    late = f"Reading the header of {shown} takes too long."
    raise _refused(
        reason
        or (late if ended.is_late else f"The header of {shown} needs more memory than it is given.")
    )


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.BAD_REQUEST, sentence)
