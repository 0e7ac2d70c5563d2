"""No frames are left behind, however the engine or the window ends."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.local_engine import LocalEngine
from tests.engine.frames_owner import LONG_RACE
from tests.patience import until

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("how", ["killed", "abandoned", "closed", "stopped"])
def test_the_frames_go_with_the_engine(how: str):
    engine = ProcessEngine()
    path = None
    for event in engine.run(LONG_RACE):
        if isinstance(event, FramesOpened):
            path = Path(event.path)
        if isinstance(event, FrameReady) and event.number == 1:
            assert path.exists()
            end = {"abandoned": engine.abandon, "closed": engine.close, "stopped": engine.stop}
            end.get(how, lambda: psutil.Process(engine.pid).kill())()
        if isinstance(event, EngineEnded):
            break
    engine.close()
    assert path is not None
    until(lambda: not path.parent.exists())


def test_the_frames_go_if_the_window_is_killed():
    window = subprocess.Popen(
        [sys.executable, "-m", "tests.engine.frames_owner"], stdout=subprocess.PIPE, cwd=ROOT
    )
    try:
        value = json.loads(window.stdout.readline())
        path = Path(value["path"])
        assert path.exists()
    finally:
        window.kill()
        window.wait()
        window.stdout.close()
    until(lambda: not path.parent.exists())


def test_an_engine_in_this_process_removes_its_frames_when_it_closes():
    engine = LocalEngine()
    path = None
    for event in engine.run(LONG_RACE):
        if isinstance(event, FramesOpened):
            path = Path(event.path)
        if isinstance(event, FrameReady):
            engine.stop()
    assert path.exists()
    engine.close()
    assert not path.parent.exists()
