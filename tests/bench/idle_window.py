"""The reference of event_loop_gap.py: the gaps of a window in which nothing happens."""

from __future__ import annotations

import sys

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication, QMainWindow

from tests.bench.heartbeat import Heartbeat

_WARM_UP_MS = 500


def main() -> int:
    application = QApplication(sys.argv[:1])
    window = QMainWindow()
    window.resize(1280, 800)
    window.show()
    heartbeat = Heartbeat(window)

    def finish() -> None:
        print(*heartbeat.take_longest())
        application.quit()

    def begin() -> None:
        heartbeat.take_longest()
        QTimer.singleShot(round(1000 * float(sys.argv[1])), finish)

    QTimer.singleShot(_WARM_UP_MS, begin)
    return application.exec()


if __name__ == "__main__":
    sys.exit(main())
