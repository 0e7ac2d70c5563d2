"""Every experiment through the tab, on a modelled GT 1030 with the real model behind it."""

import pytest

from gpu_studio.engine.memory.modelled_engine import ModelledEngine
from gpu_studio.model.memory import now_model
from gpu_studio.model.studio import Studio
from gpu_studio.ui.memory.memory_tab import MemoryTab
from gpu_studio.ui.memory.segment_map import SegmentMapView
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


def test_the_segments_of_the_failed_moment_are_shown(tab, qtbot):
    run(qtbot, tab, "fragmentation")
    click(tab, "memory.oom.segments")
    view = find(tab, "memory.segments", SegmentMapView)
    qtbot.waitUntil(lambda: view.blocks is not None and len(view.blocks) == 6)
    assert view.blocks.allocated_bytes == tab.model.experiment.results[0].finished.allocated_bytes


def test_fill_fail_free_empty_on_one_page(tab, qtbot):
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == "The card is full.")
    qtbot.waitUntil(lambda: text(tab, "memory.cache") == "frees 1.75 GiB")
    click(tab, "memory.empty_cache")
    qtbot.waitUntil(lambda: text(tab, "memory.cache") == "freed 1.75 GiB")
    assert tab.model.latest.reserved_bytes == 0
    assert [mark.label for mark in tab.model.history.shown_marks][-1] == "empty cache"
