"""``gpu-studio record``: what a card and its driver answer, as a file for others.

A kind of card counts as tested once such a recording is part of the program. There are two: one
with the engine's events, for `RecordedEngine`, and one with what the sensor reader reported
meanwhile. Both begin with a `RecordingHeader`. UUIDs are replaced, and processes left out: both
would name somebody's PC.
"""

from __future__ import annotations

import re
import threading
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from gpu_studio.cli.answers import at_work, describe, new_engine
from gpu_studio.cli.command import DONE, FAILED, Command
from gpu_studio.cli.screen import note, now, print_json, print_line
from gpu_studio.core.benchmark.recording_writer import system_name
from gpu_studio.core.devices.devices import Inventory, encode_sensor_event
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import RecordingHeader
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    EmptyCache,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.core.messages.placement_messages import PlaceModel, UseDevice
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.program_version import program_title
from gpu_studio.core.protocol import encode
from gpu_studio.hardware.client import SensorReader
from gpu_studio.hardware.surroundings import are_cards_simulated

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

    from gpu_studio.core.devices.devices import SensorEvent
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.messages.message import Event, Message, Request

_BUDGET_BYTES = 512 << 20
_MOST_SIZES = 3  # of each workload: the smallest, one in the middle, and the largest
_LONGEST_INVENTORY_S = 60
_BUDGET_S = 0.5


class NoCardError(StudioError):
    """There is nothing to record here, with the reason."""

    def __init__(self, reason: str) -> None:
        super().__init__(FailureKind.NO_CUDA, reason)


class RecordingStep(NamedTuple):
    """How far a recording is: the step that begins, and how many there are."""

    number: int
    steps: int
    doing: str


class ReportedSensors:
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
        self._has_inventory.wait(_LONGEST_INVENTORY_S)
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
    card = described.first_address
    sides = (("cpu", "float32"), (card, "float32"), (card, "float16"))
    cases = [
        (workload.name, size, device, dtype)
        for workload in described.workloads
        if not workload.skipped and (workloads is None or workload.name in workloads)
        for size in sizes or _some_of(workload.sizes)
        for device, dtype in sides
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
    yield UseDevice(device=card)
    for model in described.models:
        for device in (card, "cpu"):
            yield PlaceModel(model=model.name, device=device)
    yield RunMemoryExperiment(
        preset="custom",
        device=card,
        plan=AllocationPlan(size=4096, count=100),
        budget_bytes=_BUDGET_BYTES,
    )
    yield ReadMemory(device=card)
    yield EmptyCache(device=card)


def _some_of(sizes: Sequence[int]) -> list[int]:
    """Return the first, the middle and the last of a workload's sizes."""
    ordered = sorted(sizes)
    return sorted({ordered[at * (len(ordered) - 1) // 2] for at in range(_MOST_SIZES)})


def recording(
    folder: Path,
    log_path: Path,
    sizes: Sequence[int] | None = None,
    budget_s: float = _BUDGET_S,
    workloads: Sequence[str] | None = None,
) -> Iterator[RecordingStep | list[Path]]:
    """Record this PC's first card; yield each step as it begins, and at last the files.

    Raises:
        NoCardError: PyTorch cannot use one.
    """
    sensors = ReportedSensors()
    try:
        inventory = sensors.inventory
        with at_work(new_engine(log_path)) as work:
            described = describe(work.engine, work.interrupt)
            if not described.cuda_available:
                raise NoCardError(described.cuda_reason or "There is no card.")
            events: list[Event] = [described]
            requests = list(requests_of(described, sizes, budget_s, workloads))
            for number, request in enumerate(requests, 1):
                yield RecordingStep(number, len(requests), _doing(request))
                events += work.answers(request)
                if work.interrupt.is_asked:
                    raise KeyboardInterrupt
    finally:
        seen = sensors.close()
    yield _write(folder, _header(inventory, described), events, seen)


def _doing(request: Request) -> str:
    if isinstance(request, RunWorkload):
        return f"{request.workload} at {request.size} in {request.dtype} on {request.device}"
    return "the card's memory" if not isinstance(request, PlaceModel) else "moving a model"


def _header(inventory: Inventory, described: EngineDescribed) -> RecordingHeader:
    card = next(one for one in described.cards if one.address == described.first_address)
    return RecordingHeader(
        title=f"{card.name}, PyTorch {described.torch_version}",
        device_name=card.name,
        driver_version=inventory.driver.version if card.maker == "NVIDIA" else None,
        torch_version=described.torch_version,
        recorded_at=now(),
        source=program_title(),
        pc=f"{inventory.cpu.name}, {system_name()}",
        is_simulated=are_cards_simulated(),
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


def pack(files: Sequence[Path]) -> Path:
    """Put the files of a recording into one to send, in their folder; return it."""
    packed = files[0].with_suffix(".zip")
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, file.name)
            file.unlink()
    return packed


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Record and return the exit status."""
    if are_cards_simulated():
        note("These cards are simulated: a recording is of a real one.")
        return FAILED
    for step in recording(options.out, log_path, budget_s=options.budget_s):
        if isinstance(step, list):
            packed = pack(step)
            print_json({"file": str(packed)}) if options.json else print_line(str(packed))
        elif options.json:
            print_json({"step": step.number, "steps": step.steps, "doing": step.doing})
        else:
            note(f"{step.number} of {step.steps}: {step.doing}")
    return DONE


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--out", metavar="FOLDER", type=Path, default=Path(),
        help="where the file goes (default: the current folder)",
    )  # fmt: skip
    parser.add_argument(
        "--budget-s", metavar="S", type=float, default=_BUDGET_S,
        help="seconds of each run (default: %(default)s)",
    )  # fmt: skip


COMMAND = Command(
    about="Record what your card answers: times, memory and sensors, in one file. It has no UUIDs, "
    "processes or names of yours. With it, a kind of card counts as tested.",
    run=_run,
    add_arguments=_add_arguments,
)
