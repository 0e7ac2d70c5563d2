"""The measured side of disturbance.py: a live window that runs what it is told, a line at a time.

``WORKLOAD SIZES`` on standard input is run in the shown window, a range ``LOW:HIGH`` as a sweep;
the answer is a line of JSON: size, median and p99 of each run, and the share of a core that the
window's process used meanwhile. While it waits it is hidden, and draws and polls nothing.
"""

import json
import sys
import time

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from gpu_studio.ui.theme import styled_application
from tests.bench.driver import Driver


def serve(driver: Driver) -> None:
    driver.wait_ready()
    driver.show_benchmark()
    driver.run("elementwise", "64")
    driver.wait(lambda: driver.is_plot_built)
    print("ready", flush=True)
    for line in sys.stdin:
        workload, sizes = line.split()
        driver.window.show()
        driver.wait(driver.window.isVisible)
        begun_s, worked_s = time.perf_counter(), time.process_time()
        runs = driver.run(workload, sizes)
        share = (time.process_time() - worked_s) / (time.perf_counter() - begun_s)
        driver.window.hide()
        QApplication.processEvents()
        timed = ((run.request.size, run.summary) for run in runs)
        times = [(size, one.median_s, one.p99_s) for size, one in timed if one]
        print(json.dumps({"times": times, "core_share": share}), flush=True)
    driver.window.close()
    QApplication.exit(0)


def main() -> int:
    application = styled_application(sys.argv[:1])
    driver = Driver(budget_s=float(sys.argv[1]))
    driver.window.show()
    QTimer.singleShot(0, lambda: serve(driver))
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
