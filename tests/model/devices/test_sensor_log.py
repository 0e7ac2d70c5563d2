from __future__ import annotations

import csv
import errno
import os

import pytest

from gpu_studio.core.notice import Tone
from gpu_studio.model.devices.sensor_log import SensorLog
from tests.fakes.pc import gt_1030, reading

pytestmark = pytest.mark.parametrize("inventory", [gt_1030()])


@pytest.fixture
def log(ready_studio):
    return SensorLog(ready_studio.sensors)


def test_every_reading_becomes_lines_of_the_file(qtbot, log, ready_studio, sensor_source, tmp_path):
    path = tmp_path / "sensors.csv"
    log.start(path)
    for second in (1.0, 2.0):
        with qtbot.waitSignal(ready_studio.sensors.reading_taken):
            sensor_source.send(reading(gt_1030(), second, temperature_c=40.0 + second))
    qtbot.waitUntil(lambda: log.notice.sentence.startswith("Writing to sensors.csv: 2 readings"))
    log.stop()
    qtbot.waitUntil(lambda: not log.is_running)
    with path.open(newline="", encoding="utf-8") as file:
        lines = list(csv.DictReader(file))
    assert [line["temperature_c"] for line in lines] == ["", "41.0", "", "42.0"]
    assert log.notice.sentence == f"2 readings written to {path}."


def test_a_log_goes_on_behind_a_hidden_tab_until_it_is_stopped(qtbot, log, ready_studio, tmp_path):
    ready_studio.sensors.set_watched(False)
    log.start(tmp_path / "sensors.csv")
    assert ready_studio.sensors.is_polled
    log.stop()
    qtbot.waitUntil(lambda: not log.is_running)
    assert not ready_studio.sensors.is_polled


def test_a_folder_that_cannot_be_written_is_reported_once_and_ends_the_log(qtbot, log, tmp_path):
    log.start(tmp_path / "missing" / "sensors.csv")
    qtbot.waitUntil(lambda: not log.is_running)
    assert log.notice.tone is Tone.FAILURE
    reason = os.strerror(errno.ENOENT)  # in the language of the PC
    assert log.notice.sentence.startswith(f"The log ended: {reason}. 0 readings written")


def test_closing_writes_what_was_taken(qtbot, log, ready_studio, sensor_source, tmp_path):
    path = tmp_path / "sensors.csv"
    log.start(path)
    with qtbot.waitSignal(ready_studio.sensors.reading_taken):
        sensor_source.send(reading(gt_1030(), 1.0))
    ready_studio.close()
    assert len(path.read_text(encoding="utf-8").splitlines()) == 3
