"""The README's pictures: a real window with the engine and the sensors of this PC."""

import sys
import tempfile
from collections.abc import Callable, Collection
from pathlib import Path

import msgspec
from PySide6.QtCore import QEventLoop, Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QCheckBox,
    QLabel,
    QLineEdit,
    QMainWindow,
    QPushButton,
    QTabBar,
    QTableView,
    QToolButton,
    QWidget,
)

from gpu_studio.app import build_window
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.race.stage_view import film_order
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.plots.live_plot import LivePlot
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.switcher.switcher_tab import SwitcherTab
from tests.driving.memory import fill_card
from tests.driving.pages import settle
from tests.driving.window import (
    choose,
    choose_data,
    click,
    drawn,
    find,
    open_tab,
    sees,
    wait_ready,
    wait_until,
    write,
)

LONGEST_WAIT_S = 120.0
_FIRST_START_SIZE = (900, 520)  # the smallest that the window supports: the page is nearly empty
_BODIES = 30_000  # the swarm moves on a CPU as well
_ANIMATION_SIZE = (720, 405)
_SENSORS_MS = 20_000
_FEWEST_SAMPLES = 10  # with fewer, the live plot looks empty


def take_first_start(folder: Path, suffix: str, settings: Settings) -> None:
    """Take what the installed program shows first: the real page, before a download."""
    with tempfile.TemporaryDirectory() as engines:
        window = build_window(settings=settings, builds=BuildShelf(Path(engines)))
        studio = window.findChild(Studio)
        window.resize(*_FIRST_START_SIZE)
        window.show()
        try:
            wait_until(lambda: studio.sensors.inventory is not None, LONGEST_WAIT_S)
            wait_until(lambda: sees(window, "setup.page"), LONGEST_WAIT_S)
            settle()
            save(window, folder / f"first-start{suffix}.png")
        finally:
            window.close()


def save(window: QMainWindow, path: Path) -> None:
    window.grab().save(str(path))
    sys.stderr.write(f"{path}\n")


class Photographer:
    """Drives one window as a person would and keeps pictures of it."""

    def __init__(self, window: QMainWindow, folder: Path, suffix: str) -> None:
        self._window, self._folder, self._suffix = window, folder, suffix
        self._studio = window.findChild(Studio)

    def take_all(self, tabs: Collection[str]) -> None:
        wait_ready(self._studio, LONGEST_WAIT_S)
        self.wait(lambda: self._studio.sensors.newest is not None)
        for take in (
            self.race, self.benchmark, self.switcher, self.memory, self.check, self.devices
        ):  # fmt: skip
            if take.__name__.capitalize() in tabs:
                take()

    def devices(self) -> None:
        """Look at the sensors of the last minute."""
        self.show("Devices")
        self.rest(_SENSORS_MS)
        self.take("devices")

    def switcher(self) -> None:
        """Move a model to the last device, and starve it."""
        self.show("Switcher")
        choose(self._window, "switcher.model", "Small conv")
        self.press("switcher.move")
        self.wait(lambda: self._studio.session.is_free)
        self.take("switcher")
        find(self._window, "switcher.pages", QTabBar).setCurrentIndex(1)
        self._window.findChild(SwitcherTab).lessons.choose(lesson="starved_gpu")
        for button in ("switcher.lab.break", "switcher.lab.fix"):
            self.press(button)
            self.wait(lambda: self._studio.session.is_free)
        self.rest(300)
        self.take("switcher-pitfalls")

    def memory(self) -> None:
        """Break a card, or the simulated one if there is none, and look at all the pages."""
        self.show("Memory")
        pages = find(self._window, "memory.pages", QTabBar)
        run = find(self._window, "memory.oom.run", QPushButton)
        self.rest(1500)
        self.take("memory-empty")
        fill_card(self._window)
        self.wait(run.isEnabled)
        self.rest(2500)
        self.take("memory")
        fill_card(self._window, "memory.oom.preset.fragmentation")
        self.wait(run.isEnabled)
        self.press("memory.oom.segments")
        self.rest(500)
        self.take("memory-segments")
        pages.setCurrentIndex(2)
        self.wait(lambda: find(self._window, "memory.fit.verdict", QLabel).text())
        self.rest(300)
        self.take("memory-fit")
        pages.setCurrentIndex(3)
        self.press("memory.error.example")
        self.rest(500)
        self.take("memory-error")

    def race(self) -> None:
        """Race each picture: before, in the middle, at the end, and as an animation."""
        self.show("Race")
        tab = self._window.findChild(RaceTab)
        race = tab.race
        for picture in ("learn", "paint", "grow", "swarm"):
            self.press(f"race.picture.{picture}")
            if picture == "swarm":
                race.choose(size=_BODIES)
            self.take(f"race-{picture}-start")
            self.press("race.run")
            sentence = find(self._window, "race.sentence", QLabel)
            self.wait(lambda shown=sentence: "so far" in shown.text() or race.verdict)
            self.take(f"race-{picture}-middle")
            self.wait(lambda: race.verdict is not None)
            self.rest(300)
            self.take(f"race-{picture}")
            order = film_order(race.moment(tab.page.roles))
            order = msgspec.structs.replace(order, size=_ANIMATION_SIZE)
            path = self._folder / f"race-{picture}{self._suffix}.webp"
            race.files.save(order.encode(), path)
            self.wait(path.exists)
        self.wait(lambda: self._studio.session.is_free)

    def check(self) -> None:
        """Check for a minute: once some memory is tested, and at the end."""
        self.show("Check")
        choose_data(self._window, "check.minutes", 1)
        QTest.keyClick(find(self._window, "check.minutes"), Qt.Key.Key_Return)
        check = self._window.findChild(CheckTab).check
        self.press("check.run")
        self.wait(lambda: check.record or (check.run.coverage and check.run.coverage.tested_bytes))
        self.rest(400)
        self.take("check")
        self.wait(find(self._window, "check.run", QPushButton).isEnabled)
        self.rest(300)
        self.take("check-result")

    def benchmark(self) -> None:
        self.show("Benchmark")
        write(self._window, "benchmark.sizes", "64, 128, 256, 512, 1024, 2048")
        find(self._window, "benchmark.sizes", QLineEdit).setCursorPosition(0)
        for box in find(self._window, "benchmark.devices", QWidget).findChildren(QCheckBox):
            box.setChecked(box.isEnabled())
        run = find(self._window, "benchmark.run", QPushButton)
        self.press("benchmark.run")
        results = find(self._window, "benchmark.results", QTableView).model()
        self.wait(lambda: results.rowCount() > 1 and self.most_samples_drawn() >= _FEWEST_SAMPLES)
        # At once: a moment later, the plot is of another size.
        save(self._window, self._folder / f"benchmark-live{self._suffix}.png")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        self.press("benchmark.clear")
        find(self._window, "benchmark.mode.naive", QCheckBox).setChecked(True)
        self.press("benchmark.run")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        find(self._window, "benchmark.why.more", QToolButton).click()
        self.take("benchmark-explained")
        find(self._window, "benchmark.pages", QTabBar).setCurrentIndex(1)
        self.take("benchmark-history")
        find(self._window, "benchmark.pages", QTabBar).setCurrentIndex(0)
        find(self._window, "benchmark.why.more", QToolButton).click()
        self.press("benchmark.view.sizes")
        self.take("benchmark")
        self.by_vulkan()

    def by_vulkan(self) -> None:
        """Compare the CPU with what computes by Vulkan, on a PC without a card Mesa's llvmpipe."""
        adapters = self._studio.adapters
        self.press("benchmark.clear")
        self.press("benchmark.adapters")
        self.wait(lambda: adapters.described is not None)
        if not adapters.adapters:
            return
        choose_data(self._window, "benchmark.workload", "matmul")
        write(self._window, "benchmark.sizes", "32, 64, 128")
        run = find(self._window, "benchmark.run", QPushButton)
        self.press("benchmark.run")
        self.wait(lambda: run.isEnabled() and adapters.session.state is EngineState.ABSENT)
        self.press("benchmark.view.time")
        self.take("benchmark-vulkan")

    def most_samples_drawn(self) -> int:
        """Return how many samples the longest curve of the live plot shows."""
        keys = find(self._window, "benchmark.plot", LivePlot).curve_keys
        return max((len(drawn(self._window, "benchmark.plot", key)[0]) for key in keys), default=0)

    def show(self, title: str) -> None:
        open_tab(self._window, title)
        self.rest(600)

    def press(self, name: str) -> None:
        click(self._window, name)
        self.rest(400)

    def take(self, name: str) -> None:
        settle()  # a part that has just appeared moves the others once more
        for plot in self._window.findChildren(LivePlot):
            if plot.isVisible():
                self.wait(lambda plot=plot: plot.plot is not None)
                plot.refresh()
        settle()
        save(self._window, self._folder / f"{name}{self._suffix}.png")

    def wait(self, is_done: Callable[[], object]) -> None:
        wait_until(is_done, LONGEST_WAIT_S)

    def rest(self, milliseconds: int) -> None:
        """Let the window live for a while, so that there is something to see."""
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()
