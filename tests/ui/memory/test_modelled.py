"""Every experiment through the tab, on a modelled GT 1030 with the real model behind it."""

import pytest
from PySide6.QtWidgets import QCheckBox, QFileDialog

from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.model.memory import now_model
from gpu_studio.model.studio import Studio
from gpu_studio.ui.memory.memory_tab import MemoryTab
from gpu_studio.ui.memory.segment_map import SegmentMapView
from gpu_studio.ui.memory.segment_page import SegmentPage
from tests.driving.window import click, find, text


@pytest.fixture
def studio(qapp, engines, sensor_source, settings):
    studio = Studio(engines, sensor_source, settings, modelled_factory=ModelledEngine)
    yield studio
    studio.close()
    studio.deleteLater()


@pytest.fixture
def tab(studio, theme, monkeypatch, qtbot):
    monkeypatch.setattr(now_model, "WATCH_S", 0.0)  # no pause for a viewer
    tab = MemoryTab(studio, theme)
    studio.destination_wanted.connect(tab.go_to)
    qtbot.addWidget(tab)
    tab.resize(980, 700)
    tab.show()
    studio.start()
    qtbot.waitUntil(lambda: tab.model.chosen.is_modelled)
    return tab


def run(qtbot, tab, preset):
    click(tab, f"memory.oom.preset.{preset}")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)


def test_a_recorded_snapshot_is_opened_again(tab, tmp_path, monkeypatch, qtbot):
    records = find(tab, "memory.oom.record", QCheckBox)
    qtbot.waitUntil(records.isEnabled)
    records.click()
    run(qtbot, tab, "fragmentation")
    place = tmp_path / "mine.pickle"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(place), ""))
    click(tab, "memory.oom.segments")
    click(tab, "memory.segment_map.save")
    assert "memory_viz" in text(tab, "memory.segment_map.notice")
    model = tab.findChild(SegmentPage).model
    model.save_snapshot(str(tmp_path))
    assert "Could not save" in text(tab, "memory.segment_map.notice")
    model.open_snapshot(place)
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: text(tab, "memory.segment_map.moment") == "mine.pickle")
    assert len(view.blocks) == 6
    assert view.blocks.allocated_bytes == tab.model.experiment.results[0].finished.allocated_bytes


def test_fill_fail_free_empty_on_one_page(tab, qtbot):
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "The card is full.")
    qtbot.waitUntil(lambda: text(tab, "memory.cache") == "frees 1.75 GiB")
    click(tab, "memory.empty_cache")
    qtbot.waitUntil(lambda: text(tab, "memory.cache") == "freed 1.75 GiB")
    assert tab.model.latest.reserved_bytes == 0
    assert [mark.label for mark in tab.model.history.shown_marks][-1] == "empty cache"
