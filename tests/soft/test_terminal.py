import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

from gpu_studio.cli.command import DONE, DOUBTFUL
from gpu_studio.core.benchmark.recording import read_recording
from tests.soft.conftest import MakePc
from tests.softcards.cards import DRIVERS
from tests.softcards.catalogue import GT_1030, RTX_3060

ROOT = Path(__file__).resolve().parents[2]


def home_in(folder: Path) -> dict[str, str]:
    return dict.fromkeys(("HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"), str(folder))


def test_devices_report_what_pytorch_holds_of_each_card(soft_pc: MakePc, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "devices", "--json"],
        env=soft_pc(GT_1030, RTX_3060).env | home_in(tmp_path), cwd=ROOT, capture_output=True,
        text=True, timeout=200, check=False,
    )  # fmt: skip
    listed = [
        (one["kind"], one["allocated_bytes"], one["reserved_bytes"])
        for one in json.loads(done.stdout)["devices"]
    ]
    assert listed == [("cpu", None, None), ("cuda", 0, 0), ("cuda", 0, 0)]


def test_a_sweep_over_wrong_results_claims_no_crossover(soft_pc: MakePc, tmp_path: Path) -> None:
    """A soft card's kernels compute nothing, so its times must not make it a winner.

    Fourteen kernels of 0.1 ms: 1.4 ms a call at any size, which a CPU needs between 64 and 2048.
    """
    pc = soft_pc(replace(RTX_3060, kernel_ms=0.1))
    home = home_in(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "gpu_studio", "bench", "elementwise", "--sweep", "64:2048",
         "--time", "0.05", "--json"],
        env=pc.env | home, cwd=ROOT, capture_output=True, text=True, timeout=400, check=False,
    )  # fmt: skip
    assert done.returncode == DOUBTFUL
    events = [json.loads(line) for line in done.stdout.splitlines()]
    results = [event for event in events if event["type"] == "run_finished"]
    assert [end["size"] for end in results[:12:2]] == [64, 128, 256, 512, 1024, 2048]
    assert len(results) == 12  # and no finer sizes: there is nothing to enclose
    cards = [end for end in results if end["device"] == "cuda:0"]
    assert all(end["median_s"] > 1.39e-3 for end in cards)
    assert not any(end["verified"] for end in cards)
    assert "overtakes" not in done.stderr
    assert "wrong results" in done.stderr
    assert len(list((tmp_path / "gpu-studio" / "history").iterdir())) == len(results)


def test_a_recording_of_these_cards_says_that_they_are_simulated(
    soft_pc: MakePc, tmp_path: Path
) -> None:
    pc = soft_pc(RTX_3060)
    home = home_in(tmp_path)
    file = tmp_path / "run.jsonl"

    def bench(status: int, *arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "gpu_studio", "bench", *arguments],
            env=pc.env | home, cwd=ROOT, capture_output=True, text=True, timeout=100, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stderr
        return done.stdout

    short = ("--size", "64", "--time", "0.05", "--no-history")
    bench(DOUBTFUL, "matmul", *short, "--save", str(file))
    recording = read_recording(file)
    assert recording.label.startswith("simulated card: RTX 3060 with ")
    assert recording.header.driver_version in {version for version, _ in DRIVERS.values()}
    assert {run.device_name for run in recording.runs if run.request.device != "cpu"} == {
        "NVIDIA GeForce RTX 3060"
    }
    content = file.read_text(encoding="utf-8")
    assert "GPU-" not in content  # no card's UUID
    output = bench(DONE, "replay", str(file), "--at-once")
    assert "simulated: the times do not belong to a real card." in output
    assert "On this PC" not in output
