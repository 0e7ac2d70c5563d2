"""The real way from an empty folder to a benchmark: the window, a folder of wheels, PyTorch itself.

It needs a folder with PyTorch's CPU wheel and the packages that it needs, for example by
``pip download --dest FOLDER torch==2.13.0``, named in GPU_STUDIO_TEST_WHEELS.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpu_studio.app import build_window
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.messages.run_messages import RunFinished, RunWorkload
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.driving.window import click, sees, text, wait_until
from tests.fakes.pc import SteadySensors, cpu_only

WHEELS = os.environ.get("GPU_STUDIO_TEST_WHEELS", "")
LONGEST_S = 540.0

pytestmark = [
    pytest.mark.skipif(not WHEELS, reason="GPU_STUDIO_TEST_WHEELS names no folder"),
    pytest.mark.timeout(1800),
]


def test_from_a_folder_of_wheels_to_a_result(qtbot, tmp_path):
    shelf = BuildShelf(tmp_path / "Übung eins" / "engines")
    window = build_window(
        sensor_source=SteadySensors(cpu_only()),
        settings=Settings(None),
        builds=shelf,
        wheels=Path(WHEELS),
    )
    window.show()
    studio = window.findChild(Studio)
    wait_until(lambda: sees(window, "setup.page"), LONGEST_S)
    wait_until(lambda: studio.session.state is EngineState.READY, LONGEST_S)
    record = shelf.record("cpu")
    assert record.state == "ready"
    assert record.size_bytes > 500_000_000
    assert studio.session.description.torch_version == record.torch_version
    click(window, "setup.close")
    assert "PyTorch 2." in text(window, "status")
    reply = studio.session.submit(
        RunWorkload(
            run_id="1",
            workload="elementwise",
            device="cpu",
            size=512,
            dtype="float32",
            budget_s=0.3,
        )
    )
    wait_until(lambda: reply.is_finished, LONGEST_S)
    assert isinstance(reply.last, RunFinished)
    loaded = maps_of(studio)
    assert not loaded or all(str(shelf.folder("cpu")) in one for one in loaded)
    window.close()
    window.deleteLater()


def maps_of(studio: Studio) -> list[str]:
    """Return the paths of PyTorch's library in the engine's process; empty where unknown."""
    path = Path(f"/proc/{studio.session.description.pid}/maps")
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [line for line in lines if "libtorch_cpu" in line]
