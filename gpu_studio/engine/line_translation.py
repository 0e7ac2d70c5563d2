"""What changes in an engine's lines on their way to and from another PC: files become contents.

The frames of a race are in a file of this PC's, so each goes into its own line, packed. The picture
to learn arrives as a line and becomes a file here. Packing is work for another process than the
engine's, which may be timing the CPU just then: so it is the quickest kind, and while other lines
wait behind a frame, that frame is left out.
"""

from __future__ import annotations

import hashlib
import zlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.line_messages import PhotoSent
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.messages.run_messages import RunInTurns, RunWorkload
from gpu_studio.core.protocol import decode_event, decode_request, encode
from gpu_studio.core.race.frame_file import read_pixels
from gpu_studio.process.family_folder import FamilyFolder

if TYPE_CHECKING:
    from collections.abc import Iterator

_QUICKLY = 1
_FRAMES_OPENED, _FRAME_READY = b'{"type":"frames_opened"', b'{"type":"frame_ready"'
_PHOTO = b'{"type":"photo_sent"'
_MOST_PHOTOS = 8


class LineTranslation:
    """Translates the lines of one engine; see `process.line_server.Translation`."""

    def __init__(self) -> None:
        self._frames: dict[str, Path] = {}
        self._photos: dict[str, Path] = {}
        self._folder: FamilyFolder | None = None

    def close(self) -> None:
        """Remove the pictures to learn."""
        if self._folder is not None:
            self._folder.close()

    def to_child(self, line: bytes) -> Iterator[bytes]:
        """Yield a request with the paths of this PC's files; keep a picture.

        Raises:
            ValueError: a picture cannot be read.
        """
        if line.startswith(_PHOTO):
            try:
                photo = msgspec.json.decode(line, type=PhotoSent)
            except msgspec.MsgspecError as error:
                raise ValueError(str(error)) from error
            self._keep(photo.content)
            return
        yield self._with_photos(line)

    def to_line(self, line: bytes, *, is_late: bool) -> Iterator[bytes]:
        """Yield an event with the contents of its file."""
        if line.startswith(_FRAMES_OPENED):
            opened = decode_event(line)
            assert isinstance(opened, FramesOpened)
            self._frames[opened.run_id] = Path(opened.path)
            yield encode(msgspec.structs.replace(opened, path=""))
        elif line.startswith(_FRAME_READY):
            ready = decode_event(line)
            assert isinstance(ready, FrameReady)
            path = self._frames.get(ready.run_id)
            found = read_pixels(path, ready.number) if path and not is_late else None
            if found is not None:
                packed = zlib.compress(found[0], level=_QUICKLY)
                yield encode(msgspec.structs.replace(ready, picture=packed))
            elif ready.progress >= 1.0:
                yield line
        else:
            yield line

    def farewell(self, exit_code: int | None) -> Iterator[bytes]:
        """Yield how the engine ended, so that its end is not taken for the line's."""
        yield encode(EngineEnded(exit_code=exit_code))

    def _keep(self, content: bytes) -> None:
        identity = hashlib.sha256(content).hexdigest()
        if identity in self._photos:
            return
        if self._folder is None:
            self._folder = FamilyFolder()
        if len(self._photos) == _MOST_PHOTOS:
            oldest = next(iter(self._photos))
            self._photos.pop(oldest).unlink(missing_ok=True)
        path = self._folder.path / f"{identity}.ppm"
        path.write_bytes(content)
        self._photos[identity] = path

    def _with_photos(self, line: bytes) -> bytes:
        if not self._photos:
            return line
        try:
            request = decode_request(line)
        except (msgspec.MsgspecError, RecursionError):
            return line  # the engine says so
        if isinstance(request, RunInTurns):
            runs = tuple(map(self._with_photo, request.runs))
            return encode(msgspec.structs.replace(request, runs=runs))
        return encode(self._with_photo(request)) if isinstance(request, RunWorkload) else line

    def _with_photo(self, run: RunWorkload) -> RunWorkload:
        path = self._photos.get(run.race.photo) if run.race else None
        if path is None or run.showing is None:
            return run
        return msgspec.structs.replace(
            run, showing=msgspec.structs.replace(run.showing, photo_path=str(path))
        )
