"""The measured side of disturbance.py: a live window that runs what it is told, a line at a time.

``WORKLOAD SIZE`` on standard input is run in the shown window; the answer is the median, and the
share of a core that the window's process used meanwhile. While it waits it is hidden, and draws and
polls nothing.
"""

from __future__ import annotations

import sys
import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from tests.bench.driver import Driver


def serve(driver: Driver) -> None:
    driver.wait_ready()
    driver.show_benchmark()
    driver.run("elementwise", "64")
    driver.wait(lambda: driver.is_plot_built)
    print("ready", flush=True)
    for line in sys.stdin:
        workload, size = line.split()
        driver.window.show()
        driver.wait(driver.window.isVisible)
        begun_s, worked_s = time.perf_counter(), time.process_time()
        (result,) = driver.run(workload, size)
        share = (time.process_time() - worked_s) / (time.perf_counter() - begun_s)
        driver.window.hide()
        QApplication.processEvents()
        print(result.median_s, share, flush=True)
    driver.window.close()
    QApplication.exit(0)


def main() -> int:
    application = QApplication(sys.argv[:1])
    driver = Driver(budget_s=float(sys.argv[1]))
    driver.window.show()
    QTimer.singleShot(0, lambda: serve(driver))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
