"""What the live sensors of another PC cost over time: bytes both ways, and memory on both sides.

``python -m tests.bench.live_line [--minutes 2]``

The other PC is this one behind a real sshd on a loopback port. Its sensors are read once a second,
as by the window. A relay counts the bytes of TCP, with what ssh adds. A line for each minute has
the bytes since the line before, and the memory of each process: this one with the reader of the
line, the ssh here, and there the server of the session, `serve sensors` and the sensor reader.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time

import psutil

from gpu_studio.hardware.client import SensorReader
from tests.bench.ratios import describe_machine
from tests.bench.relay import relayed_sshd
from tests.line.real_sshd import why_not
from tests.patience import until

_PERIOD_S = 1.0
_SETTLED = 10
_MINUTE_S = 60.0


class Readings:
    """The readings of a reader, taken by a thread and not kept."""

    def __init__(self, reader: SensorReader) -> None:
        self._reader, self.count, self.has_ended = reader, 0, threading.Event()
        threading.Thread(target=self._work, daemon=True).start()

    def _work(self) -> None:
        for _ in self._reader.readings():
            self.count += 1
        self.has_ended.set()


def processes_of(server: psutil.Process, reader: SensorReader) -> dict[str, psutil.Process]:
    """Return the processes of the line, by what they are."""
    found = {"here": psutil.Process(), "ssh": psutil.Process(reader.pid)}
    for one in server.children(recursive=True):
        line = " ".join(one.cmdline())
        name = "reader there" if "hardware.reader" in line else "serve there"
        found["sshd there" if "sshd" in one.name() else name] = one
    return found


def main() -> None:
    """Print a line for each minute, and what an hour would have."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=int, default=2)
    options = parser.parse_args()
    if reason := why_not():
        sys.exit(reason)
    print(describe_machine())
    with relayed_sshd() as (pc, server, relay):
        reader = SensorReader(_PERIOD_S, pc=pc)
        readings = Readings(reader)
        until(lambda: readings.count >= _SETTLED)
        processes = processes_of(server, reader)
        print(f"\n| minute | readings | bytes to here | bytes to there | {' | '.join(processes)} |")
        print(f"| --- | --- | --- | --- |{' --- |' * len(processes)}")
        begin_s = time.monotonic()
        before = begun = (readings.count, relay.to_here_bytes, relay.to_there_bytes)
        for minute in range(options.minutes + 1):
            rest_s = begin_s + minute * _MINUTE_S - time.monotonic()
            if readings.has_ended.wait(max(0.0, rest_s)):
                sys.exit("The line ended.")
            now = (readings.count, relay.to_here_bytes, relay.to_there_bytes)
            counts = [str(new - old) for new, old in zip(now, before, strict=True)]
            sizes = [f"{one.memory_info().rss / 2**20:.1f} MiB" for one in processes.values()]
            print(f"| {minute} | {' | '.join(counts + sizes)} |", flush=True)
            before = now
        elapsed_s = time.monotonic() - begin_s
        _, here, there = ((new - old) / elapsed_s for new, old in zip(now, begun, strict=True))
        print(f"\nin {elapsed_s:.0f} s: {here:.0f} B/s to here, {there:.0f} B/s to there")
        print(describe_machine())
        reader.close()


if __name__ == "__main__":
    main()
