"""How long the window's event loop is away while the segment map shows 10,000 blocks at 10 Hz.

``python -m tests.bench.segment_map [--rounds 5] [--seconds 4] [--blocks 10000] [--segments 400]``

The way of the program: an engine's lines, as long as they are, decoded in a worker's thread, given
to the map and drawn, with a beat every 2 ms beside it. In turns with the same window while it
shows nothing: what this machine does to any window. Target: the longest gap at most 50 ms.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
from statistics import median
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import QEventLoop, QObject, QTimer

from gpu_studio.core.memory.segments import map_of_segments
from gpu_studio.core.messages.memory_messages import MemoryRead, SegmentsRead
from gpu_studio.core.protocol import decode_event, encode
from gpu_studio.model.collector import Collector
from gpu_studio.model.settings import Settings
from gpu_studio.model.worker import Worker
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.theme import Theme, styled_application
from tests.bench.heartbeat import Gap, Heartbeat
from tests.bench.ratios import describe_machine, verdict

if TYPE_CHECKING:
    from collections.abc import Iterator

_PERIOD_S = 0.1
_TARGET_MS = 50.0
_LINES = 12


def segments_line(seed: int, segments: int, blocks: int) -> bytes:
    """Return an engine's message with a number of segments and a total number of blocks."""
    chance = random.Random(seed)
    counts = [blocks // segments + (index < blocks % segments) for index in range(segments)]
    sizes = [512 * chance.randrange(1, 400) for _ in range(blocks)]
    totals, first = [], 0
    for count in counts:
        totals.append(sum(sizes[first : first + count]))
        first += count
    message = SegmentsRead(
        device="cuda:0",
        read=MemoryRead(device="cuda:0", taken_at_s=0.0),
        largest_block_bytes=0,
        free_total_bytes=0,
        addresses=tuple(0x7F0000000000 + (index << 24) for index in range(segments)),
        sizes=tuple(totals),
        is_small=(False,) * segments,
        is_expandable=(False,) * segments,
        streams=(0,) * segments,
        pools=((0, 0),) * segments,
        block_counts=tuple(counts),
        block_sizes=tuple(sizes),
        requested_sizes=tuple(sizes),
        block_states="".join(chance.choice("002") for _ in range(blocks)),
    )
    return encode(message)


class Show(QObject):
    """Receives segments in the window's thread, as the page does."""

    def __init__(self, view: SegmentMapView) -> None:
        super().__init__(view)
        self._view = view
        self.shown = 0

    def show(self, read: SegmentsRead) -> None:
        self._view.show_map(map_of_segments(read))
        self.shown += 1


def run_for(seconds: float) -> None:
    loop = QEventLoop()
    QTimer.singleShot(round(1000 * seconds), loop.quit)
    loop.exec()


def live(view: SegmentMapView, lines: list[bytes], seconds: float) -> int:
    """Show lines at 10 Hz for a while; return how many were shown."""
    is_over = threading.Event()

    def read() -> Iterator[SegmentsRead]:
        number = 0
        while not is_over.wait(_PERIOD_S):
            event = decode_event(lines[number % len(lines)])
            assert isinstance(event, SegmentsRead)
            yield event
            number += 1

    show = Show(view)
    worker = Worker(read)
    worker.value_produced.connect(show.show)
    worker.start()
    run_for(seconds)
    is_over.set()
    worker.wait()
    return show.shown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--blocks", type=int, default=10_000)
    parser.add_argument("--segments", type=int, default=400)
    options = parser.parse_args()
    application = styled_application(["segment_map"])
    theme = Theme(Settings(None))
    theme.apply()
    view = SegmentMapView(theme, name="memory.segments")
    view.resize(1400, 800)
    view.show()
    lines = [segments_line(seed, options.segments, options.blocks) for seed in range(_LINES)]
    view.show_map(map_of_segments(decode_event(lines[0])))  # numpy is imported before
    run_for(0.5)
    collector = Collector(view)
    collector.start()
    heartbeat = Heartbeat(view)
    gaps: dict[str, list[Gap]] = {"idle": [], "live": []}
    shown = 0
    for _ in range(options.rounds):
        run_for(0.2)
        heartbeat.take_longest()
        run_for(options.seconds)
        gaps["idle"].append(heartbeat.take_longest())
        shown += live(view, lines, options.seconds)
        gaps["live"].append(heartbeat.take_longest())
    collector.stop()
    print(describe_machine())
    rate = shown / options.rounds / options.seconds
    print(f"{options.blocks} blocks in {options.segments} segments at {rate:.1f} Hz:")
    for name, taken in gaps.items():
        wall = ", ".join(f"{1000 * gap.on_the_wall_s:.1f}" for gap in taken)
        work = ", ".join(f"{1000 * gap.own_work_s:.1f}" for gap in taken)
        print(f"  {name}: longest gap {wall} ms; the window's own work {work} ms")
    middle_ms = median(1000 * gap.on_the_wall_s for gap in gaps["live"])
    print(f"  live, median of the rounds: {middle_ms:.1f} ms; {verdict(middle_ms, _TARGET_MS)}")
    work_ms = median(1000 * gap.own_work_s for gap in gaps["live"])
    print(f"  its own work in one turn: {work_ms:.1f} ms; {verdict(work_ms, _TARGET_MS)}")
    view.close()
    application.processEvents()


if __name__ == "__main__":
    main()
