import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication, QTimer

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.ui.main_window import MainWindow
from tests import random_walk
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import reading, two_cards
from tests.patience import PATIENCE_S

_ROOT = Path(__file__).resolve().parents[1]
_STEPS = 150
_LONG_STEPS = 80
_LONGEST_S = 25 * PATIENCE_S


@pytest.mark.parametrize("inventory", [two_cards()])
def test_a_walk_over_the_window_leaves_it_whole(
    qtbot, studio, theme, engines, sensor_source, tmp_path
):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: studio.session.description is not None)
    dialogs = QTimer(window)
    dialogs.timeout.connect(random_walk.close_what_is_open)
    dialogs.start(5)
    walker, walked = random_walk.Walker(window, 1, tmp_path), []
    for number in range(_STEPS):
        walked.append(walker.step())
        if number % 10 == 0:
            sensor_source.send(reading(two_cards(), float(number)))
        QCoreApplication.processEvents()
        assert window.isVisible(), walked[-3:]
    window.close()


@pytest.mark.skipif(sys.platform != "linux", reason="others keep what was freed")
@pytest.mark.parametrize("share_kept", [0.0, 0.2])
def test_the_walk_notes_memory_that_is_never_freed(share_kept):
    account, saved = random_walk.Account(), []
    account.weigh(0)
    for steps in (random_walk._SEEN_AFTER, 2 * random_walk._SEEN_AFTER):
        account.weigh(steps)
        saved.append(b"k" * int(share_kept * account.memory[0][2]))
    account.judge_memory()
    assert [trouble.partition(" by ")[0] for trouble in account.trouble] == (
        ["the memory grew"] if share_kept else []
    )


@pytest.mark.timeout(2 * _LONGEST_S)
def test_hundreds_of_steps_with_a_real_engine_bring_no_trouble():
    walk = [sys.executable, "-m", random_walk.__name__, "--steps", str(_LONG_STEPS)]
    ended = subprocess.run(
        walk, cwd=_ROOT, capture_output=True, text=True, encoding="utf-8",
        timeout=_LONGEST_S, check=False,
    )  # fmt: skip
    sentence = f"exit status {ended.returncode}\n{ended.stdout}\n{ended.stderr}"
    assert ended.returncode == 0, sentence
    assert "check: partial" in ended.stdout.splitlines(), sentence
    assert ended.stdout.splitlines()[-1] == f"walked {_LONG_STEPS} steps, 0 troubles", sentence
