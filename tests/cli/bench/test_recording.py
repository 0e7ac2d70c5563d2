import json

import pytest

from gpu_studio.cli import runs
from gpu_studio.core.benchmark.recording import read_recording, recording_sentences
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import DescribeEngine, TorchCard
from tests.cli.bench.terminal import WORKLOADS, asked
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import gt_1030

RUN = ("matmul", "--size", "64,2048", "--no-history")
CARD = TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030")


@pytest.fixture(autouse=True)
def this_pc(monkeypatch, engines):
    engines.scripts[DescribeEngine] = [described_with_cuda(workloads=WORKLOADS, cards=(CARD,))]
    monkeypatch.setattr(runs, "cpu_name", lambda: "Ryzen 7 5700G")
    monkeypatch.setattr(runs, "read_inventory", lambda _: gt_1030())
    monkeypatch.setattr(runs, "are_cards_simulated", lambda: False)


@pytest.fixture
def path(type_in, tmp_path):
    path = tmp_path / "run.jsonl"
    status, _, errors = type_in(*RUN, "--save", str(path))
    assert (status, errors) == (0, f"Saved as {path}.\n")
    return path


def test_a_recording_names_the_card_the_pc_and_the_versions(path):
    recording = read_recording(path)
    header = recording.header
    assert header.device_name == "NVIDIA GeForce GT 1030"
    assert header.pc.startswith("Ryzen 7 5700G, ")
    assert header.driver_version == gt_1030().driver.version
    assert header.torch_version == "2.13.0+cu126"
    assert header.source.startswith("GPU Studio ")
    assert not header.is_simulated
    assert [(run.request.size, run.request.device) for run in recording.runs] == [
        (64, "cpu"), (64, "cuda:0"), (2048, "cpu"), (2048, "cuda:0"),
    ]  # fmt: skip
    assert recording.described is not None
    assert [workload.name for workload in recording.described.workloads] == ["matmul"]


def test_what_json_prints_is_a_recording(type_in, tmp_path):
    status, output, _ = type_in(*RUN, "--json")
    assert status == 0
    kinds = [json.loads(line)["type"] for line in output.splitlines()]
    assert kinds[:3] == ["recording_header", "engine_described", "run_started"]
    assert kinds[-1] == "run_finished"
    path = tmp_path / "printed.jsonl"
    path.write_text(output, encoding="utf-8")
    assert len(read_recording(path).runs) == 4


def test_a_simulated_card_and_a_silent_driver_are_reported(type_in, tmp_path, monkeypatch):
    def silent(_):
        raise StudioError(FailureKind.INTERNAL, "The driver does not answer.")

    monkeypatch.setattr(runs, "read_inventory", silent)
    monkeypatch.setattr(runs, "are_cards_simulated", lambda: True)
    path = tmp_path / "run.jsonl"
    type_in(*RUN, "--save", str(path))
    recording = read_recording(path)
    assert recording.header.driver_version is None
    assert recording.header.is_simulated
    assert "GT 1030" in recording.label
    type_in(*RUN, "--device", "cpu", "--save", str(path))
    assert read_recording(path).label.startswith("Ryzen 7 5700G, ")


def test_a_replay_is_labelled_asks_no_engine_and_is_kept_nowhere(engines, type_in, path, tmp_path):
    before = len(asked(engines))
    status, output, errors = type_in("replay", str(path), "--at-once")
    assert (status, errors) == (0, "")
    assert output.startswith("Recorded 20")
    assert all(name in output.splitlines()[0] for name in (CARD.name, "Ryzen 7 5700G"))
    rows = [line for line in output.splitlines() if " float32 " in line]
    assert len(rows) == 4
    doubts = [line for line in output.splitlines() if line.strip().startswith("in doubt: ")]
    assert len(doubts) == 4
    assert all(read_recording(path).label in doubt for doubt in doubts)
    verdict = output.splitlines()[-1]
    assert "recording" in verdict
    assert "6.8 × faster at 2048 × 2048" in verdict
    assert "this PC" not in output
    assert len(asked(engines)) == before
    assert not list((tmp_path / "history").glob("*"))


def test_a_replay_can_be_exported_and_recorded_again_under_its_first_label(type_in, path, tmp_path):
    table = tmp_path / "table.csv"
    _, output, notes = type_in("replay", str(path), "--at-once", "--json", "--save", str(table))
    assert notes.startswith("Recorded 20")
    again = tmp_path / "again.jsonl"
    again.write_text(output, encoding="utf-8")
    first, second = read_recording(path), read_recording(again)
    assert second.header == first.header
    assert [run.samples_s for run in second.runs] == [run.samples_s for run in first.runs]
    assert {run.result.recording for run in second.runs} == {first.label}
    assert table.read_text(encoding="utf-8").count(first.label) == 4


def test_what_failed_where_it_was_recorded_is_reported_and_no_failure_here(type_in, path, tmp_path):
    lines = path.read_bytes().splitlines(keepends=True)
    cut = tmp_path / "cut.jsonl"
    cut.write_bytes(b"".join(lines[:-1]))
    status, output, errors = type_in("replay", str(cut), "--at-once")
    assert status == 0
    assert recording_sentences(read_recording(cut))[-1] in output
    (failed,) = errors.splitlines()
    assert all(fact in failed for fact in ("matmul", "2048 × 2048", "cuda:0"))


def test_a_bad_file_is_one_line_and_status_1(type_in, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_bytes(b"\x00\x01")
    status, output, errors = type_in("replay", str(path))
    assert (status, output) == (1, "")
    (line,) = errors.splitlines()
    assert line.startswith("gpu-studio: ")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("replay", "--at-once"), "FILE"),
        (("replay", "a.jsonl", "matmul"), "matmul"),
        (("replay", "a.jsonl", "--transfers"), "--transfers"),
        (("replay", "a.jsonl", "--save", "b.jsonl"), ".csv"),
        (("replay", "a.jsonl", "--full-length"), "--full-length"),
        (("replay", "a.jsonl", "--cold"), "--cold"),
        (("matmul", "--save", "."), "folder"),
        (("matmul", "--save", "nowhere/a.jsonl"), "nowhere"),
    ],
)
def test_wrong_use_is_one_line_before_anything_runs(engines, type_in, arguments, words):
    status, output, errors = type_in(*arguments)
    assert (status, output, errors.count("\n")) == (2, "", 1)
    assert words in errors
    assert asked(engines) == []
