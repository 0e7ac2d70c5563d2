"""What `serve` does with a race's frames, while the engine beside it is timing."""

from __future__ import annotations

import subprocess
import sys

_TRANSLATES = """
import sys, zlib
from pathlib import Path
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.core.race.frame_file import header_of
from gpu_studio.engine.line_translation import LineTranslation

path = Path(sys.argv[1])
path.write_bytes(header_of(3, 2) + bytes(range(18)))
opened = FramesOpened(run_id="1", path=str(path), width=3, height=2)
ready = FrameReady(run_id="1", number=0, elapsed_s=0.0, steps=0, measure=0.0, progress=0.0)
translation = LineTranslation()
(first,) = translation.to_line(encode(opened), is_late=False)
assert str(path).encode() not in first
(line,) = translation.to_line(encode(ready), is_late=False)
assert zlib.decompress(decode_event(line).picture) == bytes(range(18))
assert not list(translation.to_line(encode(ready), is_late=True))
assert "numpy" not in sys.modules
"""


def test_a_frame_goes_into_its_line_without_numpy(tmp_path):
    # Its import takes 80 ms of a core, in the first moments of a race.
    words = [sys.executable, "-c", _TRANSLATES, str(tmp_path / "frames")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
