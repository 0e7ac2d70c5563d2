"""The measured side of event_loop_gap.py: GPU Studio's gaps as it opens and in runs."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from gpu_studio.model.engine_session import EngineState
from tests.bench.driver import Driver
from tests.bench.heartbeat import Heartbeat

if TYPE_CHECKING:
    from collections.abc import Callable


def measure(driver: Driver, heartbeat: Heartbeat) -> None:
    session = driver.studio.session
    # The engine starts once the window and its plots are there.
    report(heartbeat, lambda: driver.wait(lambda: session.state is not EngineState.ABSENT))
    report(heartbeat, lambda: driver.wait(lambda: session.state is EngineState.READY))
    driver.wait_ready()
    driver.show_benchmark()
    driver.run("elementwise", "64")  # builds the plots
    driver.wait(lambda: driver.is_plot_built)
    heartbeat.take_longest()
    report(
        heartbeat, lambda: (driver.run("elementwise", "64, 512"), driver.run("matmul", "64, 512"))
    )
    driver.window.close()
    QApplication.exit(0)


def report(heartbeat: Heartbeat, do: Callable[[], object]) -> None:
    """Print the longest gap while something is done, and how long it took."""
    begun_s = time.perf_counter()
    do()
    length_s = time.perf_counter() - begun_s
    print(*heartbeat.take_longest(), length_s, flush=True)


def main() -> int:
    application = QApplication(sys.argv[:1])
    driver = Driver(budget_s=float(sys.argv[1]))
    heartbeat = Heartbeat(driver.window)
    driver.window.show()
    QApplication.processEvents()  # the first paint
    heartbeat.take_longest()
    QTimer.singleShot(0, lambda: measure(driver, heartbeat))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
