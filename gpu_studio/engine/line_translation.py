"""What changes in an engine's lines on their way to another PC.

A slow line must not hold up a measurement: while other lines wait behind a frame of a race, that
frame is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.protocol import decode_event, encode

if TYPE_CHECKING:
    from collections.abc import Iterator

_FRAME_READY = b'{"type":"frame_ready"'


class LineTranslation:
    """Translates the lines of one engine; see `process.line_server.Translation`."""

    def to_child(self, line: bytes) -> Iterator[bytes]:
        """Yield a request as it is."""
        yield line

    def to_line(self, line: bytes, *, is_late: bool) -> Iterator[bytes]:
        """Yield an event; of frames that are late, only the last one of a race."""
        if is_late and line.startswith(_FRAME_READY):
            ready = decode_event(line)
            assert isinstance(ready, FrameReady)
            if ready.progress < 1.0:
                return
        yield line

    def farewell(self, exit_code: int | None) -> Iterator[bytes]:
        """Yield how the engine ended, so that its end is not taken for the line's."""
        yield encode(EngineEnded(exit_code=exit_code))
