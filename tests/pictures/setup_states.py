"""The page that installs the engine in each of its states, and the line above the tabs.

The installer and the shelf are scripts: every number is invented.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING
from unittest.mock import patch

from PySide6.QtWidgets import QPushButton

from gpu_studio.app import build_window
from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.trouble import disk_full, missing_runtime
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model import engine_handover
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.driving.pages import go, page_called, settle
from tests.driving.window import click, find, sees, wait_until
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, gt_1030, reading
from tests.fakes.scripted_builds import FakeShelf, ScriptedBuildInstaller, record
from tests.fakes.scripted_engine import Engines

if TYPE_CHECKING:
    from tests.pictures.album import Album

PAGE = "Setup"
_DOWNLOADED, _DOWNLOAD = 77_000_000, 207_000_000
_FOLDER = "/home/anybody/.local/share/gpu-studio/engines"


class SetupStates:
    """Takes the page of one window that installs its engine, from its offer to its end.

    Args:
        album: gets the pictures.
    """

    def __init__(self, album: Album) -> None:
        self._album = album
        self._settings = Settings(None)
        self._store = FakeShelf()
        self._installer = ScriptedBuildInstaller(self._store)
        self._sensors = SteadySensors(gt_1030(), [reading(gt_1030())])
        self._readings = 0

    def take_all(self) -> None:
        """Take each state in turn; one state follows from the one before."""
        engines = Engines()
        engines.scripts[DescribeEngine] = [described_with_cuda()]
        installer = self._installer
        with (
            patch("gpu_studio.app.BuildInstallChild", lambda *_: installer),
            patch.object(engine_handover, "_SETTLE_MS", 1),
        ):
            self._window = build_window(
                engine_factory=engines,
                sensor_source=self._sensors,
                settings=self._settings,
                builds=self._store,
            )
            self._studio = self._window.findChild(Studio)
            self._window.show()
            try:
                wait_until(lambda: self._studio.sensors.newest is not None)
                self._take_absent()
                self._take_at_work()
                self._take_paused()
                self._take_failed()
                self._take_done()
            finally:
                self._window.close()

    def _take_absent(self) -> None:
        """Take the offer, its reasons, and the tabs of a program without an engine."""
        wait_until(lambda: sees(self._window, "setup.begin"))
        self._take("1-absent")
        click(self._window, "setup.why")
        self._take("1-absent-why")
        click(self._window, "setup.why")
        self._take_line("1-absent-line", "Devices", "Race", "LIVE", "Check")

    def _take_at_work(self) -> None:
        click(self._window, "setup.begin")
        wait_until(lambda: self._installer.calls)
        self._say(InstallStage.DOWNLOADING, left_s=65.0)
        self._take("3-loading")
        self._take_line("3-loading-line", "Devices")
        self._say(InstallStage.RESUMING)
        self._take("3-resuming")
        self._say(InstallStage.TESTING)
        self._take("3-testing")

    def _take_paused(self) -> None:
        self._installer.answers_pause = False
        click(self._window, "setup.pause")
        self._take("3-pausing")
        self._say(InstallStage.PAUSED)
        wait_until(lambda: sees(self._window, "setup.go_on"))
        self._take("3-paused")
        self._take_line("3-paused-line", "Devices")
        click(self._window, "setup.go_on")
        wait_until(lambda: len(self._installer.calls) == 2)

    def _take_failed(self) -> None:
        self._installer.fail(disk_full(_FOLDER, 2_650_000_000))
        wait_until(lambda: sees(self._window, "setup.again"))
        self._take("7-failed")
        self._take_line("7-failed-line", "Devices")
        click(self._window, "setup.again")
        wait_until(lambda: len(self._installer.calls) == 3)
        self._store.kept["cpu"] = record("cpu").broken("its test failed", 700_000_000)
        self._installer.fail(missing_runtime("DLL load failed while importing _C"))
        wait_until(lambda: sees(self._window, "setup.open"))
        self._take("7-no-runtime")
        click(self._window, "setup.again")
        wait_until(lambda: len(self._installer.calls) == 4)

    def _take_done(self) -> None:
        """Take the CPU's engine at work while the card's comes, and both at the end."""
        self._installer.finish(record("cpu"))
        wait_until(lambda: len(self._installer.calls) == 5)
        self._say(InstallStage.DOWNLOADING, left_s=580.0)
        self._take("4-first-done")
        self._take_line("4-first-done-line", "Devices", "LIVE")
        self._installer.finish(record("cu126", on_card=True))
        wait_until(lambda: self._studio.builds.engine.in_use == "cu126")
        wait_until(lambda: self._studio.session.is_free)
        wait_until(find(self._window, "setup.build.cu126.repair", QPushButton).isEnabled)
        self._take("4-done")
        self._store.may_remove.clear()
        self._studio.builds.remove("cpu")
        self._take("4-removing")
        self._store.may_remove.set()
        wait_until(lambda: not self._studio.builds.removing)

    def _say(self, stage: InstallStage, left_s: float | None = None) -> None:
        self._installer.say(stage, _DOWNLOADED, _DOWNLOAD, left_s=left_s)
        wait_until(lambda: self._studio.builds.progress.stage is stage)
        settle()

    def _read_sensors(self) -> None:
        """Send a reading: a sensor that says nothing for long is reported as silent."""
        self._readings += 1
        self._sensors.send(reading(gt_1030(), float(self._readings)))

    def _take(self, state: str) -> None:
        self._album.take_state(
            self._window, self._settings, state, {PAGE: settle}, prepare=self._read_sensors
        )

    def _take_line(self, state: str, *titles: str) -> None:
        """Take some pages with the line above them, under the name of the page that installs."""
        click(self._window, "setup.close")
        for title in titles:
            show = partial(go, self._window, page_called(title))
            name = f"{state}-{title.lower()}"
            self._album.take_state(
                self._window, self._settings, name, {PAGE: show}, prepare=self._read_sensors
            )
        click(self._window, "setup.line.show")
