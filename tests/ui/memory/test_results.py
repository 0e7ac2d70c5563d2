"""What an experiment came to."""

from __future__ import annotations

from pathlib import Path

from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QFileDialog,
)

from gpu_studio.core.memory.outcome import outcome_notice
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.model.pages import BREAK_IT
from gpu_studio.ui.memory.tank import TankBar
from tests.driving.memory import MIB, run, start
from tests.driving.window import click, find, text
from tests.fakes.memory_answers import (
    memory_read,
    oom_finished,
)
from tests.fakes.scripted_engine import Pause

ERROR = (
    "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB of "
    "which 634.00 MiB is free. 1.17 GiB allowed; Of the allocated memory 1.00 GiB is allocated by "
    "PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
)


def test_the_experiment_runs_and_reports_its_end(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom"),
        Pause(),
        memory_read(reserved=1024, mark="freed"),
        oom_finished("over_budget", error_text=ERROR),
    ]
    run(tab, studio)
    qtbot.waitUntil(lambda: "1 GiB" in text(tab, "memory.oom.outcome"))
    assert find(tab, "memory.oom.invitation").isHidden()
    assert not find(tab, "memory.oom.run").isEnabled()
    assert find(tab, "memory.oom.stop").isEnabled()
    bar = find(tab, "memory.tank", TankBar)
    assert next(p.size_bytes for p in bar.tank.parts if p.key == "tensors") == 1024 * MIB
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    result = outcome_notice(tab.model.experiment.results[0].finished)
    assert text(tab, "memory.oom.headline") == result.sentence
    shown = text(tab, "memory.oom.outcome")
    assert all(fact in shown for fact in ("5", "256 MiB", "1 GiB"))
    assert text(tab, "memory.oom.next").endswith(result.next_step)
    assert find(tab, "memory.oom.result").property("tone") == "amber"
    assert "ended" in text(tab, "memory.sentence")
    assert find(tab, "memory.engine", QComboBox).currentIndex() == 1  # of the lab
    assert find(tab, "memory.oom.tank_words").isVisible()
    drawn = find(tab, "memory.oom.tank", TankBar).tank
    assert {part.key: part.size_bytes // MIB for part in drawn.parts} == {
        "driver": 52, "not_told": 338, "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip


def test_an_error_that_the_counters_do_not_agree_with_is_drawn_as_its_text_reports_it(
    tab, scripts, studio, qtbot
):
    """Another process took 100 MiB between the error and the reading."""
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        memory_read(allocated=1024, reserved=1024, mark="oom", free_bytes=534 * MIB),
        oom_finished(error_text=ERROR),
    ]
    run(tab, studio)
    drawn = find(tab, "memory.oom.tank", TankBar)
    qtbot.waitUntil(lambda: drawn.tank is not None)
    assert {part.key: part.size_bytes // MIB for part in drawn.tank.parts} == {
        "not_told": 338, "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip
    assert find(tab, "memory.oom.tank_words").isVisible()


def test_the_same_with_expandable_segments_stands_beside_it(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"), oom_finished("fragmented")
    ]  # fmt: skip
    run(tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.compare").isEnabled)
    fragmented = outcome_notice(oom_finished("fragmented")).sentence
    assert text(tab, "memory.oom.headline") == fragmented
    assert find(tab, "memory.oom.other.result").isHidden()
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1280, reserved=1280),
        oom_finished("fits", tensors=5, conf="expandable_segments:True"),
    ]  # fmt: skip
    click(tab, "memory.oom.compare")
    assert engines.latest.environment.allocator_configuration == "expandable_segments:True"
    fits = outcome_notice(oom_finished("fits")).sentence
    qtbot.waitUntil(lambda: text(tab, "memory.oom.other.headline") == fits)
    assert text(tab, "memory.oom.headline") == fragmented
    assert text(tab, "memory.oom.other.conf") == "EXPANDABLE_SEGMENTS:TRUE"
    qtbot.waitUntil(lambda: find(tab, "memory.oom.run").isEnabled())
    assert not find(tab, "memory.oom.compare").isEnabled()


def test_both_results_fit_into_the_smallest_window(tab, scripts, studio, qtbot):
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1024, reserved=1024, mark="oom"),
        oom_finished("fragmented", error_text=ERROR),
    ]
    tab.resize(744, 560)  # what a window of 1024 pixels leaves beside the code
    run(tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.compare").isEnabled)
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1280, reserved=1280, mark="held"),
        oom_finished("fits", tensors=5, conf="expandable_segments:True"),
    ]
    click(tab, "memory.oom.compare")
    other = find(tab, "memory.oom.other.tank", TankBar)
    qtbot.waitUntil(lambda: other.isVisible() and other.tank is not None)
    assert find(tab, "memory.oom.tank", TankBar).isVisible()
    page = find(tab, "memory.oom.other.result").parentWidget().parentWidget()
    qtbot.waitUntil(lambda: page.width() <= page.parentWidget().width())


def test_a_recorded_snapshot_is_saved_where_one_likes(
    tab, scripts, studio, tmp_path, monkeypatch, qtbot
):
    def recording(_engine, request):
        assert request.snapshot_path
        Path(request.snapshot_path).write_bytes(b"recorded")
        yield oom_finished(snapshot_path=request.snapshot_path)

    scripts[RunMemoryExperiment] = recording
    start(tab, studio, BREAK_IT)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    find(tab, "memory.oom.record", QCheckBox).click()
    click(tab, "memory.oom.run")
    save = find(tab, "memory.snapshot.save")
    qtbot.waitUntil(save.isVisible)
    place = tmp_path / "mine.pickle"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(place), ""))
    click(tab, "memory.snapshot.save")
    assert place.read_bytes() == b"recorded"
    assert str(place) in text(tab, "memory.snapshot.saved")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_a: (str(tmp_path), ""))
    click(tab, "memory.snapshot.save")
    assert str(place) not in text(tab, "memory.snapshot.saved")


def test_stop_stops_it(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        Pause(),
        oom_finished("stopped", tensors=1),
    ]
    run(tab, studio)
    qtbot.waitUntil(lambda: engines.latest.paused.is_set())
    click(tab, "memory.oom.stop")
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    result = outcome_notice(tab.model.experiment.results[0].finished)
    assert text(tab, "memory.oom.headline") == result.sentence
    assert "1 tensor of 256 MiB" in text(tab, "memory.oom.outcome")
