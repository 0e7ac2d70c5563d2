"""The measured side of event_loop_gap.py: the turns of GPU Studio's event loop in a minute of use.

It prints a line of JSON for each turn that took a few milliseconds, `tests.bench.heartbeat.Turn`.
The engine is the real one; the sensors are those of this PC, or those of two invented cards.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from typing import Any

from PySide6.QtCore import Qt, QTimer
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QComboBox,
    QTabBar,
    QTabWidget,
    QWidget,
)

from gpu_studio.core.race.pictures import PICTURES
from gpu_studio.model.engine_session import EngineState
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.theme import styled_application
from tests.bench.driver import Driver
from tests.bench.heartbeat import Heartbeat
from tests.driving import window as driving
from tests.fakes.pc import SteadySensors, reading, two_cards

_READ_MS = 1000
_LOOK_S = 0.3  # a person looks at a page
_SIZES = ((960, 540), (1600, 900), (1280, 800))
_CHECK_MINUTES = 0  # each stage does as little as it can


class Minute:
    """A minute of use, a phase after the other. What the script does itself is left out.

    Args:
        driver: the window, shown.
        heartbeat: counts its turns.
    """

    def __init__(self, driver: Driver, heartbeat: Heartbeat) -> None:
        self._driver, self._heartbeat = driver, heartbeat
        self._window = driver.window
        self.phases: dict[str, Callable[[], None]] = {
            "tabs": self._visit_tabs,
            "benchmark": self._run_benchmark,
            "race": self._race,
            "memory": self._break_memory,
            "check": self._check,
            "resizing": self._resize,
            "theme": self._change_theme,
        }

    def live(self, names: list[str]) -> None:
        """Start, go through some phases, and close."""
        self._heartbeat.phase = "start"
        session = self._driver.studio.session
        self._wait(lambda: session.state is not EngineState.ABSENT)
        self._driver.wait_ready()
        self._look(1.0)
        for name in names:
            self._begin(name)
            self.phases[name]()
        self._begin("close")
        self._window.close()
        QApplication.processEvents()
        self._begin("")
        self._heartbeat.stop()

    def _begin(self, phase: str) -> None:
        self._heartbeat.end_turn()
        with self._heartbeat.aside():
            for turn in self._heartbeat.turns:
                print(json.dumps(turn), flush=True)
            self._heartbeat.turns.clear()
        self._heartbeat.phase = phase

    def _visit_tabs(self) -> None:
        tabs = self._find("tabs", QTabWidget)
        for index in (*range(tabs.count()), 0):
            self._turn_to(tabs.tabBar(), index)
            for bar in self._all(QTabBar, tabs.widget(index)):
                for page in (*range(bar.count()), 0):
                    self._turn_to(bar, page)

    def _run_benchmark(self) -> None:
        self._open("Benchmark")
        self._type("benchmark.sizes", "64, 512")
        for workload in ("elementwise", "matmul"):
            self._choose("benchmark.workload", workload)
            self._press("benchmark.run")
            self._wait(lambda: self._driver.benchmark.state.is_busy)
            self._wait(lambda: not self._driver.benchmark.state.is_busy)
        for view in ("time", "sizes"):
            self._press(f"benchmark.view.{view}")
            self._look()

    def _race(self) -> None:
        self._open("Race")
        with self._heartbeat.aside():
            race = self._window.findChild(RaceTab).race
        for picture in PICTURES:
            self._press(f"race.picture.{picture.name}")
            self._wait(lambda: race.can_run)
            self._press("race.run")
            self._wait(lambda: race.state.is_busy)
            self._wait(lambda: race.verdict is not None and not race.state.is_busy)
            self._look(1.0)

    def _break_memory(self) -> None:
        self._open("Memory", "Now")
        self._press("memory.oom.run")
        self._wait(self._find("memory.oom.stop", QAbstractButton).isEnabled)
        self._wait(self._find("memory.oom.run", QAbstractButton).isEnabled)
        self._look()
        self._open("Memory", "Segment map")
        self._open("Memory", "Will it fit?")
        self._open("Memory", "Read an error")
        self._press("memory.error.example")
        self._look()

    def _check(self) -> None:
        self._open("Check")
        with self._heartbeat.aside():
            check = self._window.findChild(CheckTab).check
            check.choose(minutes=_CHECK_MINUTES)
        self._press("check.run")
        self._wait(lambda: check.record is not None)
        self._look(1.0)

    def _resize(self) -> None:
        tabs = self._find("tabs", QTabWidget)
        for index in range(tabs.count()):
            self._turn_to(tabs.tabBar(), index)
            for width, height in _SIZES:
                self._window.resize(width, height)
                self._look()

    def _change_theme(self) -> None:
        tabs = self._find("tabs", QTabWidget)
        for index in range(tabs.count()):
            self._turn_to(tabs.tabBar(), index)
            for theme in ("dark", "light"):
                self._driver.studio.settings.change(theme=theme)
                self._look()

    def _look(self, seconds: float = _LOOK_S) -> None:
        end_s = time.perf_counter() + seconds
        self._wait(lambda: time.perf_counter() >= end_s)

    def _wait(self, is_so: Callable[[], object]) -> None:
        def seen() -> object:
            with self._heartbeat.aside():
                return is_so()

        self._driver.wait(seen)

    def _find(self, name: str, kind: type[Any]) -> Any:
        with self._heartbeat.aside():
            return driving.find(self._window, name, kind)

    def _all(self, kind: type[Any], root: Any) -> list[Any]:
        with self._heartbeat.aside():
            return [widget for widget in root.findChildren(kind) if widget.isVisible()]

    def _open(self, tab: str, page: str = "") -> None:
        bar = self._find("tabs", QTabWidget).tabBar()
        self._turn_to(bar, _titles(bar).index(tab))
        if page:
            pages = self._find(f"{tab.lower()}.pages", QTabBar)
            self._turn_to(pages, _titles(pages).index(page))

    def _turn_to(self, bar: QTabBar, index: int) -> None:
        place = bar.tabRect(index).center()
        QTest.mouseClick(bar, Qt.MouseButton.LeftButton, pos=place)
        self._look()

    def _press(self, name: str) -> None:
        button = self._find(name, QAbstractButton)
        self._wait(button.isEnabled)
        if button.isVisible():
            driving.bring_into_sight(button)
            self._look(0.05)
        button.click()
        self._look(0.05)

    def _choose(self, name: str, value: object) -> None:
        box = self._find(name, QComboBox)
        box.setCurrentIndex(box.findData(value))
        box.activated.emit(box.currentIndex())
        self._look()

    def _type(self, name: str, words: str) -> None:
        field = self._find(name, QWidget)
        QTest.keyClick(field, Qt.Key.Key_A, Qt.KeyboardModifier.ControlModifier)
        for letter in words:
            QTest.keyClick(field, letter)
            self._look(0.02)


def _titles(bar: QTabBar) -> list[str]:
    return [bar.tabText(index).replace("&", "") for index in range(bar.count())]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--phases", help="some of them, with commas between")
    parser.add_argument("--cards", action="store_true", help="readings of two invented cards")
    parser.add_argument("--owners", action="store_true", help="sample what runs in the turns")
    parser.add_argument("--budget-s", type=float, default=1.0)
    options = parser.parse_args()
    application = styled_application(sys.argv[:1])
    sensors = SteadySensors(two_cards()) if options.cards else None
    driver = Driver(budget_s=options.budget_s, sensors=sensors)
    readings = QTimer(driver.window)
    if sensors is not None:
        inventory = two_cards()
        readings.timeout.connect(lambda: sensors.send(reading(inventory, time.time())))
        readings.start(_READ_MS)
    driver.window.show()
    QApplication.processEvents()  # the first paint: start_up.py has its time
    heartbeat = Heartbeat(driver.window, samples=options.owners)
    minute = Minute(driver, heartbeat)
    names = options.phases.split(",") if options.phases else [*minute.phases]
    QTimer.singleShot(0, lambda: (minute.live(names), application.exit()))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
