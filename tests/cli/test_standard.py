import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.cli import bench
from gpu_studio.core.benchmark.standard import STANDARD_1
from gpu_studio.core.benchmark.standard_record import (
    FOLDER_NAME,
    StandardFolder,
    StandardRun,
    decode_standard,
    encode_standard,
    read_standard,
)
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded, TorchCard
from gpu_studio.core.messages.message import Event
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunWorkload,
)
from tests.core.benchmark.standard_runs import paced_device, standard_run
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_device
from tests.fakes.standard_answers import measured

UUID = "GPU-11111111-2222-3333-4444-555555555555"
CARD = TorchCard(
    torch_index=0, name="NVIDIA GeForce GT 1030", uuid=UUID, compute_capability="6.1",
    memory_total_bytes=2 << 30,
)  # fmt: skip


def on_an_old_card(_engine: object, request: RunWorkload) -> Iterator[Event]:
    """Refuse bfloat16 on the card, with a path in the sentence."""
    if request.dtype != "bfloat16" or request.device == "cpu":
        yield from measured(request)
        return
    sentence = "This card has no bfloat16 (/home/alice/.venv/torch.py)."
    failure = Failure(FailureKind.DTYPE_UNSUPPORTED, sentence)
    yield RunFailed(run_id=request.run_id, failure=failure)


def losing_the_card(_engine: object, request: RunWorkload) -> Iterator[Event]:
    if request.workload == "conv2d" and request.device != "cpu":
        yield EngineEnded(exit_code=-11)
    else:
        yield from measured(request)


@pytest.fixture
def type_in(engines_of, typed, monkeypatch: pytest.MonkeyPatch):
    """Return what types the command on a PC with a card whose engine answers so."""
    cpu_only = Inventory(devices=(cpu_device(),))
    monkeypatch.setattr(bench, "read_inventory", lambda _log_path: cpu_only)

    def type_in(runs: Any, *arguments: str) -> tuple[int, str, str]:
        description = described_with_cuda(cards=(CARD,))
        engines_of({DescribeEngine: [description], RunWorkload: runs})
        return typed("standard", *arguments)

    return type_in


def record_of(output: str) -> StandardRun:
    """Return the record in the last line, as another PC reads it."""
    last = json.loads(output.splitlines()[-1])
    assert last["type"] == "standard_finished"
    return decode_standard(json.dumps(last["run"]).encode())


def test_every_device_has_every_item_and_a_load(type_in, tmp_path: Path) -> None:
    status, output, _ = type_in(on_an_old_card, "--json")
    record = record_of(output)
    assert (status, len(record.devices)) == (0, 2)
    cpu, card = record.devices
    assert (cpu.is_cpu, card.is_cpu, card.name) == (True, False, CARD.name)
    assert [one.key for one in card.figures] == [item.key for item in STANDARD_1]
    assert [one.key for one in cpu.figures] == [one.key for one in STANDARD_1 if one.on_cpu]
    missing = [one.key for one in card.figures if one.result is None]
    assert missing == ["product_bfloat16"]
    assert cpu.load is not None
    assert card.load is not None
    assert (card.load.first_clock_mhz, card.load.highest_hotspot_c) == (1700.0, None)
    assert StandardFolder(tmp_path / FOLDER_NAME).newest() == record


def test_nothing_in_a_record_identifies_the_user_or_the_pc(type_in, tmp_path: Path) -> None:
    path = tmp_path / "one.json"
    _, output, _ = type_in(on_an_old_card, "--json", "--save", str(path))
    written = path.read_text(encoding="utf-8")
    for secret in ("alice", UUID, str(tmp_path)):
        assert secret not in written
        assert secret not in output.splitlines()[-1]
    assert "This card has no bfloat16 (\\u2026" in written


@pytest.mark.parametrize("ending", [".png", ".json"])
def test_a_saved_file_opens_on_another_pc(type_in, tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"run{ending}"
    status, output, errors = type_in(on_an_old_card, "--json", "--save", str(path))

    assert status == 0
    assert f"Saved as {path}" in errors
    assert read_standard(path).devices == record_of(output).devices


def test_a_lost_card_ends_the_run_and_what_was_measured_is_kept(type_in, tmp_path: Path) -> None:
    status, output, errors = type_in(losing_the_card, "--json")
    record = record_of(output)
    last = json.loads(output.splitlines()[-1])
    assert (status, last["is_complete"]) == (1, False)
    assert "The results until then are kept." in errors
    _, card = record.devices
    assert [one.key for one in card.figures if one.result] == [
        "bandwidth", "product_float32", "product_float16", "product_bfloat16",
    ]  # fmt: skip
    assert all(one.skipped for one in card.figures if one.result is None)
    assert card.load is None
    assert StandardFolder(tmp_path / FOLDER_NAME).newest() == record


def test_files_are_compared_with_this_pc(typed, engines_of, tmp_path: Path) -> None:
    engines_of({})  # no run of another test is this PC's own
    path = tmp_path / "theirs.txt"
    cpu = paced_device("Ryzen 7 5700G", 0.1, device="cpu")
    path.write_bytes(encode_standard(standard_run(cpu, paced_device("RTX 3060", 2.0))))
    status, output, errors = typed("bench", "compare", str(path))
    assert status == 0
    assert "This PC has no standard run yet" in errors
    assert output.startswith("The RTX 3060. 9 results.")
    StandardFolder(tmp_path / FOLDER_NAME).keep(standard_run(paced_device("GTX 1660")))
    _, output, errors = typed("bench", "compare", str(path))
    assert output.startswith("The RTX 3060 beats your GTX 1660 in all 9. ")
    assert not errors
    _, output, _ = typed("bench", "compare", str(path), "--json")
    found = json.loads(output)
    assert {row["device"] for row in found["rows"]} == {"GTX 1660", "RTX 3060"}
    assert "faster" in found["rows"][1]["compared"]
