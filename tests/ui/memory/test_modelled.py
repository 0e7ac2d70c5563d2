"""Every experiment through the tab, on a modelled GT 1030 with the real model behind it."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import QCheckBox, QComboBox, QFileDialog

from gpu_studio.core.memory import outcome
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.model.pages import BREAK_IT, CURVES, SEGMENTS
from gpu_studio.model.studio import Studio
from gpu_studio.ui.memory import oom_panel
from gpu_studio.ui.memory.memory_tab import MemoryTab
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.segment_page import SegmentPage
from tests.driving.window import click, find, numbers, text


@pytest.fixture
def studio(qapp, engines, sensor_source, settings):
    studio = Studio(engines, sensor_source, settings, modelled_factory=ModelledEngine)
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def tab(studio, theme, monkeypatch, qtbot):
    monkeypatch.setattr(oom_panel, "WATCH_S", 0.0)  # no pause for a viewer
    tab = MemoryTab(studio, theme)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    studio.start()
    qtbot.waitUntil(lambda: tab.model.chosen.is_modelled)
    tab.pages.go_to(BREAK_IT)
    return tab


def run(qtbot, tab, preset):
    box = find(tab, "memory.oom.preset", QComboBox)
    box.setCurrentIndex(box.findData(preset))
    box.activated.emit(box.currentIndex())
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)


@pytest.mark.parametrize(
    ("preset", "ends_in"), [(preset.name, preset.ends_in[1]) for preset in PRESETS[:-1]]
)
def test_each_preset_ends_in_its_named_outcome(tab, qtbot, preset, ends_in):
    run(qtbot, tab, preset)
    finished = tab.model.experiment.results[0].finished
    assert finished.outcome == ends_in
    assert text(tab, "memory.oom.headline") == outcome.outcome_notice(finished).sentence
    assert text(tab, "memory.oom.conf").endswith("SIMULATED")
    tank = tab.model.tank
    assert sum(part.size_bytes for part in tank.parts) == tank.total_bytes == 1996 << 20


def test_the_batch_is_compared_with_and_without_gradients(tab, qtbot):
    run(qtbot, tab, "activations")
    stages = text(tab, "memory.oom.stages")
    with_gradients, without = (line for line in stages.splitlines() if "largest batch" in line)
    assert "torch.no_grad()" in without
    assert int(numbers(without)[0]) > int(numbers(with_gradients)[0])


def test_a_recorded_snapshot_is_opened_again(tab, tmp_path, monkeypatch, qtbot):
    find(tab, "memory.oom.record", QCheckBox).click()
    run(qtbot, tab, "fragmentation")
    place = tmp_path / "mine.pickle"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(place), ""))
    click(tab, "memory.snapshot.save")
    tab.pages.go_to(SEGMENTS)
    tab.findChild(SegmentPage).open_snapshot(place)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: text(tab, "memory.largest") == "mine.pickle")
    assert len(view.blocks) == 6
    assert view.blocks.allocated_bytes == tab.model.experiment.results[0].finished.allocated_bytes


def test_empty_cache_on_a_modelled_card_frees_what_it_said(tab, qtbot):
    run(qtbot, tab, "gt1030")
    tab.pages.go_to(CURVES)
    qtbot.waitUntil(lambda: "1.75 GiB" in text(tab, "memory.cache"))
    qtbot.waitUntil(find(tab, "memory.empty_cache").isEnabled)
    click(tab, "memory.empty_cache")
    qtbot.waitUntil(lambda: "freed 1.75 GiB" in text(tab, "memory.cache"))
    assert tab.model.latest.reserved_bytes == 0
