"""What an experiment is made of: presets, sliders, the budget."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QMessageBox,
)

from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
from gpu_studio.model.pages import BREAK_IT
from tests.driving.memory import start
from tests.driving.window import click, find, numbers, text
from tests.engine.answers import only
from tests.fakes.memory_answers import (
    oom_finished,
)


def test_the_first_preset_is_the_experiment_of_the_post(tab, studio, qtbot):
    start(tab, studio, BREAK_IT)
    preset = find(tab, "memory.oom.preset", QComboBox)
    assert preset.currentData() == "gt1030"
    assert "Radosław Śmigielski" in text(tab, "memory.oom.source")
    assert find(tab, "memory.oom.plan").isHidden()
    # Three quarters of what is left for an engine of its own: 3/4 of 1538 MiB.
    qtbot.waitUntil(lambda: "about 1.13 GiB" in text(tab, "memory.oom.budget"))


def test_an_experiment_of_your_own_has_the_chosen_tensors(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = [oom_finished("fits")]
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    preset = find(tab, "memory.oom.preset", QComboBox)
    preset.setFocus()
    qtbot.keyClick(preset, Qt.Key.Key_End)
    assert find(tab, "memory.oom.plan").isVisible()
    find(tab, "memory.oom.dtype", QComboBox).setCurrentText("float16")
    size = find(tab, "memory.oom.size", QComboBox)
    assert size.currentText().replace("\u202f", " ") == "4096 × 4096 = 32 MiB"
    size.setCurrentIndex(size.findData(8192))
    count = find(tab, "memory.oom.count", QComboBox)
    count.setCurrentIndex(count.count() - 1)
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    request = only(RunMemoryExperiment, engines.requests)[-1]
    assert request.plan == AllocationPlan(size=8192, dtype="float16")
    assert request.budget_bytes is None, "the engine knows better what is free"


def test_the_whole_card_is_filled_only_after_a_confirmation(
    tab, scripts, engines, studio, monkeypatch, qtbot
):
    asked = []

    def answer(button):
        def exec_(box):
            asked.append(box.informativeText())
            return button

        return exec_

    scripts[RunMemoryExperiment] = [oom_finished("card_full")]
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    find(tab, "memory.oom.whole_card", QCheckBox).click()
    assert numbers(text(tab, "memory.oom.budget")) == ["1.95"]
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Cancel))
    click(tab, "memory.oom.run")
    assert len(asked) == 1
    assert tab.model.experiment.request is None
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Yes))
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    request = engines.requests[-1]
    assert (request.whole_card, request.budget_bytes) == (True, None)


def test_a_modelled_card_is_filled_without_asking(
    tab, scripts, engines, studio, monkeypatch, qtbot
):
    monkeypatch.setattr(QMessageBox, "exec", lambda box: pytest.fail("nothing can be filled"))
    scripts[RunMemoryExperiment] = [oom_finished("card_full", device="model:1996", modelled=True)]
    start(tab, studio, BREAK_IT)
    tab.model.devices.choose("model:1996")
    assert find(tab, "memory.oom.whole_card", QCheckBox).isChecked(), "nothing else is on it"
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    assert text(tab, "memory.oom.conf") == "PYTORCH'S DEFAULT · SIMULATED"
    request = only(RunMemoryExperiment, engines.requests)[-1]
    assert (request.whole_card, request.budget_bytes) == (True, None)
