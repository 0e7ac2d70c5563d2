"""Every page of the window, without and with results, over scripts: all numbers are invented."""

import tempfile
from collections.abc import Collection
from pathlib import Path

from PySide6.QtGui import QImage

from gpu_studio.app import build_window
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.pages import PAGES, Page, go, scripts_of_all_pages, settle, use_everything
from tests.driving.window import wait_ready, wait_until
from tests.fakes.pc import SteadySensors, long_names, reading
from tests.fakes.scripted_engine import Engines

# Logical pixels, and device pixels for each of them.
SIZES = ((900, 520, 1), (1280, 800, 1), (960, 540, 2))
THEMES = ("light", "dark")


def take_every_page(folder: Path, tabs: Collection[str]) -> None:
    """Take the pages of some tabs, on a PC whose devices have long names.

    Args:
        folder: gets a folder for each page.
        tabs: the titles of the tabs.
    """
    engines, settings, inventory = Engines(), Settings(None), long_names()
    engines.scripts |= scripts_of_all_pages()
    sensors = SteadySensors(inventory)
    data = tempfile.TemporaryDirectory()  # of the history
    window = build_window(
        engine_factory=engines, sensor_source=sensors, settings=settings,
        data_folder=Path(data.name),
    )  # fmt: skip
    window.show()
    pages = [page for page in PAGES if page.tab in tabs]
    try:
        wait_ready(window.findChild(Studio))
        sensors.send(reading(inventory, 1.0))
        _take_state(window, settings, folder, pages, "1-empty")
        use_everything(window)
        _take_state(window, settings, folder, pages, "2-result")
    finally:
        window.close()
        data.cleanup()


def _take_state(
    window: MainWindow, settings: Settings, folder: Path, pages: list[Page], state: str
) -> None:
    for theme in THEMES:
        settings.change(theme=theme)
        for width, height, scale in SIZES:
            window.resize(width, height)
            for page in pages:
                go(window, page)
                title = "".join(letter for letter in page.title.lower() if letter.isalnum())
                path = folder / title / f"{state}-{width}x{height}-{theme}.png"
                path.parent.mkdir(parents=True, exist_ok=True)
                _take(window, scale).save(str(path))


def _take(window: MainWindow, scale: float) -> QImage:
    for plot in window.findChildren(LivePlot):
        if plot.isVisible() and not plot.visibleRegion().isEmpty():
            wait_until(lambda plot=plot: plot.plot is not None)
            plot.refresh()  # its next frame may be far
    settle()
    picture = QImage(window.size() * scale, QImage.Format.Format_RGB32)
    picture.setDevicePixelRatio(scale)
    window.render(picture)
    return picture
