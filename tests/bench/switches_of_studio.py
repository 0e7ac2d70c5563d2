"""The measured side of switches.py: GPU Studio's tabs for the first time, then its themes.

It prints two lines of processor seconds: one of each tab's first switch, one of each change.
"""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QTabWidget

from gpu_studio.ui.lazy_page import idle_work
from gpu_studio.ui.theme import styled_application
from tests.bench.driver import Driver
from tests.driving.window import find

if TYPE_CHECKING:
    from collections.abc import Callable

_THEMES = ("dark", "light")


def own_work_s(act: Callable[[], object]) -> float:
    """Return the processor time of this thread until the window has answered and is painted."""
    begun_s = time.thread_time()
    act()
    QApplication.processEvents()
    return time.thread_time() - begun_s


def put_on(change: Callable[..., None], theme: str) -> None:
    """Change the theme, which takes several turns of the event loop."""
    change(theme=theme)
    while not idle_work().is_done:
        QApplication.processEvents()


def measure(driver: Driver) -> None:
    driver.wait_ready()
    tabs = find(driver.window, "tabs", QTabWidget)
    others = [index for index in range(tabs.count()) if index != tabs.currentIndex()]
    print(*(own_work_s(lambda index=index: tabs.setCurrentIndex(index)) for index in others))
    changes = []
    for index in range(tabs.count()):
        tabs.setCurrentIndex(index)
        for theme in _THEMES:
            QApplication.processEvents()
            change = driver.studio.settings.change
            changes.append(own_work_s(lambda change=change, theme=theme: put_on(change, theme)))
    print(*changes, flush=True)
    driver.window.close()
    QApplication.exit(0)


def main() -> int:
    application = styled_application(sys.argv[:1])
    driver = Driver(budget_s=1.0)
    driver.studio.settings.change(theme="light")
    driver.window.show()
    QTimer.singleShot(0, lambda: measure(driver))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
