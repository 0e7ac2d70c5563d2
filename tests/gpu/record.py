"""Writes down what a real card and its driver answer, for replays and tests on PCs without one.

    python -m tests.gpu.record [--out tests/recordings] [--budget-s 0.5]

Two files come of it: ``CARD-torch-VERSION.jsonl`` with the engine's events, for `RecordedEngine`,
and ``CARD-torch-VERSION.sensors.jsonl`` with what the sensor reader said meanwhile. Both begin with
a `RecordingHeader`. Cards are recorded with made-up UUIDs, and processes not at all: both would
name somebody's PC.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.benchmark.recording_writer import system_name
from gpu_studio.core.devices.devices import Inventory, encode_sensor_event
from gpu_studio.core.engine import EngineEnvironment
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    RecordingHeader,
)
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    EmptyCache,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.protocol import encode
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.hardware.client import SensorReader

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import Device, SensorEvent
    from gpu_studio.core.messages.message import Event, Message, Request

_CARD = "cuda:0"
_SIDES = (("cpu", "float32"), (_CARD, "float32"), (_CARD, "float16"))
_FOLDER = Path(__file__).resolve().parent.parent / "recordings"
_BUDGET_BYTES = 512 << 20


class NoCardError(Exception):
    """There is nothing to record here, with the reason."""


class SensorLog:
    """What the sensor reader says, collected on a thread of its own until `close`."""

    def __init__(self) -> None:
        self._reader = SensorReader()
        self._seen: list[SensorEvent] = []
        self._has_inventory = threading.Event()
        self._thread = threading.Thread(target=self._collect)
        self._thread.start()

    @property
    def inventory(self) -> Inventory:
        """What is in this PC."""
        self._has_inventory.wait(60)
        found = next((event for event in self._seen if isinstance(event, Inventory)), None)
        if found is None:
            self.close()
            raise NoCardError("The sensor reader found nothing.")
        return found

    def close(self) -> list[SensorEvent]:
        """End the reader; return everything it said."""
        self._reader.close()
        self._thread.join()
        return self._seen

    def _collect(self) -> None:
        for event in self._reader.readings():
            self._seen.append(event)
            self._has_inventory.set()
        self._has_inventory.set()


def requests_of(
    described: EngineDescribed,
    sizes: Sequence[int] | None,
    budget_s: float,
    workloads: Sequence[str] | None = None,
) -> Iterator[Request]:
    """Yield what is asked: runs on the CPU and the card, then places and memory.

    Args:
        described: the engine that is recorded.
        sizes: of the runs; those of each workload by default.
        budget_s: of each run.
        workloads: which; all that can run by default.
    """
    cases = [
        (workload.name, size, device, dtype)
        for workload in described.workloads
        if not workload.skipped and (workloads is None or workload.name in workloads)
        for size in sizes or workload.sizes
        for device, dtype in _SIDES
        if workload.runs_on(device) and dtype in workload.dtypes
    ]
    for number, (name, size, device, dtype) in enumerate(cases, 1):
        yield RunWorkload(
            run_id=f"run-{number}",
            workload=name,
            device=device,
            size=size,
            dtype=dtype,
            budget_s=budget_s,
        )
    yield UseDevice(device="cuda:0")
    for model in described.models:
        for device in (_CARD, "cpu"):
            yield PlaceModel(model=model.name, device=device)
    yield RunMemoryExperiment(
        preset="custom",
        device=_CARD,
        plan=AllocationPlan(size=4096, count=100),
        budget_bytes=_BUDGET_BYTES,
    )
    yield ReadMemory(device=_CARD)
    yield EmptyCache(device=_CARD)


def record(
    folder: Path,
    sizes: Sequence[int] | None = None,
    budget_s: float = 0.5,
    workloads: Sequence[str] | None = None,
) -> list[Path]:
    """Record this PC's first card; return the files.

    Raises:
        NoCardError: PyTorch cannot use one.
    """
    engine, sensors = ProcessEngine(EngineEnvironment()), SensorLog()
    try:
        inventory = sensors.inventory
        (described,) = engine.run(DescribeEngine())
        card = inventory.find(_CARD)
        if not isinstance(described, EngineDescribed) or not described.cuda_available or not card:
            raise NoCardError(getattr(described, "cuda_reason", None) or "There is no card.")
        events: list[Event] = [described]
        for request in requests_of(described, sizes, budget_s, workloads):
            sys.stderr.write(f"{request}\n")
            events += engine.run(request)
    finally:
        engine.close()
        seen = sensors.close()
    return _write(folder, _header(inventory, card, described), events, seen)


def _header(inventory: Inventory, card: Device, described: EngineDescribed) -> RecordingHeader:
    return RecordingHeader(
        title=f"{card.name}, PyTorch {described.torch_version}",
        device_name=card.name,
        driver_version=inventory.driver.version,
        torch_version=described.torch_version,
        recorded_at=datetime.now(timezone.utc).isoformat(timespec="seconds"),
        source="python -m tests.gpu.record",
        pc=f"{inventory.cpu.name}, {system_name()}",
    )


def _write(
    folder: Path, header: RecordingHeader, events: list[Event], seen: list[SensorEvent]
) -> list[Path]:
    inventory = next(event for event in seen if isinstance(event, Inventory))
    masks = {
        (card.uuid or "").encode(): f"GPU-00000000-0000-0000-0000-{number:012d}".encode()
        for number, card in enumerate(inventory.cards)
        if card.uuid
    }
    words = f"{header.device_name} torch {header.torch_version}".lower()
    stem = re.sub(r"[^a-z0-9.]+", "-", words)
    listed: list[Message] = [header, *events]
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{stem}.jsonl", folder / f"{stem}.sensors.jsonl"]
    for file, lines in (
        (files[0], [encode(message) for message in listed]),
        (files[1], [encode(header), *(encode_sensor_event(_without_people(e)) for e in seen)]),
    ):
        text = b"".join(lines)
        for uuid, mask in masks.items():
            text = text.replace(uuid, mask)
        file.write_bytes(text)
    return files


def _without_people(event: SensorEvent) -> SensorEvent:
    """Return a sensor reader's events without the processes, which have names and users."""
    if isinstance(event, Inventory):
        devices = [msgspec.structs.replace(device, processes=()) for device in event.devices]
        return msgspec.structs.replace(event, devices=tuple(devices))
    cards = [msgspec.structs.replace(card, processes=()) for card in event.cards]
    return msgspec.structs.replace(event, cards=tuple(cards))


def main(argv: list[str] | None = None) -> int:
    """Record and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.gpu.record")
    parser.add_argument("--out", type=Path, default=_FOLDER)
    parser.add_argument("--budget-s", type=float, default=0.5)
    wanted = parser.parse_args(argv)
    if "SOFT_CARDS_DIR" in os.environ:
        sys.stderr.write("These cards are soft: a recording is of a real one.\n")
        return 1
    try:
        files = record(wanted.out, budget_s=wanted.budget_s)
    except NoCardError as error:
        sys.stderr.write(f"Nothing to record: {error}\n")
        return 1
    sys.stdout.write("".join(f"{file}\n" for file in files))
    return 0


if __name__ == "__main__":
    sys.exit(main())
