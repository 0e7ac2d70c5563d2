"""Take pictures of the window, offscreen unless a platform is given.

``python -m tests.screenshots DIR [--size 1280x800] [--theme dark]`` takes the README's: the real
window with the real engine and sensors of this PC. Every number was measured while it was taken.

``python -m tests.screenshots DIR --every-page [--font "DejaVu Sans"]`` shows how the window looks:
every page while the engine starts, before its first result, with one, and with a finding above it;
light and dark, in four sizes, in each font that is named; and a contact sheet of each page. The
engine and the sensors are scripts: every number is invented, and no such picture is for the README.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QPoint, QSize, Qt, QTimer
from PySide6.QtGui import QFont, QFontDatabase, QImage, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QCheckBox,
    QLabel,
    QMainWindow,
    QPushButton,
    QTabBar,
    QTableView,
    QWidget,
)

from gpu_studio.app import build_window
from gpu_studio.core.protocol import DescribeEngine
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui import theme as window_theme
from tests.driving.pages import PAGES, go, scripts_of_all_pages, settle, use_everything
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
from tests.fakes.pc import SteadySensors, reading, two_cards
from tests.fakes.scripted_engine import Engines, Pause

if TYPE_CHECKING:
    from collections.abc import Callable

LONGEST_WAIT_S = 120.0
# Logical pixels, and device pixels for each of them: half of 1920 × 1080 comes first.
SIZES = ((960, 540, 2), (1024, 640, 1), (1280, 800, 1), (1920, 1080, 1))
THEMES = ("light", "dark")
_THUMBNAIL, _GAP = 640, 12


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
        run = find(self._window, "benchmark.run", QPushButton)
        self.press("benchmark.run")
        results = find(self._window, "benchmark.results", QTableView).model()
        self.wait(lambda: results.rowCount() > 1)
        self.rest(300)
        self.take("benchmark-live")
        self.wait(lambda: run.isEnabled() and self._studio.session.is_free)
        self.press("benchmark.clear")
        find(self._window, "benchmark.mode.naive", QCheckBox).setChecked(True)
        self.press("benchmark.run")
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


class EveryPage:
    """Takes all pages of one window over scripts, in one font."""

    def __init__(self, folder: Path, font: str) -> None:
        self._folder, self._font = folder, font.replace(" ", "-").lower()
        self._taken: dict[str, list[Path]] = {}
        self._readings = 0
        self._settings = Settings(None)
        self._engines = Engines()
        self._engines.scripts |= scripts_of_all_pages()
        self._sensors = SteadySensors(two_cards())

    def take_all(self) -> None:
        """Take each state in turn; one state follows from the one before."""
        described = self._engines.scripts[DescribeEngine]
        self._engines.scripts[DescribeEngine] = [Pause(), *described]
        self._window = build_window(
            engine_factory=self._engines, sensor_source=self._sensors, settings=self._settings
        )
        studio = self._window.findChild(Studio)
        self._window.show()
        try:
            wait_until(lambda: self._engines.made and self._engines.latest.paused.is_set())
            self._take_state("1-starting")
            self._engines.scripts[DescribeEngine] = described  # an experiment's engine starts too
            self._engines.latest.go()
            wait_ready(studio, LONGEST_WAIT_S)
            self._read_sensors()
            wait_until(lambda: studio.sensors.newest is not None)
            self._take_state("2-empty")
            use_everything(self._window)
            self._take_state("3-result")
            studio.headlines.tell("Something was found.", "This is what you can do about it.")
            self._take_state("4-finding")
        finally:
            self._window.close()
        for page, paths in self._taken.items():
            self._make_sheet(page, paths)

    def _take_state(self, state: str) -> None:
        for look in THEMES:
            self._settings.change(theme=look)
            for width, height, scale in SIZES:
                self._window.resize(width, height)
                settle()
                self._read_sensors()
                for page in PAGES:
                    go(self._window, page)
                    self._take(page.title, f"{state}-{width}x{height}-{look}", scale)

    def _read_sensors(self) -> None:
        """Send a reading: a sensor that says nothing for long is reported as silent."""
        self._readings += 1
        self._sensors.send(reading(two_cards(), float(self._readings)))

    def _take(self, page: str, name: str, scale: int) -> None:
        title = "".join(letter for letter in page.lower() if letter.isalnum())
        path = self._folder / title / f"{self._font}-{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        picture = QImage(self._window.size() * scale, QImage.Format.Format_RGB32)
        picture.setDevicePixelRatio(scale)
        self._window.render(picture)
        picture.save(str(path))
        self._taken.setdefault(title, []).append(path)

    def _make_sheet(self, page: str, paths: list[Path]) -> None:
        """Put all pictures of a page on one, small, a row for each state and look."""
        across = len(SIZES)
        cell = QSize(_THUMBNAIL, _THUMBNAIL * 5 // 8) + QSize(_GAP, _GAP)
        rows = -(-len(paths) // across)
        sheet = QImage(cell.width() * across, cell.height() * rows, QImage.Format.Format_RGB32)
        sheet.fill(Qt.GlobalColor.gray)
        painter = QPainter(sheet)
        for number, path in enumerate(paths):
            small = QImage(str(path)).scaled(
                cell - QSize(_GAP, _GAP),
                Qt.AspectRatioMode.KeepAspectRatio,
                Qt.TransformationMode.SmoothTransformation,
            )
            row, column = divmod(number, across)
            painter.drawImage(QPoint(column * cell.width(), row * cell.height()), small)
        painter.end()
        path = self._folder / f"{self._font}-{page}.png"
        sheet.save(str(path))
        sys.stderr.write(f"{path}\n")


def take_every_page(folder: Path, fonts: list[str]) -> None:
    """Take every page in each of the fonts that this PC has; the others are named and left out."""
    there = set(QFontDatabase.families())
    system_font = window_theme.application_font
    for family in fonts:
        if family not in there:
            sys.stderr.write(f"{family} is not installed\n")
            continue

        def chosen(system: QFont, family: str = family) -> QFont:
            font = system_font(system)
            font.setFamilies([family])
            return font

        window_theme.application_font = chosen
        EveryPage(folder, family).take_all()
    window_theme.application_font = system_font


def take_real_pictures(options: argparse.Namespace) -> None:
    """Take the README's pictures."""
    width, height = (int(part) for part in options.size.split("x"))
    settings = Settings(None)
    settings.change(theme=options.theme, budget_s=0.5)
    window = build_window(settings=settings)
    window.resize(width, height)
    window.show()
    try:
        Photographer(window, options.folder, options.suffix).take_all()
    finally:
        window.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="1280x800")
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--suffix", default="")
    parser.add_argument("--every-page", action="store_true", help="with invented numbers")
    parser.add_argument("--font", action="append", help="for --every-page; may be given again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    if options.every_page:
        take_every_page(options.folder, options.font or ["DejaVu Sans"])
    else:
        take_real_pictures(options)
    application.processEvents()


if __name__ == "__main__":
    main()
