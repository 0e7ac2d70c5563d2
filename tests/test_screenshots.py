"""The pictures of every page: each state has one, and shows that state."""

from __future__ import annotations

import hashlib

import pytest
from PySide6.QtGui import QImage

from gpu_studio.core.messages.run_messages import RunWorkload
from tests.fakes.pc import long_names
from tests.fakes.run_answers import run_events
from tests.pictures.album import Album
from tests.pictures.every_page import under_names_of
from tests.pictures.setup_states import SetupStates

_SIZE = (900, 520, 1)


@pytest.fixture
def album(tmp_path, settings):
    return Album(tmp_path, "A Font", sizes=(_SIZE,), looks=("light",))


def states_of(folder):
    """Return the names of the states in a folder of pictures, and check that no two are alike."""
    paths = sorted(folder.glob("*.png"))
    digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    assert len(digests) == len(paths), [path.name for path in paths]
    return {path.stem.removeprefix("a-font-").removesuffix("-900x520-light") for path in paths}


def test_the_installation_of_the_engine_has_a_picture_of_each_state(qtbot, album, tmp_path):
    SetupStates(album).take_all()
    album.make_sheets()
    states = states_of(tmp_path / "setup")
    assert {
        "1-absent", "1-absent-why", "1-absent-line-devices", "3-loading", "3-loading-line-devices",
        "3-pausing", "3-paused", "7-failed", "7-failed-line-devices", "4-first-done", "4-done",
        "4-removing",
    } <= states  # fmt: skip
    picture = QImage(str(tmp_path / "setup" / "a-font-4-done-900x520-light.png"))
    assert picture.size().toTuple() == _SIZE[:2]
    assert not QImage(str(tmp_path / "a-font-setup.png")).isNull()


@pytest.mark.parametrize(("device", "name"), [("cpu", "i7-10750H"), ("cuda:1", "4060 Laptop")])
def test_results_carry_the_names_of_the_devices_that_are_shown(device, name):
    script = under_names_of(long_names(), lambda _engine, request: run_events(request))
    request = RunWorkload(run_id="1", workload="matmul", size=64, dtype="float32", device=device)
    *_, finished = script(None, request)
    assert name in finished.device_name
