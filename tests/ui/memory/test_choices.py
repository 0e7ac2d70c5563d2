"""What an experiment is made of: presets, sliders, the budget."""

from __future__ import annotations

import pytest
from PySide6.QtCore import Qt
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QMessageBox,
    QSlider,
)

from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
from gpu_studio.model.pages import BREAK_IT
from gpu_studio.ui.memory.oom_panel import OomPanel
from tests.driving.memory import MIB, start
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
    assert text(tab, "memory.oom.size.words") == "8192 × 8192 = 256 MiB"
    assert find(tab, "memory.oom", OomPanel).plan.count is None
    assert numbers(text(tab, "memory.oom.count.words")) == []
    assert find(tab, "memory.oom.dtype", QComboBox).currentText() == "float32"
    # Three quarters of what is left for an engine of its own: 3/4 of 1538 MiB, in steps of 16.
    qtbot.waitUntil(lambda: "1.12 GiB" in text(tab, "memory.oom.budget.words"))
    assert find(tab, "memory.oom", OomPanel).budget_bytes is None, "the engine knows better"


def test_a_moved_slider_makes_the_experiment_ones_own(tab, studio, qtbot):
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    size = find(tab, "memory.oom.size", QSlider)
    size.setFocus()
    qtbot.keyClick(size, Qt.Key.Key_Left)
    assert text(tab, "memory.oom.size.words").startswith("5792 × 5792 = 128 MiB")
    assert "5792" in size.accessibleName()
    assert find(tab, "memory.oom.preset", QComboBox).currentText() == "Your own"
    qtbot.keyClick(find(tab, "memory.oom.count", QSlider), Qt.Key.Key_Home)
    assert text(tab, "memory.oom.count.words").startswith("1 = 128 MiB")
    assert find(tab, "memory.oom", OomPanel).plan == AllocationPlan(size=5792, count=1)


def test_a_preset_that_chooses_its_tensors_itself_has_no_sliders(tab, studio, qtbot):
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    preset = find(tab, "memory.oom.preset", QComboBox)
    preset.setFocus()
    qtbot.keyClick(preset, Qt.Key.Key_Down)
    assert text(tab, "memory.oom.size.words").startswith("256 × 256 = 256 KiB")
    qtbot.keyClick(preset, Qt.Key.Key_Down)
    assert preset.currentData() == "one_big"
    assert find(tab, "memory.oom.sliders").isHidden()
    qtbot.keyClick(preset, Qt.Key.Key_Home)
    assert find(tab, "memory.oom.sliders").isVisible()
    assert text(tab, "memory.oom.size.words").startswith("8192")


def test_a_budget_moved_by_hand_stays(tab, studio, qtbot):
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    budget = find(tab, "memory.oom.budget", QSlider)
    before = budget.value()
    budget.setFocus()
    qtbot.keyClick(budget, Qt.Key.Key_Left)
    moved = budget.value()
    assert moved == before - 1
    assert numbers(text(tab, "memory.oom.budget.words")) == ["1.11", "1.95"]
    tab.model.memory_changed.emit()
    assert budget.value() == moved
    qtbot.keyClick(budget, Qt.Key.Key_End)
    assert find(tab, "memory.oom", OomPanel).budget_bytes < 1996 * MIB - 64 * MIB


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
    assert not find(tab, "memory.oom.budget").isEnabled()
    assert numbers(text(tab, "memory.oom.budget.words")) == ["1.95"]
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


def test_a_modelled_card_has_a_budget_if_you_want_one_and_a_real_one_again_by_itself(
    tab, scripts, studio, engines, qtbot
):
    scripts[RunMemoryExperiment] = [oom_finished("over_budget", device="model:1996")]
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    real = tab.model.chosen.identity
    tab.model.devices.choose("model:1996")
    click(tab, "memory.oom.whole_card")
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    assert not only(RunMemoryExperiment, engines.requests)[-1].whole_card
    tab.model.devices.choose("model:3768")
    assert find(tab, "memory.oom.whole_card", QCheckBox).isChecked()
    tab.model.devices.choose(real)
    assert not find(tab, "memory.oom.whole_card", QCheckBox).isChecked()
