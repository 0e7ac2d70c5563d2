"""What a greeting leaves, and what the end of a sensor reader is called."""

from __future__ import annotations

import signal
import sys

import psutil
import pytest

from gpu_studio.core.devices.devices import Reading
from gpu_studio.core.line_trouble import LineProblem
from gpu_studio.hardware.client import SensorReader
from gpu_studio.hardware.greeting import greet
from tests.family import family_running
from tests.line.conftest import write_script
from tests.patience import outliving

_OF_A_SHELL = pytest.mark.skipif(sys.platform == "win32", reason="a script of a POSIX shell")


def test_a_greeting_leaves_no_process(there):
    assert greet(there).trouble is None
    assert outliving(psutil.Process().children(recursive=True)) == []


def test_a_sensor_reader_that_is_killed_there_is_no_lost_connection(there):
    reader = SensorReader(0.1, pc=there)
    try:
        for event in reader.readings():
            if isinstance(event, Reading):
                for one in family_running(psutil.Process(), "gpu_studio.hardware.reader"):
                    one.kill()
        assert reader.line.trouble.problem is LineProblem.PART_ENDED
        assert "sensor reader of attic" in reader.line.trouble.sentence
    finally:
        reader.close()


@_OF_A_SHELL
def test_an_ssh_that_is_stopped_in_a_greeting_is_noticed_long_before_a_slow_start(
    there, tmp_path, monkeypatch
):
    mark = tmp_path / "started"
    write_script(tmp_path / "bin" / "ssh", f'echo $$ >"{mark}"; exec sleep 600')
    monkeypatch.setattr("gpu_studio.hardware.greeting.SILENCE_S", 0.5)
    looks, stopped = [], []

    def stops() -> bool:
        looks.append(1)
        if not stopped and mark.exists() and mark.read_text().endswith("\n"):
            stopped.append(psutil.Process(int(mark.read_text())))
            stopped[0].send_signal(signal.SIGSTOP)
        # A greeting may take 30 s: 300 looks of 0.1 s.
        return len(looks) > 200

    found = greet(there, stops)
    assert found.trouble.problem is LineProblem.SILENT
    assert len(looks) < 200
    assert outliving(stopped) == []


@_OF_A_SHELL
@pytest.mark.parametrize(
    "noise",
    [
        "Welcome to attic\\n",
        "a prompt without the end of its line> ",
        "\\033[1mbold\\033[0m\\r\\n" * 9,
    ],
)
def test_what_a_shell_there_prints_before_the_greeting_is_no_trouble(there, tmp_path, noise):
    program = tmp_path / "bin" / "gpu-studio"
    _, _, words = program.read_text(encoding="utf-8").splitlines()[1].partition("exec ")
    write_script(program, f"printf '{noise}'; exec {words}")
    found = greet(there)
    assert found.trouble is None
