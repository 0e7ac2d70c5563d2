"""The reference of start_up.py: a bare PySide6 window with one pyqtgraph plot.

It prints the clock at its first paint, and the processor time that the process needed until then.
"""

import sys
import time

import pyqtgraph as pg
from PySide6.QtCore import QEvent, QObject, QTimer
from PySide6.QtWidgets import QApplication, QMainWindow


class FirstPaint(QObject):
    def eventFilter(self, _watched: QObject, event: QEvent) -> bool:
        if event.type() is QEvent.Type.Paint:
            QTimer.singleShot(0, report)
        return False


def report() -> None:
    print(time.perf_counter(), time.process_time(), flush=True)
    QApplication.quit()


application = QApplication(sys.argv)
window = QMainWindow()
window.resize(1280, 800)
plot = pg.PlotWidget()
plot.plot([0, 1, 2], [1, 0, 2])
window.setCentralWidget(plot)
filter_ = FirstPaint()
plot.viewport().installEventFilter(filter_)  # it covers the window
window.show()
sys.exit(application.exec())
