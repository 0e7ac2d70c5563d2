"""A question about a file that a child process answers, with limits of time and memory.

A stranger's file may take all of both, and seconds of Python's lock: not in the window's process.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.texts import plain_text
from gpu_studio.core.user_file import UnusableFileError, read_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

_Found = TypeVar("_Found")


class CallEnd(Protocol):
    """How the call of a child ended; see `process.child_call.ChildAnswer`."""

    @property
    def content(self) -> bytes: ...
    @property
    def exit_code(self) -> int | None: ...
    @property
    def is_late(self) -> bool: ...
    @property
    def reason(self) -> str: ...


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a child may take: seconds, more of them for a large file, and bytes."""

    longest_s: float
    bytes_per_s: float = float("inf")
    memory_bytes: int
    answer_bytes: int


class ChildCaller(Protocol):
    """Calls ``answer`` of a module in a child; see `process.child_call.call_child`."""

    def __call__(
        self,
        module: str,
        content: bytes,
        *,
        longest_s: float,
        most_bytes: int,
        memory_bytes: int | None,
        is_over: Callable[[], bool],
    ) -> CallEnd: ...


def ask_child(
    call: ChildCaller,
    module: str,
    question: object,
    kind: type[_Found] | object,
    *,
    limits: Limits,
    files: Iterable[Path] = (),
    is_over: Callable[[], bool] = lambda: False,
) -> _Found:
    """Return a child's answer.

    Args:
        call: calls the child.
        module: has ``answer(content)``, which takes and returns msgpack.
        question: what it takes.
        kind: the type of what it returns.
        limits: what the child may take.
        files: what it reads: a silent drive is found out here.
        is_over: returns whether the answer is no longer needed; asked 20 times a second.

    Raises:
        StudioError: why there is no answer.
    """
    longest_s = limits.longest_s
    path = None
    try:
        for path in files:
            size_bytes = read_part(path, lambda file: file.seek(0, os.SEEK_END), is_over)
            longest_s += size_bytes / limits.bytes_per_s
        ended = call(
            module,
            msgspec.msgpack.encode(question),
            longest_s=longest_s,
            most_bytes=limits.answer_bytes,
            memory_bytes=limits.memory_bytes,
            is_over=is_over,
        )
        if ended.exit_code == 0:
            found: _Found = msgspec.msgpack.decode(ended.content, type=kind)
            return found
    except UnusableFileError as error:
        raise _refused(f"Cannot read {plain_text(str(path))}: {error}.") from error
    except OSError as error:
        raise _refused(f"No process can be started to read this file ({error}).") from error
    except msgspec.MsgspecError as error:
        raise _refused("What is in this file cannot be read.") from error
    late = f"This takes longer than {longest_s:.0f} s and was stopped."
    none = "This file needs more memory than it is given."
    raise _refused(ended.reason or (late if ended.is_late else none))


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, sentence)
