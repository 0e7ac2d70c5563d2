"""What the event loop of a window did in each of its longer turns."""

from __future__ import annotations

import contextlib
import signal
import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QAbstractEventDispatcher, QObject, Qt, QTimer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from PySide6.QtWidgets import QWidget

_PERIOD_MS = 2
_SAMPLE_S = 0.001  # systems round it up to their own tick, of 1 to 10 ms
_KEPT_S = 0.004  # shorter turns are nobody's concern
_PROGRAM = str(Path(__file__).resolve().parents[2] / "gpu_studio")
_FRAMES = 3  # of the program, innermost first


class Turn(NamedTuple):
    """One turn of the event loop.

    Attributes:
        phase: what the person did then.
        own_work_s: the processor time of the window's thread.
        owner: the functions of the program that were seen most often in it, innermost first.
    """

    phase: str
    own_work_s: float
    owner: str


class Heartbeat(QObject):
    """Notes the work in each turn of the loop, which a timer wakes every 2 ms.

    Args:
        window: the owner.
        samples: look, each millisecond of processor time, at what the thread is doing. Unix only.
    """

    def __init__(self, window: QWidget, *, samples: bool = False) -> None:
        super().__init__(window)
        self._work_s = time.thread_time()
        self.phase = ""
        self.turns: list[Turn] = []
        self._seen: Counter[str] = Counter()
        self._timer = QTimer(self)
        self._timer.setTimerType(Qt.TimerType.PreciseTimer)
        self._timer.start(_PERIOD_MS)
        QAbstractEventDispatcher.instance().awake.connect(self.end_turn)
        if samples:
            signal.signal(signal.SIGPROF, self._sample)
            signal.setitimer(signal.ITIMER_PROF, _SAMPLE_S, _SAMPLE_S)

    def stop(self) -> None:
        """Take no more samples: the process ends."""
        signal.setitimer(signal.ITIMER_PROF, 0.0)

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Leave out what a script does here: it is no work of the window."""
        begun_s = time.thread_time()
        try:
            yield
        finally:
            self._work_s += time.thread_time() - begun_s

    def end_turn(self) -> None:
        """End a turn: the event loop is about to take the next one."""
        work_s = time.thread_time()
        taken_s = work_s - self._work_s
        seen, self._seen = self._seen, Counter()  # a sample may come while it is read
        if taken_s >= _KEPT_S:
            owner = "; ".join(f"{count} × {where}" for where, count in seen.most_common(3))
            self.turns.append(Turn(self.phase, taken_s, owner))
        self._work_s = work_s

    def _sample(self, _number: int, frame: FrameType | None) -> None:
        """Note what runs; in a turn without any Python, the signal waits for `end_turn`."""
        names: list[str] = []
        while frame is not None and len(names) < _FRAMES:
            code = frame.f_code
            if code.co_filename.startswith(_PROGRAM):
                names.append(f"{Path(code.co_filename).stem}.{code.co_name}")
            frame = frame.f_back
        self._seen[" < ".join(names) or "Qt"] += 1
