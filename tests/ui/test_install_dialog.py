"""Installing the build that a card needs, from the button to the new engine."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QProgressBar, QPushButton

from gpu_studio.app import build_window
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model.build_installation import InstallationState
from gpu_studio.model.studio import Studio
from tests.driving.window import click, find, open_tab, sees, text, wait_ready, wait_until
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, gt_1030
from tests.fakes.scripted_engine import Pause
from tests.fakes.scripted_installer import ScriptedInstaller

WITHOUT_PASCAL = described_with_cuda(
    torch_version="2.13.0+cu130", cuda_build="13.0", arch_list=("sm_75", "sm_86")
)


@pytest.fixture
def installer():
    return ScriptedInstaller()


@pytest.fixture
def window(qtbot, engines, settings, installer):
    """The window of a PC whose card this PyTorch has no code for."""
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    made = build_window(
        engine_factory=engines,
        sensor_source=SteadySensors(gt_1030()),
        settings=settings,
        installer=installer,
    )
    made.show()
    wait_ready(made.findChild(Studio))
    yield made
    made.close()
    made.deleteLater()


@pytest.fixture
def installation(window):
    return window.findChild(Studio).installation


def begin(window, installer):
    """Press the button of the verdict, agree, and wait for the setup."""
    click(window, "devices.verdict.action")
    click(window, "install.begin")
    wait_until(lambda: installer.tags)


def test_the_command_is_in_the_details_of_a_button_that_does_it(window):
    wait_until(lambda: sees(window, "devices.verdict.action"))
    assert "cu126" in find(window, "devices.verdict.action", QPushButton).text()
    assert not sees(window, "devices.verdict.command")
    click(window, "devices.verdict.more")
    assert sees(window, "devices.verdict.command")
    assert not find(window, "devices.compare").property("primary")
    open_tab(window, "Benchmark")
    assert "cu126" in find(window, "banner.action", QPushButton).text()
    click(window, "banner.action")
    wait_until(lambda: sees(window, "install"))


def test_the_new_engine_uses_what_was_installed(window, installer, engines, installation):
    begin(window, installer)
    assert installer.tags == ["cu126"]
    assert len(engines.made) == 2  # the second one has not been asked anything
    assert window.findChild(Studio).session.description is None
    installer.say("step", "3/4 Installing PyTorch 2.13.0 (cu126)…", 0.5)
    installer.say("detail", "downloading torch 45 %")
    wait_until(lambda: "45 %" in text(window, "install.detail"))
    assert text(window, "install.step").startswith("3/4")
    assert find(window, "install.progress", QProgressBar).value() == 500
    engines.scripts[DescribeEngine] = [described_with_cuda()]
    installer.say("done", "", 1.0)
    wait_until(lambda: installation.state is InstallationState.DONE)
    wait_ready(window.findChild(Studio))
    wait_until(lambda: find(window, "devices.verdict").property("tone") == "good")
    assert not sees(window, "devices.verdict.action")
    assert not sees(window, "install.begin")
    click(window, "install.close")
    wait_until(lambda: not sees(window, "install"))


def test_a_failure_says_why_and_the_old_engine_comes_back(window, installer, installation):
    begin(window, installer)
    installer.say("failed", "The disk is full.")
    wait_until(lambda: text(window, "install.detail") == "The disk is full.")
    assert installation.state is InstallationState.FAILED
    wait_ready(window.findChild(Studio))
    assert find(window, "devices.verdict").property("tone") == "failure"


def test_a_stop_waits_for_the_setups_own_end(window, installer, installation):
    begin(window, installer)
    installer.say("step", "3/4", 0.5)
    wait_until(lambda: text(window, "install.step") == "3/4")
    assert find(window, "install.close", QPushButton).text() == "Stop"
    click(window, "install.close")
    wait_until(lambda: installation.state is InstallationState.FAILED)
    wait_ready(window.findChild(Studio))
    assert sees(window, "install")
    assert find(window, "install.close", QPushButton).text() == "Close"


def test_a_window_that_is_closed_in_the_middle_ends_the_setup(window, installer, engines):
    begin(window, installer)
    window.close()
    assert installer.is_closed
    assert len(engines.made) == 2


def test_nothing_is_installed_while_the_engine_works(window, engines, installation):
    from gpu_studio.core.messages.run_messages import RunWorkload

    engines.scripts[RunWorkload] = [Pause()]
    studio = window.findChild(Studio)
    run = RunWorkload(run_id="1", workload="matmul", device="cpu", size=64, dtype="float32")
    studio.session.submit(run)
    wait_until(engines.latest.paused.is_set)
    click(window, "devices.verdict.action")
    assert not find(window, "install.begin", QPushButton).isEnabled()
    installation.begin("cu126")
    assert installation.state is InstallationState.ABSENT
    engines.latest.go()
