"""The end of a line on the PC there; `cli/serve.py` starts it."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TYPE_CHECKING, BinaryIO

import msgspec

from gpu_studio.core import limits
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.message import LineOpening
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.line import line_child
from gpu_studio.line.line_child import TooMuchError, split_lines

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.process.child_process import ChildProcess

_LONGEST_REQUEST = 64 << 20
_MOST_WAITING = 1000  # lines: beyond, the child waits for the line
_SILENT_LOOKS = 4


class LineServer:
    """The end of a line on the PC there: between ssh's pipes and a child that works.

    It ends the child, with all that the child has started, as soon as the line is cut: if its input
    closes, if nobody reads its output, or if nothing arrives for 8 s because the network went
    silent. The child's own pipes stay as short as those of a window's child, so a slow line holds
    up no measurement: what matters only until the next line of its kind is left out.

    Args:
        start: starts the child that works, as the line's opening asks; raises `OSError` if there
            can be no child.
        says_end: whether to say how the child ended, so that its end is not taken for the line's.
    """

    def __init__(
        self, start: Callable[[LineOpening], ChildProcess], *, says_end: bool = False
    ) -> None:
        self._start, self._says_end = start, says_end
        self._child: ChildProcess | None = None
        self._answers: queue.Queue[bytes | None] = queue.Queue(_MOST_WAITING)
        self._is_over = threading.Event()
        self._reads, self._is_reading = 0, False

    def serve(self, requests: Callable[[int], bytes], out: BinaryIO) -> None:
        """Pass lines until the line or the child is gone; then the child is, too.

        Args:
            requests: reads ssh's input, at most so many bytes; none at its end.
            out: ssh's output.
        """
        self._in_thread(self._pass_requests, requests)
        self._in_thread(self._pass_answers, out)
        self._await_end()
        if self._child is not None:
            self._child.kill()
            self._child.end(limits.current.served_end_s)

    def _in_thread(self, work: Callable[..., None], *arguments: object) -> None:
        threading.Thread(target=work, args=arguments, daemon=True).start()

    def _await_end(self) -> None:
        """Wait until the line is cut or stays silent.

        Time in which nobody reads does not count, and of a pause of this process only one look
        does: what has arrived meanwhile is read first.
        """
        silent = seen = 0
        while silent < _SILENT_LOOKS and not self._is_over.wait(line_child.ALIVE_EVERY_S):
            silent = silent + 1 if self._is_reading and self._reads == seen else 0
            seen = self._reads
        self._is_over.set()

    def _pass_requests(self, requests: Callable[[int], bytes]) -> None:
        def read(most: int) -> bytes:
            self._is_reading = True
            chunk = requests(most)
            self._is_reading = False
            self._reads += 1
            return chunk

        with contextlib.suppress(TooMuchError, OSError, msgspec.MsgspecError, RecursionError):
            for line in split_lines(read, _LONGEST_REQUEST):
                if self._child is not None:
                    self._child.send(line)
                else:
                    self._child = self._start(msgspec.json.decode(line, type=LineOpening))
                    self._in_thread(self._take_answers, self._child)
        self._is_over.set()

    def _take_answers(self, child: ChildProcess) -> None:
        for line in child.lines():
            if self._answers.empty() or not _is_passing(line):
                self._answers.put(line)
        # A child that was ended because of the line has not crashed. A PC that slept reads this
        # when it wakes.
        if self._says_end and not self._is_over.is_set():
            exit_code = child.wait(limits.current.served_end_s)
            self._answers.put(encode(EngineEnded(exit_code=exit_code)))
        self._answers.put(None)

    def _pass_answers(self, out: BinaryIO) -> None:
        with contextlib.suppress(OSError, ValueError):
            while (line := self._answers.get()) is not None:
                out.write(line)
                out.flush()
        self._is_over.set()


def _is_passing(line: bytes) -> bool:
    """Return whether a line is a reading, or a frame of a race that is not its last one."""
    if line.startswith(b'{"type":"frame_ready"'):
        ready = decode_event(line)
        return isinstance(ready, FrameReady) and ready.progress < 1.0
    return line.startswith(b'{"type":"reading"')
