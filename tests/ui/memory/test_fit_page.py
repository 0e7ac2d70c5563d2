"""Will it fit?

How fast would it write? On a GT 1030, on a simulated card, and in the PC's RAM.
"""

from __future__ import annotations

import json
import re

import pytest
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton, QSpinBox

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.ui.memory.fit_page import FitPage
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import MIB, every_control_is_named, shown
from tests.driving.window import click, find, text
from tests.fakes.pc import cpu_only
from tests.fakes.run_answers import finished
from tests.fakes.weights_files import write_gguf, write_safetensors


@pytest.fixture
def inventory():
    return cpu_only()


@pytest.fixture
def fits(memory, theme, qtbot):
    return shown(qtbot, FitPage(memory, theme))


def test_what_a_modelled_gt_1030_holds_and_what_not(fits, qtbot):
    qtbot.waitUntil(lambda: bool(text(fits, "memory.fit.sentence")))
    card = text(fits, "memory.fit.card")
    assert "GT 1030" in card
    assert card.endswith("simulated")
    inference = text(fits, "memory.fit.inference.verdict")
    assert inference.startswith("✖")
    assert re.search(r"1\.\d+ GiB", inference.replace("\u202f", " "))
    training = text(fits, "memory.fit.training_fit.verdict")
    assert training.startswith("✖")
    assert all(fact in training.replace("\u202f", " ") for fact in ("Adam", "16.7 GiB more"))
    tank = find(fits, "memory.fit.training_fit.tank", TankBar)
    assert tank.tank.card_bytes == 1996 * MIB
    tank.grab()
    network = find(fits, "memory.fit.parameters", QComboBox)
    network.setCurrentText("100M")
    qtbot.waitUntil(lambda: text(fits, "memory.fit.training_fit.verdict").startswith("?"))
    assert "may fit" in text(fits, "memory.fit.training_fit.verdict")
    network.setCurrentText("60M")
    known = "? Weights and Adam fit; activations are not known"
    qtbot.waitUntil(lambda: text(fits, "memory.fit.training_fit.verdict") == known)
    assert text(fits, "memory.fit.inference.verdict") == "✔ The weights fit"


def test_training_with_its_activations_fits_or_not(fits, qtbot):
    network = find(fits, "memory.fit.parameters", QComboBox)
    batch = find(fits, "memory.speed.batch", QSpinBox)
    optimizer = find(fits, "memory.fit.optimizer", QComboBox)
    network.setCurrentText("GPT-2")
    optimizer.setCurrentText("SGD")
    verdict = "memory.fit.training_fit.verdict"
    qtbot.waitUntil(lambda: text(fits, verdict) == "? Training with SGD may fit: nearly all of the "
                    "room is needed")  # fmt: skip
    assert " to " in text(fits, "memory.fit.training_fit.told")
    tank = find(fits, "memory.fit.training_fit.tank", TankBar).tank
    assert "activations" in {part.key for part in tank.parts}
    batch.setValue(8)
    qtbot.waitUntil(lambda: text(fits, verdict).startswith("✖ Training with SGD does not fit"))


def test_a_file_has_its_own_answer(fits, qtbot, monkeypatch, tmp_path):
    path = tmp_path / "one.safetensors"
    write_safetensors(path, {"weight": ("F32", (4096, 4096))})
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(fits, "memory.fit.open")
    assert find(fits, "memory.fit.parameters", QComboBox).currentText() == "one.safetensors"
    qtbot.waitUntil(
        lambda: "one.safetensors, with 16.7772 million" in text(fits, "memory.fit.sentence")
    )
    assert "320" in text(fits, "memory.fit.training_fit.told")
    path = tmp_path / "other.bin"
    path.write_bytes(b"PK")
    click(fits, "memory.fit.open")
    refusal = "other.bin is neither a safetensors nor a GGUF file."
    qtbot.waitUntil(lambda: text(fits, "memory.fit.reason") == refusal)


def test_the_optimizer_and_its_way_decide_what_training_needs(fits, qtbot):
    optimizer = find(fits, "memory.fit.optimizer", QComboBox)
    dtype = find(fits, "memory.fit.dtype", QComboBox)
    optimizer.setCurrentText("SGD")
    qtbot.waitUntil(lambda: "SGD" in text(fits, "memory.fit.training_fit.verdict"))
    assert optimizer.findText("Adam (fused=True) and float32 masters") == -1
    dtype.setCurrentText("bfloat16")
    assert optimizer.currentText() == "SGD"
    optimizer.setCurrentText("Adam (fused=True) and float32 masters")
    qtbot.waitUntil(lambda: "float32 masters" in text(fits, "memory.fit.training_fit.verdict"))
    tank = find(fits, "memory.fit.training_fit.tank", TankBar).tank
    assert {part.key for part in tank.parts} >= {"tensors", "gradients", "masters", "moments"}
    dtype.setCurrentText("float32")
    assert optimizer.currentText() == "Adam"


def test_a_number_that_is_none_is_refused_in_place(fits, qtbot):
    network = find(fits, "memory.fit.parameters", QComboBox)
    network.setCurrentText("lots")
    assert "7B" in text(fits, "memory.fit.reason")
    assert network.lineEdit().property("invalid") is True
    network.setCurrentText("7B")
    assert text(fits, "memory.fit.reason") == ""
    assert network.lineEdit().property("invalid") is False


def test_every_control_has_a_name_to_be_read_aloud(fits):
    every_control_is_named(fits)


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
