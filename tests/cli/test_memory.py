import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from tests.fakes.histories import TrainingHistory
from tests.fakes.memory_answers import memory_read, oom_finished
from tests.fakes.weights_files import write_gguf, write_safetensors

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def type_in(typed: Any) -> Callable[..., tuple[int, list[str], str]]:
    def type_in(*arguments: str) -> tuple[int, list[str], str]:
        status, output, errors = typed("memory", *arguments)
        return status, output.splitlines(), errors

    return type_in


@pytest.mark.parametrize("preset", [p for p in PRESETS if p.name != "custom"], ids=lambda p: p.name)
def test_oom_ends_with_its_outcome(type_in: Any, preset: Any):
    # A simulated card is filled without being asked to: no other program is on it.
    budgets = (("--budget-mib", "1024"), ()), (preset.ends_in[0], preset.ends_in[1])
    for options, outcome in zip(*budgets, strict=True):
        device = ("--device", "model:1996")
        status, lines, _ = type_in("oom", "--preset", preset.name, *device, "--json", *options)
        assert status == 0
        finished = json.loads(lines[-1])
        assert finished["type"] == "oom_finished"
        assert finished["outcome"] == outcome
        assert finished["modelled"] is True
        assert finished["reserved_bytes"] >= finished["allocated_bytes"]
        assert {json.loads(line)["type"] for line in lines} <= {
            "memory_read", "stage_began", "oom_finished",
        }  # fmt: skip


def test_oom_with_a_budget_and_a_configuration(type_in: Any):
    options = ("--device", "model:1996", "--budget-mib", "512", "--json")
    _, lines, _ = type_in("oom", "--preset", "fragmentation", *options)
    assert json.loads(lines[-1])["budget_bytes"] == 512 * MIB
    assert json.loads(lines[-1])["outcome"] == "fragmented"
    expandable = ("--conf", "expandable_segments:True")
    _, lines, _ = type_in("oom", "--preset", "fragmentation", *options, *expandable)
    assert json.loads(lines[-1])["outcome"] == "fits"
    assert json.loads(lines[-1])["conf"] == "expandable_segments:True"


def test_fit(type_in: Any):
    options = ("--device", "model:1996", "--parameters", "1e9", "--dtype", "16-bit")
    status, lines, _ = type_in("fit", *options)
    assert status == 0
    assert "simulated" in lines[0]
    assert lines[1] == "? The model may fit: nearly all of the room is needed"
    assert any(line.startswith("✖ Training with Adam does not fit") for line in lines)
    assert any(line.startswith("1. Weights in 8-bit: needs") for line in lines)
    finished = json.loads(type_in("fit", *options, "--json")[1][-1])
    assert finished["type"] == "fit_finished"
    assert finished["free_bytes"] == 1936 << 20
    assert (finished["inference_fits"], finished["training_fits"]) == (None, False)
    assert finished["inference_bytes"] == 2 * 10**9
    half = json.loads(
        type_in("fit", "--device", "model:1996", "--parameters", "3e8", "--json")[1][-1]
    )
    assert (half["inference_fits"], half["training_fits"]) == (True, False)
    sgd = ("--parameters", "1e9", "--optimizer", "sgd", "--amp", "--json")
    other = json.loads(type_in("fit", "--device", "model:1996", *sgd)[1][-1])
    assert (other["plan"], other["training_bytes"]) == ("SGD and AMP", 10 * 10**9)
    for wrong in (
        ("--optimizer", "lion"),
        ("--parameters", "x"),
        ("--weights", "x", "--dtype", "4-bit"),
    ):
        assert type_in("fit", "--device", "model:1996", *wrong)[0] == 2


def test_fit_on_a_card_counts_what_others_hold(engines_of: Any, type_in: Any):
    read = memory_read(mark="start")
    engines_of({RunMemoryExperiment: [read, memory_read(allocated=1, reserved=2), oom_finished()]})
    status, lines, _ = type_in("fit", "--device", "cuda:0", "--json")
    assert status == 0
    finished = json.loads(lines[-1])
    assert finished["taken_bytes"] == read.total_bytes - read.free_bytes
    assert finished["free_bytes"] == read.free_bytes


def test_fit_of_a_known_network_and_of_a_file(type_in: Any, tmp_path: Path):
    status, lines, _ = type_in("fit", "--device", "model:1996", "--parameters", "GPT-2")
    assert status == 0
    text = "\n".join(lines).replace("\u202f", " ")
    assert "GPT-2 in float32." in text
    assert "124.44 million parameters" in text
    path = tmp_path / "one.safetensors"
    write_safetensors(path, {"weight": ("F32", (4096, 4096))})
    options = ("fit", "--device", "model:1996", "--weights", str(path), "--json")
    finished = json.loads(type_in(*options)[1][-1])
    assert finished["network"] == "one.safetensors"
    assert finished["training_bytes"] == finished["training_most_bytes"] == 5 * 64 << 20
    path.write_bytes(b"no")
    assert type_in(*options)[0] == 1


def test_fit_says_how_fast_a_model_would_write(shared_engine: None, type_in: Any, tmp_path: Path):
    """On the CPU with its own measured bandwidth; a simulated card has none."""
    path = tmp_path / "one.gguf"
    write_gguf(
        path,
        {"general.architecture": "x", "x.block_count": 2, "x.embedding_length": 512,
         "x.attention.head_count": 8},
        {"blk.0.w.weight": ("Q4_0", (512, 4096)), "blk.1.w.weight": ("Q4_0", (512, 4096))},
    )  # fmt: skip
    options = ("fit", "--device", "cpu", "--weights", str(path), "--context", "64", "--batch", "2")
    found = json.loads(type_in(*options, "--json")[1][-1])
    weights_bytes, cache_bytes = 2 * 512 * 4096 * 18 // 32, 2 * 64 * 2 * 2 * 512 * 2
    assert found["weights_bytes"] == weights_bytes
    assert found["cache_bytes"] == cache_bytes
    assert found["bound_tokens_per_s"] == pytest.approx(
        2 * found["bandwidth_bytes_per_s"] / (weights_bytes + cache_bytes)
    )
    status, lines, _ = type_in("fit", "--device", "model:1996", *options[3:])
    assert status == 0
    assert any("simulated card has no bandwidth" in line for line in lines)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "required"),
        (["explode"], "explode"),
        (["oom"], "--preset"),
        (["oom", "--preset", "gt1030"], "--device"),
        (["oom", "--preset", "nonsense", "--device", "model:1996"], "nonsense"),
        (["oom", "--preset", "gt1030", "--device", "model:1996", "--budget-mib", "9" * 5000],
         "budget"),
        (["oom", "--preset", "gt1030", "--device", "model:1996", "--budget-mib", "5",
          "--whole-card"], "budget"),
        (["oom", "--preset", "gt1030", "--device", "model:1996", "--conf", "max_split_size_mb:3"],
         "max_split_size_mb"),
        (["oom", "--preset", "custom", "--device", "model:1996", "--dtype", "int3"], "int3"),
        (["fit"], "--device"),
        (["fit", "--device=--"], "--device: expected one argument"),
        (["fit", "--device", "model:1996", "--parameters", "many"], "many"),
    ],
)  # fmt: skip
def test_wrong_use_is_one_line(type_in: Any, arguments: list[str], words: str):
    status, lines, notes = type_in(*arguments)
    assert (status, lines) == (2, [])
    assert words in notes
    assert notes.count("\n") == 1
    assert len(notes) < 400


def test_replay_tries_another_card(type_in: Any, tmp_path: Path):
    path = tmp_path / "history.pickle"
    history = TrainingHistory()
    history.run()
    history.write(path)
    status, lines, _ = type_in("replay", str(path), "--json", "--card", "1GiB", "--other", "100MiB")
    found = json.loads(lines[-1])
    assert status == 0
    assert found["allocations"] > 0
    assert found["what_if"]["failed_at"] is not None
    assert found["what_if"]["enough_bytes"] > GIB
    status, lines, _ = type_in("replay", str(path), "--card", "1GiB", "--conf", "")
    text = "\n".join(lines)
    assert status == 0
    assert "does not fit on 1" in text
    assert "CUDA out of memory" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [(b"", "Cannot open"), (pickle.dumps({"segments": []}), "no history")],
)
def test_replay_refuses_what_has_no_history(
    type_in: Any, tmp_path: Path, content: bytes, words: str
):
    path = tmp_path / "history.pickle"
    path.write_bytes(content)
    status, lines, notes = type_in("replay", str(path))
    assert (status, lines) == (1, [])
    assert words in notes
