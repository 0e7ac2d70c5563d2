"""Take the README's pictures: ``python -m tests.screenshots DIR [--size 1280x800] [--theme dark]``.

The real window with the real engine and sensors of this PC, offscreen unless a platform is given;
every number in a picture was measured while it was taken.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QTimer
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QLabel,
    QMainWindow,
    QPushButton,
    QTabBar,
    QWidget,
)

from gpu_studio.app import build_window
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.driving.window import (
    choose,
    choose_data,
    click,
    find,
    open_tab,
    wait_ready,
    wait_until,
    write,
)

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT_S = 120.0


class Photographer:
    """Drives one window as a person would and keeps pictures of it."""

    def __init__(self, window: QMainWindow, folder: Path, suffix: str) -> None:
        self._window, self._folder, self._suffix = window, folder, suffix
        self._studio = window.findChild(Studio)

    def take_all(self) -> None:
        wait_ready(self._studio, LONGEST_WAIT_S)
        self.wait(lambda: self._studio.sensors.newest is not None)
        self.benchmark()
        self.show("Switcher")
        choose(self._window, "switcher.model", "Small conv")
        find(self._window, "switcher.pages", QTabBar).setCurrentIndex(1)
        self.press("switcher.move")
        self.wait(lambda: self._studio.session.is_free)
        self.take("switcher")
        find(self._window, "switcher.pages", QTabBar).setCurrentIndex(2)
        for button in ("switcher.lab.break", "switcher.lab.fix"):
            self.press(button)
            self.wait(lambda: self._studio.session.is_free)
        self.rest(300)
        self.take("switcher-pitfalls")
        self.memory()
        self.show("Devices")
        self.rest(3000)
        self.take("devices")

    def memory(self) -> None:
        """Break a card, or the modeled one if there is none, and look at all the pages."""
        self.show("Memory")
        pages = find(self._window, "memory.pages", QTabBar)
        pages.setCurrentIndex(2)
        self.rest(1500)
        self.take("memory-lab")
        choose_data(self._window, "memory.oom.preset", "fragmentation")
        run, compare = (
            find(self._window, f"memory.oom.{n}", QPushButton) for n in ("run", "compare")
        )
        self.press("memory.oom.run")
        self.wait(run.isEnabled)
        self.press("memory.oom.segments")
        self.take("memory-segments")
        pages.setCurrentIndex(2)
        self.wait(compare.isEnabled)
        self.press("memory.oom.compare")
        self.wait(run.isEnabled)
        self.rest(600)
        self.take("memory")
        pages.setCurrentIndex(0)
        self.rest(1000)
        self.take("memory-curves")
        pages.setCurrentIndex(3)
        self.press("memory.error.example")
        self.take("memory-error")
        pages.setCurrentIndex(4)
        self.wait(lambda: find(self._window, "memory.fit.sentence", QLabel).text())
        self.rest(300)
        self.take("memory-fit")

    def benchmark(self) -> None:
        self.show("Benchmark")
        write(self._window, "benchmark.sizes", "64, 128, 256, 512, 1024, 2048")
        for box in find(self._window, "benchmark.devices", QWidget).findChildren(QCheckBox):
            box.setChecked(box.isEnabled())
        find(self._window, "benchmark.mode.naive", QCheckBox).setChecked(True)
        self.press("benchmark.run")
        run = find(self._window, "benchmark.run", QPushButton)
        self.rest(1500)
        self.take("benchmark-live")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        self.press("benchmark.view.explanation")
        self.take("benchmark-explained")
        self.press("benchmark.view.history")
        self.take("benchmark-history")
        self.press("benchmark.view.sizes")
        self.take("benchmark")

    def show(self, title: str) -> None:
        open_tab(self._window, title)
        self.rest(600)

    def press(self, name: str) -> None:
        click(self._window, name)
        self.rest(400)

    def take(self, name: str) -> None:
        path = self._folder / f"{name}{self._suffix}.png"
        self._window.grab().save(str(path))
        sys.stderr.write(f"{path}\n")

    def wait(self, is_done: Callable[[], object]) -> None:
        wait_until(is_done, LONGEST_WAIT_S)

    def rest(self, milliseconds: int) -> None:
        """Let the window live for a while, so that there is something to see."""
        loop = QEventLoop()
        QTimer.singleShot(milliseconds, loop.quit)
        loop.exec()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="1280x800")
    parser.add_argument("--theme", choices=("light", "dark"), default="light")
    parser.add_argument("--suffix", default="")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    width, height = (int(part) for part in options.size.split("x"))
    application = QApplication([])
    settings = Settings(None)
    settings.change(theme=options.theme, budget_s=0.5)
    window = build_window(settings=settings)
    window.resize(width, height)
    window.show()
    try:
        Photographer(window, options.folder, options.suffix).take_all()
    finally:
        window.close()
        application.processEvents()


if __name__ == "__main__":
    main()
