"""What a person points at: lists open whole, the wheel scrolls the page, and nothing moves away."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QAction, QDesktopServices, QWheelEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractSlider,
    QApplication,
    QComboBox,
    QFileDialog,
    QFrame,
    QLabel,
    QLineEdit,
    QRadioButton,
    QScrollBar,
    QTabBar,
    QToolButton,
)

from gpu_studio.app import build_window
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import DescribeEngine, RequestFailed
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment
from gpu_studio.core.messages.run_messages import RunFailed, RunWorkload
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.model.studio import Studio
from gpu_studio.ui.check.check_tab import CheckTab
from gpu_studio.ui.check.stage_list import StageRow
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.pages import (
    PAGES,
    go,
    page_called,
    press,
    scripts_of_all_pages,
    settle,
    use_everything,
)
from tests.driving.window import find, places, wait_until
from tests.fakes.check_answers import check_round, wrong_bit
from tests.fakes.check_records import check_record
from tests.fakes.descriptions import described
from tests.fakes.memory_answers import memory_read, oom_finished
from tests.fakes.pc import SteadySensors, cpu_only, reading, two_cards
from tests.fakes.scripted_engine import Pause
from tests.pictures.interrupted_work import cut_off_check, lost_card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from PySide6.QtWidgets import QWidget

    from gpu_studio.core.devices.devices import Inventory, Reading
    from gpu_studio.ui.main_window import MainWindow
    from tests.fakes.scripted_engine import ScriptedEngine


@pytest.fixture
def window(pages_on_sight, qtbot, engines, settings) -> Iterator[MainWindow]:
    """The window on a PC with two cards, before any result."""
    engines.scripts |= scripts_of_all_pages()
    sensors = SteadySensors(two_cards())
    created = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    created.resize(1280, 800)
    created.show()
    studio = created.findChild(Studio)
    qtbot.waitUntil(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensors.send(reading(two_cards(), 1.0))
    yield created
    created.close()
    created.deleteLater()


class FirstPlaces:
    """Where each control of each page was when it was first seen, and which have moved since."""

    def __init__(self, window: QWidget) -> None:
        self._window = window
        self._first: dict[str, dict[str, QPoint]] = {}

    def look(self, *, paints: bool = False) -> set[str]:
        """Return what has moved on any page, of all that stayed.

        The first look paints each page, and so does the last one, which asks for it; between them
        only layouts are looked at: a paint is a quarter of the time of a look.
        """
        moved = set()
        self._window.setUpdatesEnabled(paints or not self._first)
        for page in PAGES:
            go(self._window, page)
            now, first = places(self._window), self._first.get(page.title, {})
            self._first[page.title] = {name: first.get(name, place) for name, place in now.items()}
            for name in now.keys() & first.keys():
                if (now[name] - first[name]).manhattanLength() > 1:
                    moved.add(f"{page.title}: {name} {(now[name] - first[name]).toTuple()}")
        self._window.setUpdatesEnabled(True)
        return moved


@pytest.fixture
def has_cards() -> bool:
    return True


@pytest.fixture
def size() -> tuple[int, int]:
    return 1280, 800


@pytest.fixture
def starting_window(qtbot, engines, settings, has_cards, size) -> Iterator[MainWindow]:
    """The window on a PC that has not yet said anything, its engine held at its start."""
    engines.scripts |= scripts_of_all_pages()
    (answer,) = engines.scripts[DescribeEngine]
    if not has_cards:
        answer = described(
            workloads=answer.workloads, models=answer.models, pitfalls=answer.pitfalls
        )
    engines.scripts[DescribeEngine] = [Pause(), answer]
    sensors = SteadySensors(None)
    created = build_window(engine_factory=engines, sensor_source=sensors, settings=settings)
    created.sensors = sensors
    created.resize(*size)
    created.show()
    yield created
    created.close()
    created.deleteLater()


def arrivals(
    qtbot, window: MainWindow, engines, inventory: Inventory, first: Reading
) -> Iterator[None]:
    """Let the devices, the engine and the first reading arrive; yield after each."""
    studio = window.findChild(Studio)
    window.sensors.send(inventory)
    qtbot.waitUntil(lambda: studio.sensors.inventory is not None)
    yield
    engines.scripts[DescribeEngine] = engines.scripts[DescribeEngine][1:]
    engines.latest.go()
    qtbot.waitUntil(lambda: studio.session.is_free)
    yield
    with qtbot.waitSignal(studio.sensors.reading_taken):
        window.sensors.send(first)
    yield


_SIZES = pytest.mark.parametrize("size", [(960, 540), (1280, 800)])


@_SIZES
def test_each_control_stays_where_it_was_first_painted(qtbot, starting_window, engines):
    """Devices, engine, readings, runs and results arrive; the run is started by a blind click."""
    window, seen = starting_window, FirstPlaces(starting_window)
    assert not seen.look()
    go(window, page_called("LIVE"))
    run = find(window, "benchmark.run", QAbstractButton)
    at_first = run.mapTo(window, run.rect().center())
    hot = reading(two_cards(), 1.0, temperature_c=88.0, pstate=0)
    for _ in arrivals(qtbot, window, engines, two_cards(), hot):
        assert not seen.look()
    go(window, page_called("LIVE"))
    find(window, "benchmark.sizes", QLineEdit).setText("64, 512")
    settle()
    pressed = window.childAt(at_first)
    assert pressed is run
    qtbot.mouseClick(pressed, Qt.MouseButton.LeftButton)
    assert not run.isEnabled()
    qtbot.waitUntil(run.isEnabled)
    assert not seen.look()
    for page, button in (
        ("Race", "race.run"),
        ("Pitfalls", "switcher.lab.break"),
        ("AMP and reproducibility", "switcher.train_step.run"),
        ("Break it", "memory.oom.run"),
        ("Read an error", "memory.error.example"),
        ("Check", "check.run"),
    ):
        go(window, page_called(page))
        press(window, button)
        qtbot.waitUntil(find(window, button, QAbstractButton).isEnabled)
        assert not seen.look(), button
    go(window, page_called("Choose"))
    for radio in find(window, "switcher.cards").findChildren(QRadioButton):
        radio.click()
        settle()
    assert not seen.look(paints=True)


@_SIZES
@pytest.mark.parametrize("has_cards", [False])
def test_each_control_stays_on_a_pc_without_a_card(qtbot, starting_window, engines):
    """The CPU alone arrives, its engine, a run, a check; facts and details are unfolded."""
    window, seen = starting_window, FirstPlaces(starting_window)
    assert not seen.look()
    for _ in arrivals(qtbot, window, engines, cpu_only(), reading(cpu_only(), 1.0)):
        assert not seen.look()
    for page, button in (
        ("Devices", "devices.compare"),
        ("Race", "race.run"),
        ("LIVE", "benchmark.run"),
        ("Pitfalls", "switcher.lab.break"),
        ("Break it", "memory.oom.run"),
        ("Check", "check.run"),
    ):
        go(window, page_called(page))
        press(window, button)
        qtbot.waitUntil(find(window, button, QAbstractButton).isEnabled)
        assert not seen.look(), button
    go(window, page_called("Devices"))
    for fold in ("devices.facts", "devices.sensors.all"):
        find(window, fold, QAbstractButton).click()
        settle()
        assert not seen.look(paints=True), fold


def no_code(_engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    yield next(iter(check_round(request)))
    yield RequestFailed(failure=Failure(FailureKind.NO_KERNEL, "It has no code for this card."))


_ENDS = {
    "passed": {},
    "failed": {"findings": {"memory": (wrong_bit(),)}},
    "doubtful": {
        "findings": {"compute": (msgspec.structs.replace(wrong_bit(), severity="doubt"),)}
    },
    "partial": {"stop_in": "memory"},
    "stopped at once": {"stop_in": "load"},
}


@_SIZES
def test_no_state_of_a_check_moves_a_control(qtbot, window, engines, size):
    """Also not a fault made on purpose, somebody else's record, and a card without code."""
    check_every_way(qtbot, window, engines, size)


def test_no_state_of_a_check_moves_a_control_in_any_font(letters, qtbot, window, engines):
    check_every_way(qtbot, window, engines, (900, 520))


def check_every_way(qtbot, window, engines, size):
    """See all states of a check; in each, every control is where it was."""
    window.resize(*size)
    go(window, page_called("Check"))
    tab, seen = window.findChild(CheckTab), {}

    def moved() -> set[str]:
        qtbot.waitUntil(lambda: tab.is_up_to_date)
        settle()
        now = places(window)
        found = {name for name in now.keys() & seen.keys() if now[name] != seen[name]}
        seen.update(now)
        return found

    expert = find(window, "check.expert", QAbstractButton)
    assert not moved()
    expert.click()
    assert not moved()
    expert.click()
    for name, script in _ENDS.items():
        waits = {"pause_in": "layouts"} if name == "failed" else {}  # one is looked at as it runs
        engines.scripts[RunCheck] = lambda _engine, request, all_=script | waits: check_round(
            request, **all_
        )
        run_check(qtbot, window, tab, engines, waits=moved if waits else None)
        assert not moved(), name
    engines.scripts[RunCheck] = no_code
    run_check(qtbot, window, tab, engines)
    assert not moved(), "nothing tested"
    engines.scripts[RunCheck] = lost_card
    run_check(qtbot, window, tab, engines)
    assert not moved(), "a card that was lost"
    engines.scripts[RunCheck] = lambda _engine, request: check_round(request)
    expert.click()
    run_check(qtbot, window, tab, engines)
    assert not moved(), "a fault made on purpose"
    tab.check.file_name, tab.check.kept = "theirs.png", (tab.check.record,)
    tab.check.check_changed.emit()
    assert not moved(), "a file"
    buttons = {"check.again", "check.share", "check.save", "check.identify"}
    assert buttons | {"check.plant", "check.records"} <= seen.keys()


@_SIZES
def test_fewer_devices_move_no_way_to_a_first_result(window, size):
    window.resize(*size)
    go(window, page_called("LIVE"))
    before = places(window)
    assert {"benchmark.view.published", "benchmark.view.recording"} <= before.keys()
    for device in ("cuda:1", "cuda:0"):
        find(window, f"benchmark.devices.{device}", QAbstractButton).click()
        settle()
        assert places(window) == before, device


@_SIZES
def test_a_check_that_was_cut_off_arrives_and_moves_no_control(window, size):
    window.resize(*size)
    go(window, page_called("Check"))
    stages = window.findChildren(StageRow)
    before, rows = places(window), [one.mapTo(window, QPoint()) for one in stages]
    check = window.findChild(CheckTab).check
    check._keeper.looked.emit((cut_off_check(),), (check_record(),))
    wait_until(lambda: find(window, "check.resume").isVisible())
    settle()
    now = places(window)
    assert not {name for name, place in before.items() if now.get(name) != place}
    assert [one.mapTo(window, QPoint()) for one in stages] == rows
    card = find(window, "check.cut_off")
    below = card.mapTo(window, card.rect().bottomLeft()).y()
    assert below <= window.statusBar().y(), "it is seen without scrolling"


def lost_run(_engine: ScriptedEngine, request: RunWorkload) -> Iterator[Any]:
    failure = Failure(FailureKind.CUDA_ERROR, "CUDA error: the GPU is lost.", fatal=True)
    yield RunFailed(run_id=request.run_id, failure=failure)


@_SIZES
def test_a_card_that_is_lost_in_a_run_moves_no_control(qtbot, starting_window, engines):
    """Its engine has ended, its sensors answer no more, and every page knows it."""
    window, seen = starting_window, FirstPlaces(starting_window)
    for _ in arrivals(qtbot, window, engines, two_cards(), reading(two_cards(), 1.0)):
        seen.look()
    assert not seen.look()
    engines.scripts[RunWorkload] = lost_run
    for page, button in (("LIVE", "benchmark.run"), ("Race", "race.run")):
        go(window, page_called(page))
        find(window, button, QAbstractButton).click()
        qtbot.waitUntil(lambda: window.banner.isVisible())
        assert not seen.look(), page
        window.findChild(Studio).session.start()
        qtbot.waitUntil(find(window, button, QAbstractButton).isEnabled)
    lost = reading(two_cards(), 2.0)
    first, *others = lost.cards
    gone = msgspec.structs.replace(first, error="The card dropped off the bus.", error_code="lost")
    window.sensors.send(msgspec.structs.replace(lost, cards=(gone, *others)))
    devices = window.findChild(DevicesModel)
    wait_until(lambda: "dropped off" in devices.trouble)
    assert not seen.look(paints=True)


@_SIZES
def test_what_became_of_a_file_moves_no_control(
    qtbot, window, engines, size, tmp_path, monkeypatch
):
    """Nor does it when a file is refused; the words are seen where they arrive."""
    window.resize(*size)
    path = tmp_path / ("a-name-that-is-as-long-as-those-of-people-" * 3)
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda _: True)
    path.write_bytes(b"no snapshot")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    engines.scripts[RunMemoryExperiment] = recorded_experiment
    go(window, page_called("Break it"))
    find(window, "memory.oom.record", QAbstractButton).click()
    use_everything(window)
    for page, name, words in (
        ("Devices", "devices.copy.text", "devices.copied"),
        ("Devices", "devices.sensors.log", "devices.sensors.log.said"),
        ("Race", "race.save.picture", "race.outcome"),
        ("LIVE", "benchmark.export.csv", "benchmark.progress.text"),
        ("Recordings", "benchmark.recording.open", "benchmark.recording.outcome"),
        ("Segment map", "memory.snapshot.open", "memory.snapshot.outcome"),
        ("Break it", "memory.snapshot.save", "memory.snapshot.saved"),
        ("What if", "memory.what_if.open", "memory.what_if.notice"),
        ("Check", "check.save", "check.outcome"),
        ("Check", "check.share", "check.outcome"),
    ):
        go(window, page_called(page))
        said = find(window, words, QLabel)
        before, earlier = places(window), said.text()
        pressed = window.findChild(QAbstractButton, name)
        (pressed.click if pressed is not None else find_action(window, name).trigger)()
        wait_until(lambda said=said, earlier=earlier: said.isVisible() and said.text() != earlier)
        settle()
        now = places(window)
        moved = {one for one, place in before.items() if now.get(one) != place}
        assert not moved, (page, name, moved)


def find_action(window: QWidget, name: str) -> QAction:
    (action,) = window.findChildren(QAction, name)
    return action


def recorded_experiment(_engine: ScriptedEngine, request: RunMemoryExperiment) -> Iterator[Any]:
    yield memory_read(mark="start")
    Path(request.snapshot_path).write_bytes(b"recorded")
    yield oom_finished(snapshot_path=request.snapshot_path)


def run_check(qtbot, window, tab, engines, *, waits=None):
    """Run a check to its end; where it waits, look at it."""
    before = tab.check.record
    qtbot.waitUntil(find(window, "check.run").isEnabled)
    press(window, "check.run")
    if waits is not None:
        qtbot.waitUntil(lambda: any(engine.paused.is_set() for engine in engines.made))
        assert not waits(), "running"
        next(engine for engine in engines.made if engine.paused.is_set()).go()
    qtbot.waitUntil(lambda: tab.check.record not in (None, before))
    qtbot.waitUntil(find(window, "check.run").isEnabled)


def test_all_pages_end_at_one_right_edge(window):
    """The edge of a page is that of its outermost card."""
    edges = {}
    for page in PAGES:
        go(window, page)
        cards = [one for one in window.tabs.currentWidget().findChildren(QFrame) if shows(one)]
        edges[page.title] = max(one.mapTo(window, one.rect().topRight()).x() for one in cards)
    assert len(set(edges.values())) == 1, edges
    window.findChild(Studio).headlines.notify("Something was found.", "This is what to do.")
    settle()
    banner = window.banner
    assert banner.mapTo(window, banner.rect().topRight()).x() in edges.values()


def shows(frame: QFrame) -> bool:
    """Return whether a frame is a card that is seen."""
    return frame.isVisible() and bool(frame.property("card"))


def test_a_banner_moves_nothing(qtbot, window):
    before = {}
    for page in (*PAGES, *PAGES):  # a page that was made just now is laid out in the turns after
        go(window, page)
        before[page.title] = places(window)
    window.findChild(Studio).headlines.notify("Something was found.", "This is what to do.")
    for page in PAGES:
        go(window, page)
        now = places(window)
        moved = {name for name, place in before[page.title].items() if now.get(name) != place}
        assert not moved, page.title
    assert window.banner.isVisible()


def test_a_page_moves_no_tab_and_a_sweep_moves_nothing(qtbot, window):
    go(window, page_called("Curves"))
    bar = find(window, "memory.pages", QTabBar)
    before = bar.mapTo(window, QPoint(0, 0))
    go(window, page_called("Read an error"))
    assert bar.mapTo(window, QPoint(0, 0)) == before
    go(window, page_called("LIVE"))
    find(window, "benchmark.more", QToolButton).setChecked(True)
    settle()
    sweep, width = find(window, "benchmark.sweep"), find(window, "benchmark.run").width()
    before = sweep.mapTo(window, QPoint(0, 0))
    sweep.click()
    settle()
    assert sweep.mapTo(window, QPoint(0, 0)) == before
    seen = places(window)
    assert "benchmark.mode.naive" in seen
    for field, typed in (("low", "9999999"), ("high", "1"), ("high", "x")):
        find(window, f"benchmark.sweep.{field}", QLineEdit).setText(typed)
        settle()
        assert places(window) == seen, typed
    assert find(window, "benchmark.run").width() == width


def test_lists_open_whole_each_time_and_leave_the_wheel_to_the_page(qtbot, window):
    found, seen = [], set()
    for page in PAGES:
        go(window, page)
        for control in (
            *window.findChildren(QComboBox),
            *window.findChildren(QAbstractSlider),
            *window.findChildren(LivePlot),
        ):
            if not control.isVisible() or isinstance(control, QScrollBar) or control in seen:
                continue
            seen.add(control)
            name = f"{page.title}: {control.objectName()}"
            if isinstance(control, QComboBox):
                found += [f"{name} is cut" for _ in range(2) if _is_cut(control)]
            if isinstance(control, LivePlot):
                qtbot.waitUntil(lambda plot=control: plot.plot is not None)
            before = _state(control)
            for degrees in (30, -30):
                turn_wheel(control, degrees)
                if _state(control) != before:
                    found.append(f"{name} takes the wheel")
    assert len(seen) > 20
    assert not found, "\n".join(found)


def _is_cut(combo: QComboBox) -> bool:
    """Open a list; return whether a part of it is out of sight."""
    combo.showPopup()
    settle()
    view = combo.view()
    last = view.visualRect(view.model().index(combo.count() - 1, combo.modelColumn()))
    is_cut = last.bottom() > view.viewport().rect().bottom()
    combo.hidePopup()
    settle()
    return is_cut


def _state(control: QComboBox | QAbstractSlider | LivePlot) -> object:
    if isinstance(control, QComboBox):
        return control.currentIndex()
    return control.value() if isinstance(control, QAbstractSlider) else control.plot.viewRange()


def turn_wheel(control: QWidget, degrees: int) -> None:
    """Turn the wheel above the middle of a control."""
    place = control.plot.viewport() if isinstance(control, LivePlot) else control
    middle = QPointF(place.rect().center())
    turn = QWheelEvent(
        middle, place.mapToGlobal(middle), QPoint(), QPoint(0, degrees * 8),
        Qt.MouseButton.NoButton, Qt.KeyboardModifier.NoModifier,
        Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(place, turn)
