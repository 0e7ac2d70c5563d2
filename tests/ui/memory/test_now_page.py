"""Memory now: experiments from their sliders to their outcome, and giving memory back."""

import msgspec
import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtWidgets import QComboBox, QMessageBox, QSlider

from gpu_studio.app import build_window
from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.memory.outcome import outcome_notice
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    ReadMemory,
    RunMemoryExperiment,
)
from gpu_studio.model.memory import segment_model
from gpu_studio.model.memory.segment_model import SegmentModel
from gpu_studio.model.pages import SEGMENTS
from gpu_studio.model.studio import Studio
from gpu_studio.ui.memory.tank import TankBar
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.memory import MIB, fill_card, run, start
from tests.driving.window import click, find, open_tab, plain, sees, text, wait_ready
from tests.engine.answers import only
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.memory_answers import memory_read, no_context, oom_finished
from tests.fakes.pc import SteadySensors, cpu_only, gt_1030, reading
from tests.fakes.scripted_engine import Pause
from tests.fakes.slow_work import SlowWork

ERROR = (
    "CUDA out of memory. Tried to allocate 256.00 MiB. GPU 0 has a total capacity of 1.95 GiB of "
    "which 634.00 MiB is free. 1.17 GiB allowed; Of the allocated memory 1.00 GiB is allocated by "
    "PyTorch, and 0 bytes is reserved by PyTorch but unallocated."
)
AT_FAILURE = memory_read(allocated=1024, reserved=1024, mark="oom")


def parts(tab, name="memory.tank"):
    """The parts of a tank in MiB."""
    tank = find(tab, name, TankBar).tank
    return {part.key: part.size_bytes // MIB for part in tank.parts} if tank else {}


def names(tab):
    """The names on the curves."""
    plot = find(tab, "memory.plot", LivePlot)
    items = plot.plot.mark_items["names"] if plot.plot else []
    return [plain(item.toPlainText()) for item in items]


# ── experiments ──────────────────────────────────────────────────────────────────────────────────


def test_the_first_try_fills_the_card_once_the_user_agrees(
    tab, scripts, engines, studio, monkeypatch, qtbot
):
    """The experiment of the post: 8192 × 8192 of float32 until it fails."""
    asked = []

    def answer(button):
        def exec_(box):
            asked.append(box.informativeText())
            return button

        return exec_

    scripts[RunMemoryExperiment] = [oom_finished("card_full")]
    start(tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Cancel))
    click(tab, "memory.oom.run")
    assert tab.model.experiment.request is None
    monkeypatch.setattr(QMessageBox, "exec", answer(QMessageBox.StandardButton.Yes))
    for _ in range(2):
        click(tab, "memory.oom.run")
        qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
        qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert len(asked) == 2, "not again for this card"
    request = only(RunMemoryExperiment, engines.requests)[-1]
    assert (request.whole_card, request.budget_bytes) == (True, None)
    assert request.plan == AllocationPlan(size=8192, dtype="float32")


def test_the_sliders_choose_the_tensors_and_the_budget(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = [oom_finished("fits")]
    start(tab, studio)
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    for name, key in (
        ("size", Qt.Key.Key_Left), ("count", Qt.Key.Key_Home), ("budget", Qt.Key.Key_Home)
    ):  # fmt: skip
        qtbot.keyClick(find(tab, f"memory.oom.{name}", QSlider), key)
    find(tab, "memory.oom.dtype", QComboBox).setCurrentText("float16")
    said = plain(find(tab, "memory.oom.size", QSlider).accessibleDescription())
    assert said.startswith("32 MiB")
    # A quarter of what is left for an engine of its own: 1538 MiB.
    said = plain(find(tab, "memory.oom.budget", QSlider).accessibleDescription())
    assert said.startswith("384 MiB")
    click(tab, "memory.oom.run")  # within a budget nobody is asked
    qtbot.waitUntil(lambda: len(tab.model.experiment.results) == 1)
    request = only(RunMemoryExperiment, engines.requests)[-1]
    assert request.plan == AllocationPlan(size=4096, count=1, dtype="float16")
    assert (request.whole_card, request.budget_bytes) == (False, 1538 * MIB // 4)
    qtbot.keyClick(find(tab, "memory.oom.budget", QSlider), Qt.Key.Key_End)
    qtbot.keyClick(find(tab, "memory.oom.budget", QSlider), Qt.Key.Key_Left)
    click(tab, "memory.oom.run")
    qtbot.waitUntil(lambda: len(only(RunMemoryExperiment, engines.requests)) == 2)
    assert only(RunMemoryExperiment, engines.requests)[-1].budget_bytes is None, "as it finds"


def test_the_tank_is_now_and_the_failed_moment_has_its_own_bar(
    tab, scripts, engines, studio, qtbot
):
    scripts[RunMemoryExperiment] = lambda engine, request: [
        memory_read(mark="start"),
        AT_FAILURE,
        Pause(),
        memory_read(reserved=1024, mark="freed"),
        oom_finished("over_budget", error_text=ERROR),
    ]
    run(tab, studio)
    qtbot.waitUntil(lambda: "1 GiB" in text(tab, "memory.oom.outcome"))
    assert not find(tab, "memory.oom.run").isEnabled()
    assert find(tab, "memory.oom.stop").isEnabled()
    assert parts(tab)["tensors"] == 1024
    scripts[ReadMemory] = [memory_read(reserved=1024)]
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    result = outcome_notice(tab.model.experiment.results[0].finished)
    assert text(tab, "memory.oom.headline") == result.sentence
    shown = text(tab, "memory.oom.outcome")
    assert all(fact in shown for fact in ("5", "256 MiB", "1 GiB"))
    assert text(tab, "memory.oom.next") == plain(result.next_step)
    assert find(tab, "memory.oom.result").property("tone") == "amber"
    assert parts(tab, "memory.oom.tank") == {
        "driver": 52, "not_told": 338, "tensors": 1024, "holes": 0, "free": 634,
    }  # fmt: skip
    qtbot.waitUntil(lambda: parts(tab)["holes"] == 1024)
    assert parts(tab)["tensors"] == 0
    assert text(tab, "memory.free") == "634 MiB free"
    qtbot.waitUntil(lambda: names(tab) == ["Reserved 1 GiB", "Allocated 0 bytes"])


def test_the_same_with_expandable_segments_comes_below_it(tab, scripts, engines, studio, qtbot):
    scripts[RunMemoryExperiment] = [AT_FAILURE, oom_finished("fragmented")]
    run(tab, studio)
    qtbot.waitUntil(lambda: find(tab, "memory.oom.compare").isEnabled())
    fragmented = outcome_notice(oom_finished("fragmented")).sentence
    assert text(tab, "memory.oom.headline") == fragmented
    assert not sees(tab, "memory.oom.other.result")
    scripts[RunMemoryExperiment] = [
        memory_read(allocated=1280, reserved=1280),
        oom_finished("fits", tensors=5, conf="expandable_segments:True"),
    ]  # fmt: skip
    click(tab, "memory.oom.compare")
    qtbot.waitUntil(
        lambda: engines.latest.environment.allocator_configuration == "expandable_segments:True"
    )
    fits = outcome_notice(oom_finished("fits")).sentence
    qtbot.waitUntil(lambda: text(tab, "memory.oom.other.headline") == fits)
    assert text(tab, "memory.oom.headline") == fragmented
    assert text(tab, "memory.oom.other.conf") == "EXPANDABLE_SEGMENTS:TRUE"
    qtbot.waitUntil(lambda: find(tab, "memory.oom.run").isEnabled())
    assert not find(tab, "memory.oom.compare").isEnabled()
    scripts[RunMemoryExperiment] = [oom_finished("fits")]
    fill_card(tab)
    qtbot.waitUntil(lambda: text(tab, "memory.oom.headline") == fits)
    assert not sees(tab, "memory.oom.other.result"), "another experiment replaces both"


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
    assert "1 tensor of 1 GiB" in text(tab, "memory.oom.outcome")


# ── now ──────────────────────────────────────────────────────────────────────────────────────────


def test_the_curves_stand_under_what_pytorch_can_get(tab, studio, qtbot):
    start(tab, studio)
    plot = find(tab, "memory.plot", LivePlot)
    qtbot.waitUntil(lambda: plot.plot is not None and bool(plot.marks["levels"]))
    assert set(plot.curve_keys) == {"allocated", "reserved"}
    # 120 MiB and 1.50 GiB
    assert plain(plot.marks["levels"][0].label) == "PyTorch can get 1.62 GiB"
    assert "Allocated 100 MiB" in plain(plot.accessibleDescription())


def test_it_reads_while_it_is_shown_and_not_while_hidden(tab, engines, studio, qtbot):
    def polls():
        return sum(isinstance(request, ReadMemory) for request in engines.requests)

    start(tab, studio)
    qtbot.waitUntil(lambda: polls() >= 3)
    tab.hide()
    assert not tab.model._polls.isActive()
    tab.show()
    assert tab.model._polls.isActive()


def test_before_pytorch_is_there_the_page_says_so(tab, scripts, engines, studio, qtbot):
    scripts[DescribeEngine] = [Pause(), described_with_cuda()]
    studio.start()
    qtbot.waitUntil(lambda: "starting" in text(tab, "memory.oom.reason"))
    assert not find(tab, "memory.oom.run").isEnabled()
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(engines.latest.paused.is_set)
    engines.latest.go()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)
    assert text(tab, "memory.oom.reason") == ""


def test_without_a_context_the_numbers_are_the_drivers(tab, scripts, studio, sensor_source, qtbot):
    scripts[ReadMemory] = [no_context()]
    start(tab, studio)
    sensor_source.send(reading(gt_1030()))
    qtbot.waitUntil(lambda: list(parts(tab)) == ["others", "free"])
    assert "by the driver" in text(tab, "memory.free_of")
    assert not find(tab, "memory.empty_cache").isEnabled()
    qtbot.waitUntil(find(tab, "memory.oom.run").isEnabled)


def test_what_spilled_has_its_mark_and_an_amber_line_while_it_lasts(
    tab, scripts, studio, sensor_source, qtbot
):
    scripts[ReadMemory] = [no_context()]
    start(tab, studio)
    full = {"memory_used_bytes": 2000 * MIB, "memory_free_bytes": 48 * MIB}
    now = reading(gt_1030(), **full)
    ollama = GpuProcess(
        pid=7, name="ollama.exe", memory_bytes=1500 * MIB, shared_bytes=900 * MIB, busy_percent=80.0
    )
    (card,) = now.cards
    card = msgspec.structs.replace(card, processes=(ollama,))
    sensor_source.send(msgspec.structs.replace(now, cards=(card,)))
    qtbot.waitUntil(lambda: list(parts(tab)) == ["others", "free", "spilled"])
    assert parts(tab)["spilled"] == 900
    assert "ollama.exe" in {one.label for one in find(tab, "memory.tank", TankBar).tank.parts}
    assert plain(text(tab, "memory.spilled")).startswith("ollama.exe spilled 900 MiB")
    sensor_source.send(reading(gt_1030(), 1.0))
    qtbot.waitUntil(lambda: not sees(tab, "memory.spilled"))
    assert "spilled" not in parts(tab)


@pytest.mark.parametrize("inventory", [cpu_only()])
def test_the_ram_is_live_and_an_experiment_wants_a_card(tab, studio, qtbot):
    start(tab, studio)
    qtbot.waitUntil(lambda: tab.model.chosen.is_modelled)
    qtbot.waitUntil(lambda: "simulated" in text(tab, "memory.free_of"))
    assert find(tab, "memory.oom.run").isEnabled()
    cards = find(tab, "memory.card", QComboBox)
    cards.setFocus()
    qtbot.keyClick(cards, Qt.Key.Key_Home)
    qtbot.waitUntil(lambda: "engine" in parts(tab))
    assert find(tab, "memory.plot", LivePlot).curve_keys == ("process",)
    assert text(tab, "memory.plot.title") == "Memory of GPU Studio"
    qtbot.waitUntil(lambda: any(name.startswith("GPU Studio ") for name in names(tab)))
    assert not sees(tab, "memory.empty_cache")
    for name in ("size", "count", "dtype", "budget", "run", "stop", "preset.fragmentation"):
        assert not find(tab, f"memory.oom.{name}").isEnabled(), name
    assert "simulated" in text(tab, "memory.oom.reason")


@pytest.fixture
def small_window(scripts, engines, settings):
    """The whole window of a PC with a card, as small as it may be."""
    sensors = SteadySensors(gt_1030())
    window = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    window.resize(900, 520)
    window.show()
    wait_ready(window.findChild(Studio))
    sensors.send(reading(gt_1030(), 1.0))
    yield window
    window.close()


def test_in_the_smallest_window_a_lesson_needs_no_scrolling(small_window, scripts, qtbot):
    scripts[RunMemoryExperiment] = [AT_FAILURE, oom_finished("card_full", error_text=ERROR)]
    open_tab(small_window, "Memory")
    fill_card(small_window)
    qtbot.waitUntil(lambda: sees(small_window, "memory.oom.result"))
    bottom = small_window.statusBar().mapTo(small_window, QPoint(0, 0)).y()
    for name in (
        "oom.size", "oom.count", "oom.dtype", "oom.budget", "oom.run", "oom.stop", "tank", "plot",
        "empty_cache",
    ):  # fmt: skip
        part = find(small_window, f"memory.{name}")
        assert part.isVisible(), name
        assert part.mapTo(small_window, part.rect().bottomLeft()).y() < bottom, name


@pytest.fixture
def slow_work(monkeypatch):
    return SlowWork(monkeypatch)


def test_the_end_waits_for_a_snapshot(tab, studio, slow_work, monkeypatch, qtbot, tmp_path):
    monkeypatch.setattr(segment_model, "ask", slow_work)
    start(tab, studio)
    tab.pages.go_to(SEGMENTS)
    snapshot = tab.findChild(SegmentModel)
    snapshot.open_snapshot(tmp_path / "snapshot.pickle")
    qtbot.waitUntil(slow_work.has_begun.is_set)
    studio.close()
    assert slow_work.was_waited_for(snapshot)
    *_, is_over = slow_work.arguments
    assert is_over()
