"""The measured side of event_loop_gap.py: GPU Studio's gaps at its engine's start and in a run."""

from __future__ import annotations

import sys
import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from gpu_studio.model.engine_session import EngineState
from tests.bench.driver import Driver
from tests.bench.heartbeat import Heartbeat


def measure(driver: Driver) -> None:
    session = driver.studio.session
    heartbeat = Heartbeat(driver.window)
    # The engine starts once the window and its plots are there.
    driver.wait(lambda: session.state is not EngineState.ABSENT)
    heartbeat.take_longest()
    begun_s = time.perf_counter()
    driver.wait(lambda: session.state is EngineState.READY)
    starting_s = time.perf_counter() - begun_s
    print(*heartbeat.take_longest(), starting_s)
    driver.wait_ready()
    driver.show_benchmark()
    driver.run("elementwise", "64")  # builds the plots
    driver.wait(lambda: driver.is_plot_built)
    heartbeat.take_longest()
    begun_s = time.perf_counter()
    driver.run("elementwise", "64, 512")
    driver.run("matmul", "64, 512")
    running_s = time.perf_counter() - begun_s
    print(*heartbeat.take_longest(), running_s, flush=True)
    driver.window.close()
    QApplication.exit(0)


def main() -> int:
    application = QApplication(sys.argv[:1])
    driver = Driver(budget_s=float(sys.argv[1]))
    driver.window.show()
    QTimer.singleShot(0, lambda: measure(driver))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
