"""A recording of a card replays, and contains no PC's name."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.cli.main import main
from gpu_studio.cli.record import recording
from gpu_studio.core.benchmark.recording import read_recording
from gpu_studio.core.devices.devices import Inventory, Reading, decode_sensor_event
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    EngineDescribed,
    RecordingHeader,
)
from gpu_studio.core.messages.memory_messages import CacheEmptied, OomFinished
from gpu_studio.core.messages.placement_messages import DeviceUsed, PlaceFinished
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.protocol import decode_event
from gpu_studio.engine.device import resolve, uuid_of
from gpu_studio.engine.recorded_engine import RecordedEngine
from tests.engine.answers import only, run_request

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_recording_replays_and_names_no_person(tmp_path: Path) -> None:
    *_, (events_file, sensors_file) = recording(
        tmp_path, tmp_path / "log.txt", sizes=(64,), budget_s=0.05,
        workloads=("elementwise", "matmul"),
    )  # fmt: skip
    read = read_recording(events_file)
    header = read.header
    events = [decode_event(line) for line in events_file.read_bytes().splitlines()[1:]]
    assert header.device_name == torch.cuda.get_device_name(resolve("cuda:0"))
    assert header.torch_version == torch.__version__
    results = only(RunFinished, events)
    assert {(r.device, r.dtype) for r in results} == {
        ("cpu", "float32"), ("cuda:0", "float32"), ("cuda:0", "float16"),
    }  # fmt: skip
    for kind in (DeviceUsed, PlaceFinished, OomFinished, CacheEmptied):
        assert only(kind, events), kind
    assert {run.device_name for run in read.runs} == {r.device_name for r in results}
    engine = RecordedEngine(read, speed=float("inf"))
    (described,) = engine.run(DescribeEngine())
    assert isinstance(described, EngineDescribed)
    assert described.recording == read.label
    replayed = list(engine.run(run_request(device="cuda:0", size=64)))[-1]
    assert isinstance(replayed, RunFinished)
    assert replayed.recording == read.label

    first, *lines = sensors_file.read_bytes().splitlines()
    assert msgspec.json.decode(first, type=RecordingHeader) == header
    inventory, *readings = map(decode_sensor_event, lines)
    assert isinstance(inventory, Inventory)
    assert readings
    assert all(isinstance(reading, Reading) for reading in readings)
    assert not any(card.processes for reading in readings for card in reading.cards)
    uuid = uuid_of(resolve("cuda:0"))
    for file in (events_file, sensors_file):
        assert uuid.encode() not in file.read_bytes()
    used = only(DeviceUsed, events)[0].uuid
    assert used == inventory.find("cuda:0").uuid == readings[0].cards[0].uuid


def test_soft_cards_are_not_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(os.environ, "SOFT_CARDS_DIR", str(tmp_path))
    assert main(["record", "--out", str(tmp_path)]) == 1
    assert "simulated" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())
