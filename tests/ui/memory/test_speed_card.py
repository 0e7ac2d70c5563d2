"""How fast would it write? On a GT 1030, on a simulated card, and in the PC's RAM."""

from __future__ import annotations

import json

import pytest
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.ui.memory.fit_page import FitPage
from tests.driving.memory import every_control_is_named, shown
from tests.driving.window import click, find, text
from tests.fakes.run_answers import finished
from tests.fakes.weights_files import write_gguf, write_safetensors

RATES = {"cuda:0": 40e9, "cpu": 20e9}


def copied(_engine, request):
    rate = RATES[request.device]
    return [finished(request, (0.01,), throughput=rate, throughput_unit="B/s")]


@pytest.fixture
def memory(scripts, ready_studio, qtbot):
    scripts[RunWorkload] = copied
    memory = MemoryModel(ready_studio, ready_studio)
    qtbot.waitUntil(lambda: memory.chosen.is_real_card)
    memory.poll()
    qtbot.waitUntil(lambda: memory.sizes_bytes is not None and ready_studio.session.is_free)
    return memory


@pytest.fixture
def page(memory, theme, qtbot):
    return shown(qtbot, FitPage(memory, theme))


def sentence(page) -> str:
    return text(page, "memory.speed.sentence").replace("\u202f", " ")


def ask(page, network: str, dtype: str = "4-bit") -> None:
    find(page, "memory.fit.parameters", QComboBox).setCurrentText(network)
    find(page, "memory.fit.dtype", QComboBox).setCurrentText(dtype)


def test_no_number_before_the_bandwidth_is_measured(page, qtbot):
    ask(page, "1B")
    qtbot.waitUntil(lambda: "has not been measured" in sentence(page))
    assert not any(character.isdigit() for character in sentence(page))
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: sentence(page).startswith("At most "))
    assert sentence(page).startswith(
        "At most 71.1 tokens a second on this card: its measured 40.0 GB/s over 562 MB read"
    )
    assert "config.json" in text(page, "memory.speed.detail")
    assert find(page, "memory.speed.measure", QPushButton).isHidden()


def test_a_copy_of_the_benchmark_is_enough(page, ready_studio, qtbot, monkeypatch):
    ask(page, "1B")
    qtbot.waitUntil(lambda: "has not been measured" in sentence(page))
    for size, rate in ((16, 40e9), (256, 40e9), (512, 30e9)):
        monkeypatch.setitem(RATES, "cuda:0", rate)
        request = RunWorkload(
            run_id=f"run-{size}", workload="copy", device="cuda:0", size=size, dtype="float32",
            options={"direction": "d2d", "memory": "pageable"},
        )  # fmt: skip
        ready_studio.session.submit(request)
        qtbot.waitUntil(lambda: ready_studio.session.is_free)
        assert sentence(page).startswith("At most") is (size >= 256)  # 16 MiB may be in a cache
    assert "measured 40.0 GB/s" in sentence(page)  # a slower copy, beside other work, says nothing


def test_a_file_is_asked_about_in_its_own_types(page, qtbot, monkeypatch, tmp_path):
    path = write_gguf(tmp_path / "one.gguf", {"general.architecture": "x"},
                      {"token_embd.weight": ("Q4_0", (4096, 4096))})  # fmt: skip
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(page, "memory.fit.open")
    dtype = find(page, "memory.fit.dtype", QComboBox)
    assert dtype.currentText() == "as in the file"
    qtbot.waitUntil(lambda: "as they are in the file" in text(page, "memory.fit.sentence"))
    assert "does not train" in text(page, "memory.fit.training_fit.told")
    ask(page, "1B", dtype.currentText())
    assert dtype.findText("as in the file") < 0
    assert dtype.currentText() == "float16"
    packed = write_safetensors(tmp_path / "packed.safetensors", {"q": ("I32", (4096, 512))})
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(packed), ""))
    click(page, "memory.fit.open")
    qtbot.waitUntil(lambda: "packed.safetensors" in text(page, "memory.fit.sentence"))
    dtype.setCurrentText("float16")
    qtbot.waitUntil(lambda: "are packed" in text(page, "memory.fit.reason"))
    assert sentence(page) == ""


def test_a_configuration_says_the_cache(page, qtbot, monkeypatch, tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({"num_hidden_layers": 4, "hidden_size": 512,
                                "num_attention_heads": 8, "vocab_size": 1000}))  # fmt: skip
    ask(page, "100M")
    qtbot.waitUntil(lambda: "config.json" in text(page, "memory.speed.detail"))
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(page, "memory.speed.open")
    qtbot.waitUntil(lambda: "of KV cache" in text(page, "memory.speed.detail"))
    assert "KV cache" in text(page, "memory.fit.sentence")
    path.write_text("no")
    other = path.with_name("other.json")
    other.write_text("[]")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(other), ""))
    click(page, "memory.speed.open")
    qtbot.waitUntil(lambda: "not a model's configuration" in text(page, "memory.fit.reason"))
    weights = write_safetensors(tmp_path / "a.safetensors", {"t": ("F32", (4, 4))})
    path.unlink()
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(weights), ""))
    click(page, "memory.fit.open")  # another model: the configuration is not its
    qtbot.waitUntil(lambda: "a.safetensors" in text(page, "memory.fit.sentence"))
    assert text(page, "memory.speed.config") == ""


def test_a_failed_measurement_says_why(page, scripts, qtbot):
    failure = Failure(FailureKind.OUT_OF_MEMORY, "512 MiB are needed, 100 MiB are free.")
    scripts[RunWorkload] = lambda _engine, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    ask(page, "1B")
    qtbot.waitUntil(lambda: "has not been measured" in sentence(page))
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: "512 MiB are needed" in text(page, "memory.speed.detail"))
    assert find(page, "memory.speed.measure", QPushButton).isEnabled()


def test_the_pcs_ram_has_a_speed_and_a_simulated_card_none(page, memory, qtbot):
    memory.devices.choose("cpu")
    memory.poll()
    ask(page, "1B")
    qtbot.waitUntil(lambda: "has not been measured" in sentence(page))
    click(page, "memory.speed.measure")
    qtbot.waitUntil(lambda: "on the CPU: its measured 20.0 GB/s × 3/2" in sentence(page))
    assert "fits into the PC's RAM" in text(page, "memory.fit.sentence")
    assert find(page, "memory.fit.inference.card").isVisible() is False
    memory.devices.choose("model:1996")
    qtbot.waitUntil(lambda: "simulated card has no bandwidth" in sentence(page))
    assert find(page, "memory.fit.inference.card").isVisible()
    every_control_is_named(page)
