"""The real window, which also tells what it shows: ``python -m tests.windows.watched_window``.

Runs on the Windows PC, in the place of ``python -m gpu_studio``. Twice a second it prints one line
of JSON: what the status bar and the page of the engine say, where some widgets are on the screen,
the sizes to run, and the results' medians. Clicks and keys come from outside, as a person's do.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

from PySide6.QtCore import QPoint, Qt, QTimer
from PySide6.QtGui import QFont
from PySide6.QtWidgets import QAbstractItemView, QLabel, QLineEdit, QTabWidget, QWidget

from gpu_studio import app

if TYPE_CHECKING:
    from PySide6.QtWidgets import QMainWindow

_PERIOD_MS = 500
# Clear can be clicked once no run is going on.
_TOLD = (
    "benchmark.sizes", "benchmark.run", "benchmark.clear",
    "setup.begin", "setup.pause", "setup.go_on", "setup.again", "setup.close", "setup.measure",
    "quick.again",
)  # fmt: skip
_TAB = "Benchmark"


def account_of(window: QMainWindow) -> dict[str, object]:
    """Return the window's texts, and the center of each widget to click."""
    places: dict[str, tuple[int, int]] = {}
    tabs = window.findChild(QTabWidget, "tabs")
    for index in range(tabs.count()):
        if tabs.tabText(index).replace("&", "") == _TAB:
            middle = tabs.tabBar().tabRect(index).center()
            places["tab"] = tabs.tabBar().mapToGlobal(middle).toTuple()
    for name in _TOLD:
        widget = window.findChild(QWidget, name)
        if widget is not None and widget.isVisible() and widget.isEnabled():
            middle = QPoint(widget.width() // 2, widget.height() // 2)
            places[name] = widget.mapToGlobal(middle).toTuple()
    status = window.findChild(QLabel, "status")
    installation = window.findChild(QLabel, "setup.title")
    sizes = window.findChild(QLineEdit, "benchmark.sizes")
    results = window.findChild(QAbstractItemView, "benchmark.results")
    quick = (window.findChild(QLabel, f"quick.{name}") for name in ("headline", "lack", "trust"))
    return {
        "quick": [one.text() for one in quick if one is not None and one.isVisible()],
        "status": status.text() if status else "",
        "installation": installation.text() if installation else "",
        "places": places,
        "typed": sizes.text() if sizes else "",
        "medians": medians_in(results) if results else [],
    }


def medians_in(results: QAbstractItemView) -> list[str]:
    """Return the medians of the CPU in a table of results, one text a row."""
    model = results.model()
    columns = range(model.columnCount())
    heads = [model.headerData(one, Qt.Orientation.Horizontal) for one in columns]
    if "CPU" not in heads:
        return []
    column = heads.index("CPU")
    return [model.index(row, column).data() for row in range(model.rowCount())]


def main() -> int:
    """Open the window and return the program's exit status."""
    build_window = app.build_window

    def build_watched(**arguments: object) -> QMainWindow:
        window = build_window(**arguments)
        timer = QTimer(window)
        timer.timeout.connect(lambda: print(json.dumps(account_of(window)), flush=True))
        timer.start(_PERIOD_MS)
        return window

    QFont.insertSubstitution("Segoe UI", "DejaVu Sans")  # Wine has none of Windows' fonts
    QFont.insertSubstitution("Courier New", "DejaVu Sans Mono")
    app.build_window = build_watched
    return app.main()


if __name__ == "__main__":
    sys.exit(main())
