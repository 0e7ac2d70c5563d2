"""The first minute with another PC: an attempt over the stand-in for ssh."""

from __future__ import annotations

import psutil
import pytest

from gpu_studio.app import SshPcs
from gpu_studio.core.notice import Tone
from gpu_studio.model.pc_attempt import PcAttempt
from tests.line.conftest import write_program


@pytest.fixture
def attempt(qapp):
    attempt = PcAttempt(SshPcs(None), qapp)
    yield attempt
    attempt.close()
    attempt.deleteLater()


def test_a_pc_is_tried_over_ssh(qtbot, attempt, there):
    attempt.start(there)
    qtbot.waitUntil(lambda: not attempt.is_running, timeout=60_000)
    assert attempt.is_usable, attempt.notices
    assert [one.tone for one in attempt.notices] == [Tone.GOOD] * 4


def test_ssh_s_question_is_shown_and_not_answered(qtbot, attempt, there, monkeypatch):
    monkeypatch.setenv("STAND_IN", "fail 255 Host key verification failed.")
    attempt.start(there)
    qtbot.waitUntil(lambda: not attempt.is_running, timeout=60_000)
    (notice,) = attempt.notices
    assert "“ssh me@attic”" in notice.next_step
    assert attempt.detail == "Host key verification failed."


def test_a_sensor_reader_that_ends_there_is_called_so(qtbot, attempt, there, play):
    play("greet()\nif sys.argv[-1] == 'sensors': hear(); sys.exit(3)")
    attempt.start(there)
    qtbot.waitUntil(lambda: not attempt.is_running, timeout=60_000)
    assert not attempt.is_usable
    assert "sensor reader of attic" in attempt.notices[-1].sentence


def test_a_cancelled_attempt_leaves_no_ssh(qtbot, attempt, there, tmp_path):
    mark = tmp_path / "started"
    lines = f"open({str(mark)!r}, 'w').write(f'{{os.getpid()}}\\n'); time.sleep(600)"
    write_program(tmp_path / "bin" / "ssh", f"import os, time; {lines}")
    attempt.start(there)
    qtbot.waitUntil(lambda: mark.exists() and mark.read_text().endswith("\n"))
    attempt.cancel()
    assert attempt.notices == ()
    qtbot.waitUntil(lambda: not attempt.children())
    assert not psutil.pid_exists(int(mark.read_text()))
