"""The window at many widths, in every tab and every page: a program, since a fault may crash it.

    python -m tests.ui.resize_walk --widths 5000

Its last line says how many widths it survived; before that come the wrappers that share an address.
"""

import argparse
import faulthandler
import os
import random
import sys
from collections import defaultdict

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from collections.abc import Iterator

import shiboken6
from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QTabBar, QTabWidget

from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.theme import Theme, styled_application
from tests.driving.window import find
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import SteadySensors, cpu_only, reading, two_cards
from tests.fakes.scripted_engine import Engines

_ENDS = 700, 2200
_FILL_EVERY = 25
_THEME_EVERY = 60
_TURNS = 200


def shared_addresses() -> list[tuple[str, ...]]:
    """Return the types of the valid wrappers that stand for different objects at one address."""
    there: defaultdict[int, dict[int, str]] = defaultdict(dict)
    for wrapper in shiboken6.getAllValidWrappers():
        address = shiboken6.getCppPointer(wrapper)[0]  # the object itself; its bases may follow
        there[address][id(wrapper)] = type(wrapper).__name__
    return [tuple(sorted(types.values())) for types in there.values() if len(types) > 1]


class ResizeWalk:
    """Resizes a window of two cards; refills it and changes its theme now and then."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._settings = Settings(None)
        self._theme = Theme(self._settings)
        self._theme.apply()
        engines = Engines()
        engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
        self._sensors = SteadySensors(two_cards())
        self.window = MainWindow(Studio(engines, self._sensors, self._settings), self._theme)
        self.window.show()
        _turn(_TURNS)

    def walk(self, widths: int) -> None:
        """Go to every tab and page, again and again, and resize the window there."""
        places = self._places()
        for number in range(widths):
            if number % 10 == 0:
                next(places)
            if number % _FILL_EVERY == 0:
                self._fill(number)
            if number % _THEME_EVERY == 0:
                self._settings.change(theme=self._random.choice(("light", "dark", "system")))
            width = _ENDS[number % 2] if number % 3 else self._random.randint(*_ENDS)
            self.window.resize(width, self._random.randint(520, 1200))
            _turn(3)

    def _places(self) -> Iterator[None]:
        tabs = find(self.window, "tabs", QTabWidget)
        while True:
            for tab in range(tabs.count()):
                tabs.setCurrentIndex(tab)
                _turn(3)
                pages = [bar for bar in tabs.widget(tab).findChildren(QTabBar) if bar.isVisible()]
                yield
                for bar in pages:
                    for page in range(bar.count()):
                        bar.setCurrentIndex(page)
                        yield

    def _fill(self, number: int) -> None:
        """Bring another PC, so that lists and facts are made again, and a reading of it."""
        inventory = two_cards() if number % (2 * _FILL_EVERY) else cpu_only()
        self._sensors.send(inventory)
        self._sensors.send(reading(inventory, float(number)))
        _turn(5)


def _turn(turns: int) -> None:
    for _ in range(turns):
        QCoreApplication.processEvents()
    QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete.value)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", type=int, default=600)
    parser.add_argument("--seed", type=int, default=1)
    chosen = parser.parse_args(arguments)
    faulthandler.enable()
    application = styled_application(["resize_walk"])
    walk = ResizeWalk(chosen.seed)
    walk.walk(chosen.widths)
    shared = shared_addresses()
    sys.stdout.write(f"shared addresses: {shared}\n")
    walk.window.close()
    application.processEvents()
    sys.stdout.write(f"survived {chosen.widths} widths\n")
    return 1 if shared else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
