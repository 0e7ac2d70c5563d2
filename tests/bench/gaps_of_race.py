"""The measured side of showing.py: the window's gaps while a race runs and its frames arrive."""

from __future__ import annotations

import sys

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from gpu_studio.model.pages import RACE
from gpu_studio.ui.race.race_tab import RaceTab
from tests.bench.driver import Driver
from tests.bench.gaps_of_studio import report
from tests.bench.heartbeat import Heartbeat
from tests.driving.window import click


def measure(driver: Driver, heartbeat: Heartbeat) -> None:
    driver.wait_ready()
    driver.studio.go_to(RACE, starts=True)
    tab = driver.window.findChild(RaceTab)
    assert tab is not None
    race = tab.race
    driver.wait(lambda: race.can_run)
    heartbeat.take_longest()

    def run() -> None:
        click(tab, "race.run")
        driver.wait(lambda: race.verdict is not None and not race.state.is_busy)

    report(heartbeat, run)
    driver.window.close()
    QApplication.exit(0)


def main() -> int:
    application = QApplication(sys.argv[:1])
    driver = Driver(budget_s=1.0)
    heartbeat = Heartbeat(driver.window)
    driver.window.show()
    QApplication.processEvents()  # the first paint
    QTimer.singleShot(0, lambda: measure(driver, heartbeat))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
