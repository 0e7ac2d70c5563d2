"""Will it fit?"""

from __future__ import annotations

import re

import pytest
from PySide6.QtWidgets import QComboBox, QFileDialog, QSpinBox

from gpu_studio.ui.memory.fit_page import FitPage
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import MIB, every_control_is_named, shown
from tests.driving.window import click, find, text
from tests.fakes.pc import cpu_only
from tests.fakes.weights_files import write_safetensors


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
