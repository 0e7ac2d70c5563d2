"""The Race tab as a person sees and drives it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from PySide6.QtCore import QPoint, QRect, QSize, Qt
from PySide6.QtGui import QAction, QColor, QImage, QImageReader
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QLabel, QPushButton, QWidget

from gpu_studio.core.benchmark.recording_writer import recording_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine, EngineEnded
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.messages.run_messages import RunFailed, RunInTurns, RunWorkload
from gpu_studio.core.notice import Tone
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.photo import LAKE
from gpu_studio.core.race.pictures import LEARN, PICTURES
from gpu_studio.core.race.shared_race import CHUNK, decode_shared
from gpu_studio.core.resources import MissingResourceError
from gpu_studio.core.units import three_digits
from gpu_studio.model.pages import RACE, Destination
from gpu_studio.model.race import race as race_module
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.race import framed_picture, race_stage
from gpu_studio.ui.race.framed_picture import poster
from gpu_studio.ui.race.painter import LARGEST_BYTES
from gpu_studio.ui.race.race_head import RaceContestants, RaceHead
from gpu_studio.ui.race.race_lane import ProgressLine
from gpu_studio.ui.race.race_picture import RacePicture
from gpu_studio.ui.race.race_stage import stage_view
from gpu_studio.ui.trust_chip import TrustChip
from tests.driving.pages import settle
from tests.driving.race import chips, gray, lever, run, wait_over
from tests.driving.window import (
    choose,
    click,
    drop,
    find,
    numbers,
    open_tab,
    property_of,
    sees,
    text,
    wait_until,
)
from tests.fakes.descriptions import described
from tests.fakes.pc import two_cards
from tests.fakes.race_answers import race_in_turns, race_run, race_seconds
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import kept_busy, run_events
from tests.fakes.scripted_engine import Pause

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.messages.run_messages import WorkloadDescription
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.race.race_tab import RaceTab
    from gpu_studio.ui.theme import Theme
    from tests.fakes.scripted_engine import Engines

with_cards = pytest.mark.parametrize("inventory", [two_cards()])


def requests_of(engines: Engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


def test_a_fresh_tab_offers_the_race_of_this_pc(tab: RaceTab) -> None:
    assert text(tab, "race.sentence").endswith("?")
    assert [chips(tab, side)[0] for side in ("left", "right")] == [
        "CPU, 1 thread", "CPU, 4 threads",
    ]  # fmt: skip
    assert find(tab, "race.run", QPushButton).isEnabled()
    assert not sees(tab, "race.stop")
    assert not sees(tab, "race.save")
    # The picture to learn is there before anything ran.
    wait_until(lambda: find(tab, "race.left.picture", RacePicture).image is not None)


def waiting_run(request: RunWorkload, folder: Path) -> Iterator[Any]:
    """Yield a run of a race; the first one waits before its first frame."""
    for event in race_run(request):
        if isinstance(event, FrameReady) and event.number == 0 and request.run_id == "race-1":
            yield Pause()
        yield event


@pytest.mark.parametrize("picture", PICTURES, ids=lambda one: one.name)
def test_before_its_first_frame_each_picture_is_seen_veiled(
    tab: RaceTab, engines: Engines, tmp_path: Path, picture: WorkloadDescription
) -> None:
    """In both lanes and on the full screen, before the race and on its marks."""

    def to_come() -> set[bytes]:
        """Return which pictures are only to come."""
        lanes = [find(tab, f"race.{side}.picture", RacePicture) for side in ("left", "right")]
        stage = stage_view(tab.race, ("cpu", "cpu"), None)
        shown = [(lane.image, lane.is_dimmed) for lane in lanes]
        shown += [(tab._preview(None), side.picture is None) for side in stage.sides]
        assert len(shown) == 4
        assert len({is_dimmed for _, is_dimmed in shown}) == 1
        return {bytes(image.constBits()) for image, is_dimmed in shown if is_dimmed}

    engines.scripts[RunWorkload] = lambda _engine, request: waiting_run(request, tmp_path)
    click(tab, f"race.picture.{picture.name}")
    wait_until(lambda: find(tab, "race.left.picture", RacePicture).image is not None)
    (shown,) = to_come()
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    assert tab.race.sides
    assert to_come() == {shown}
    engines.latest.go()
    wait_over(tab)
    assert not to_come()


def test_without_the_file_of_a_poster_the_place_is_plain(
    tab: RaceTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> Path:
        raise MissingResourceError(name, "is missing")

    poster.cache_clear()
    with monkeypatch.context() as patch:
        patch.setattr(framed_picture, "resource_path", missing)
        click(tab, "race.picture.swarm")
        assert find(tab, "race.left.picture", RacePicture).image is None
    run(tab)
    poster.cache_clear()  # so that no other test misses it
    assert find(tab, "race.left.picture", RacePicture).image is not None


def test_one_click_ends_with_a_sentence_and_two_pictures(tab: RaceTab) -> None:
    run(tab)

    assert "2.0" in text(tab, "race.sentence")
    assert text(tab, "race.left.clock") == text(tab, "race.right.clock") == "16.0 s"
    assert gray(tab, "right") > gray(tab, "left") > 0
    ways = [find(tab, f"race.{side}.way", ProgressLine).share for side in ("left", "right")]
    assert ways == [0.5, 1.0]
    assert numbers(chips(tab, "left")[1]) == ["32.0"]
    assert find(tab, "race.trust", TrustChip).notice.tone is Tone.GOOD


def test_a_race_shows_the_ghost_beside_the_live_side(
    tab: RaceTab, engines: Engines, tmp_path: Path
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.run_id == "race-2" else None
    )
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    wait_until(lambda: text(tab, "race.right.steps").startswith("400 of"))

    assert text(tab, "race.left.steps").startswith("200 of")
    assert text(tab, "race.left.clock") == text(tab, "race.right.clock")
    assert "Ghost" in chips(tab, "left")[1]
    wait_until(lambda: "2.0 × faster so far" in text(tab, "race.sentence"))
    assert sees(tab, "race.stop")
    assert not sees(tab, "race.run")

    click(tab, "race.stop")
    wait_over(tab)

    assert find(tab, "race.trust", TrustChip).notice.tone is Tone.AMBER
    assert text(tab, "race.right.steps").startswith("400 of"), "the frames so far stay"


def test_behind_another_tab_it_does_no_work_and_is_right_again_in_front(
    qtbot: QtBot, tab: RaceTab, ready_studio: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every change of the engine's state would otherwise cost the page in front a turn."""
    shown: list[str] = []
    for part in (RaceHead, RaceContestants):

        def show_and_note(
            self: Any, _show: Any = part.show_race, _name: str = part.__name__
        ) -> None:
            shown.append(_name)
            _show(self)

        monkeypatch.setattr(part, "show_race", show_and_note)
    tab.hide()
    tab.race.choices.choose_picture("grow")
    tab.race.start()
    wait_until(lambda: not tab.race.state.is_busy)
    ready_studio.session.state_changed.emit(ready_studio.session.state)
    assert not shown
    tab.show()
    assert set(shown) == {"RaceHead", "RaceContestants"}
    assert numbers(text(tab, "race.sentence"))
    assert sees(tab, "race.save")


def test_a_side_that_failed_no_longer_waits_for_its_turn(tab: RaceTab, engines: Engines) -> None:
    failure = Failure(FailureKind.OUT_OF_MEMORY, "It is full.")
    engines.scripts[RunWorkload] = lambda _engine, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    click(tab, "race.run")
    wait_over(tab)
    assert chips(tab, "left")[1] == chips(tab, "right")[1] == "Did not finish"
    assert "It is full." in text(tab, "race.sentence")


@with_cards
def test_the_lever_by_keyboard_and_mouse_finds_the_crossover(
    tab: RaceTab, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_module, "_SETTLE_MS", 0)
    QTest.keyClick(lever(tab), Qt.Key.Key_Home)
    assert tab.race.choices.size == 16
    assert not requests_of(engines)
    run(tab)

    QTest.mouseClick(lever(tab), Qt.MouseButton.LeftButton, pos=QPoint(lever(tab).width() - 5, 20))
    wait_until(lambda: tab.race.crossover is not None)
    wait_over(tab)

    roles = [mark.role for mark in lever(tab).marks]
    assert (roles[0], roles[-1]) == ("cpu", "gpu0")
    assert "GT 1030" in lever(tab).crossover_text
    assert "GT 1030" in text(tab, "race.reason")
    assert "512" in lever(tab).accessibleDescription()


def test_a_picture_dropped_on_the_window_is_learned(
    pages_on_sight: None, qtbot: QtBot, studio: Studio, theme: Theme, tmp_path: Path
) -> None:
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    open_tab(window, "Memory")

    assert drop(window, photo(tmp_path / "me.png"))

    wait_until(lambda: sees(window, "race.photo"))
    wait_until(lambda: find(window, "race.photo", QComboBox).currentText() == "me.png")
    window.close()


def recorded(path: Path) -> Path:
    """Write a recording of a race on another PC."""
    contestants = [Contestant(device="cpu", threads=threads) for threads in (1, None)]
    runs = []
    for request in race_requests(LEARN, 128, contestants, 5.0):
        runs.append(Run(request))
        for event in race_run(request):
            runs[-1].apply(event)
    header = recording_header(title="a race", device_name="Other CPU")
    path.write_bytes(recording_of(header, described(), runs))
    return path


def test_a_recording_of_a_race_dropped_on_the_window_opens_as_one(
    pages_on_sight: None,
    qtbot: QtBot,
    studio: Studio,
    theme: Theme,
    tmp_path: Path,
    engines: Engines,
) -> None:
    path = recorded(tmp_path / "race.jsonl")
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    studio.start()
    wait_until(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    open_tab(window, "Memory")

    assert drop(window, path)

    wait_until(lambda: sees(window, "race.sentence") and "2.0" in text(window, "race.sentence"))
    for side, at_s in (("left", "32.0"), ("right", "")):
        name, state = chips(window, side)
        assert "recorded 2026-01-02" in name
        assert "recorded 2026-01-02" in state
        assert at_s in state
    assert find(window, "race.trust", TrustChip).notice.tone is Tone.AMBER
    assert "a race" in text(window, "race.outcome")
    assert requests_of(engines) == []

    click(window, "race.run")  # against the fastest of the recording
    wait_until(lambda: sees(window, "race.save"))
    assert len(requests_of(engines)) == 1
    assert "recorded 2026-01-02" in chips(window, "left")[0]
    assert "recorded" not in chips(window, "right")[0]
    window.close()


@pytest.mark.parametrize("keeps_pictures", [False, True])
def test_a_race_is_recorded_with_or_without_its_pictures_and_opens_again(
    tab: RaceTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keeps_pictures: bool
) -> None:
    path = tmp_path / "mine.jsonl"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    assert not sees(tab, "race.save")
    run(tab)
    assert sees(tab, "race.save")
    name = "film" if keeps_pictures else "recording"
    find(tab, f"race.save.{name}", QAction).trigger()
    wait_until(lambda: str(path) in text(tab, "race.outcome"))

    before = tab.race.sides
    tab.race.choices.photo.open_file(path)
    wait_until(lambda: tab.race.sides not in ((), before))
    for mine, again in zip(before, tab.race.sides, strict=True):
        assert again.end_s == mine.end_s
        shown, seen = (side.at(side.end_s).picture for side in (again, mine))
        assert shown == seen if keeps_pictures else shown is None
    # A recording has its file already.
    find(tab, f"race.save.{name}", QAction).trigger()
    wait_until(lambda: property_of(tab, "race.outcome", "tone") == "failure")


def test_a_recording_without_a_race_says_where_it_belongs(tab: RaceTab, tmp_path: Path) -> None:
    request = RunWorkload(run_id="a", workload="matmul", device="cpu", size=64, dtype="float32")
    plain_run = Run(request)
    for event in run_events(request):
        plain_run.apply(event)
    path = tmp_path / "matmul.jsonl"
    path.write_bytes(recording_of(recording_header(), described(), [plain_run]))
    tab.race.choices.photo.open_file(path)
    wait_until(lambda: not tab.race.choices.photo.is_reading)

    assert "Benchmark" in text(tab, "race.outcome")
    assert property_of(tab, "race.outcome", "tone") == "failure"
    (tmp_path / "bad.jsonl").write_text("{")
    tab.race.choices.photo.open_file(tmp_path / "bad.jsonl")
    wait_until(lambda: not tab.race.choices.photo.is_reading)
    assert "bad.jsonl" in text(tab, "race.outcome")
    assert property_of(tab, "race.outcome", "tone") == "failure"
    assert tab.race.sides == ()


@with_cards
def test_other_contestants_can_be_chosen(tab: RaceTab, engines: Engines) -> None:
    choose(tab, "race.contestants.left", "RTX 3060")
    choose(tab, "race.contestants.right", "GT 1030, float16")
    run(tab)

    asked = [(one.device, one.dtype) for one in requests_of(engines)]
    assert asked == [("cuda:1", "float32"), ("cuda:0", "float16")]


def test_both_run_live_at_the_same_time(tab: RaceTab, engines: Engines, tmp_path: Path) -> None:
    def answer(_engine: object, request: RunInTurns) -> Iterator[object]:
        for event in race_in_turns(request):
            yield event
            if isinstance(event, FrameReady) and (event.run_id, event.number) == ("race-2", 4):
                yield Pause()

    engines.scripts[RunInTurns] = answer
    click(tab, "race.run")
    wait_until(lambda: text(tab, "race.right.steps").startswith("400 of"))

    # Both are shown at one time, up to which both are known.
    assert int(text(tab, "race.left.steps").split()[0]) <= 400
    assert tab.race.clock.now_s == min(side.end_s for side in tab.race.sides)
    assert chips(tab, "left")[1] == chips(tab, "right")[1] == "Live"
    engines.latest.go()
    wait_over(tab)


def test_a_picture_has_its_own_question(tab: RaceTab, engines: Engines) -> None:
    click(tab, "race.picture.paint")

    assert text(tab, "race.left.pace").endswith(" tiles/s")
    assert not sees(tab, "race.open")
    run(tab)
    assert {one.workload for one in requests_of(engines)} == {"paint"}


def test_the_mouse_sets_where_a_pattern_begins(
    tab: RaceTab, engines: Engines, tmp_path: Path
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: waiting_run(request, tmp_path)
    click(tab, "race.picture.grow")
    picture = find(tab, "race.left.picture", RacePicture)

    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=picture.rect().center())
    assert picture.image is None, "the poster's pattern starts elsewhere"
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    (seed,) = picture._seeds
    engines.latest.go()
    wait_over(tab)
    assert not picture._seeds

    assert requests_of(engines)[0].race.seeds == (seed,)
    assert seed == pytest.approx((0.5, 0.5), abs=0.02)
    click(tab, "race.seeds.clear")
    assert tab.race.choices.seeds == ()
    assert picture.image is not None


def photo(path: Path, width: int = 40, height: int = 20) -> Path:
    image = QImage(width, height, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    image.save(str(path))
    return path


def test_a_photo_of_ones_own_is_learned(
    tab: RaceTab, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = photo(tmp_path / "me.png")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(tab, "race.open")
    wait_until(lambda: not tab.race.choices.photo.is_reading)

    assert find(tab, "race.photo", QComboBox).currentText() == "me.png"
    assert find(tab, "race.left.picture", RacePicture).image.pixelColor(9, 9) == QColor("red")
    run(tab)

    request = requests_of(engines)[0]
    assert len(request.race.photo) == 64
    assert request.showing.photo.identity == request.race.photo
    choose(tab, "race.photo", "Mountain lake")
    QTest.keyClick(find(tab, "race.photo"), Qt.Key.Key_Return)
    run(tab)
    assert requests_of(engines)[-1].race.photo == ""


def test_a_bad_file_is_reported_and_changes_nothing(tab: RaceTab, tmp_path: Path) -> None:
    (tmp_path / "bad.png").write_text("no picture")

    tab.race.choices.photo.open_file(tmp_path / "bad.png")
    assert text(tab, "race.sentence") == "Opening bad.png…"
    wait_until(lambda: not tab.race.choices.photo.is_reading)

    assert "bad.png" in text(tab, "race.outcome")
    assert property_of(tab, "race.outcome", "tone") == "failure"
    assert tab.race.choices.photo.chosen == 0
    assert "bad.png" not in text(tab, "race.sentence")


def test_a_race_is_saved_and_opens_again_as_a_ghost(
    tab: RaceTab,
    ready_studio: Studio,
    engines: Engines,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = tmp_path / "race.png"
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    run(tab)
    find(tab, "race.save.picture", QAction).trigger()

    assert text(tab, "race.outcome") == f"Saved as {path}"
    shared = decode_shared(QImage(str(path)).text(CHUNK))
    assert shared.race == tab.race.verdict.finished
    assert shared.torch_version == "2.13.0+cpu"

    tab.go_to(Destination(page=RACE, paths=(path,)))
    wait_until(lambda: tab.race.choices.ghost is not None)
    assert "saved" in chips(tab, "left")[0]
    assert "saved" in find(tab, "race.contestants.left", QComboBox).currentText()
    run(tab)

    assert len(requests_of(engines)) == 3
    assert text(tab, "race.left.clock") == text(tab, "race.right.clock")


def test_where_a_race_cannot_be_saved_it_is_reported(
    tab: RaceTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = str(tmp_path / "missing" / "race.png")
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (missing, ""))
    run(tab)
    find(tab, "race.save.picture", QAction).trigger()

    assert missing in text(tab, "race.outcome")
    assert property_of(tab, "race.outcome", "tone") == "failure"
    # It was about the race before.
    click(tab, "race.run")
    assert not find(tab, "race.outcome", QLabel).isVisible()
    wait_over(tab)


def test_full_screen_is_the_race_alone_again_and_again_until_esc(
    tab: RaceTab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_stage, "_RESULT_MS", 10)
    run(tab)
    click(tab, "race.full_screen")
    stage = tab._stage
    assert stage.isFullScreen()
    assert not stage.findChildren(QWidget), "no button, no menu"
    wait_until(lambda: tab.race.clock.is_replaying)
    tab.race.replay()
    wait_until(lambda: tab.race.clock.is_replaying)

    QTest.keyClick(stage, Qt.Key.Key_Escape)
    wait_until(lambda: tab._stage is None)
    assert not tab.race.clock.is_replaying
    assert tab.isVisible()


def test_at_a_stand_the_next_race_follows(
    tab: RaceTab, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_stage, "_RESULT_MS", 0)
    monkeypatch.setattr(race_stage, "_SHOWN_AGAIN", 0)
    stage = tab.show_stage(runs_on=True)
    names = ["learn", "paint", "grow", "swarm"]
    wait_until(lambda: {one.workload for one in requests_of(engines)} == set(names))
    stage.close()
    drawn = dict.fromkeys(one.workload for one in requests_of(engines))
    assert list(drawn) == names
    wait_until(lambda: not tab.race.state.is_busy)


def test_a_film_of_the_stage_says_what_was_raced_and_how_certain_it_is(tab: RaceTab) -> None:
    run(tab)
    finished = tab.race.verdict.finished
    seen = stage_view(tab.race, ("cpu", "cpu"), None)
    assert seen.headline.endswith("faster")
    ends = {three_digits(finished.ratio_low), three_digits(finished.ratio_high)}
    assert ends <= set(numbers(seen.detail))
    for fact in (tab.race.raced.title, "float32", f"{finished.size}"):
        assert fact in seen.foot
    tab.race.clock.set(0.0)
    assert "interval" not in stage_view(tab.race, ("cpu", "cpu"), None).detail


def test_a_stand_says_that_the_engine_starts(tab: RaceTab, engines: Engines) -> None:
    described = engines.scripts[DescribeEngine]
    engines.scripts[DescribeEngine] = [Pause(), *described]
    tab._studio.session.restart()
    wait_until(engines.latest.paused.is_set)
    stage = tab.show_stage()
    wait_until(lambda: tab.race.choices.photo.picture is not None)
    seen = stage_view(tab.race, ("cpu", "cpu"), None)
    assert "engine is starting" in seen.detail
    assert [side.name for side in seen.sides] == ["CPU, 1 thread", "CPU, all threads"]
    assert not any(side.picture for side in seen.sides)
    assert tab._preview(None) is not None
    engines.latest.go()
    wait_until(lambda: tab.race.can_run)
    run(tab)
    seen = stage_view(tab.race, ("cpu", "cpu"), None)
    assert "engine" not in seen.detail
    assert all(side.picture for side in seen.sides)
    stage.close()


@pytest.mark.parametrize(
    "fault",
    [
        lambda request: RunFailed(
            run_id=request.run_id, failure=Failure(FailureKind.OUT_OF_MEMORY, "It is full.")
        ),
        lambda _request: EngineEnded(exit_code=-9),
    ],
    ids=["the card is full", "the engine is killed"],
)
def test_a_stand_says_what_failed_and_goes_on_with_the_next_race(
    tab: RaceTab, engines: Engines, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, fault: Any
) -> None:
    def answer(_engine: object, request: RunWorkload) -> Iterator[Any]:
        if request.workload == "learn":
            yield fault(request)
        else:
            yield from race_run(request)

    monkeypatch.setattr(race_stage, "_RESULT_MS", 0)
    engines.scripts[RunWorkload] = answer
    sentences = []
    tab.race.race_changed.connect(lambda: sentences.append(tab.race.notice.sentence))
    stage = tab.show_stage(runs_on=True)
    wait_until(lambda: "paint" in {one.workload for one in requests_of(engines)})
    stage.close()
    assert any("did not finish" in sentence for sentence in sentences)
    wait_until(lambda: not tab.race.state.is_busy)


def test_the_lens_follows_the_mouse_on_both_pictures(tab: RaceTab) -> None:
    run(tab)
    lenses = []
    for side in ("left", "right"):
        lenses.append(find(tab, f"race.{side}.picture", RacePicture)._lens)
    assert lenses[0] == lenses[1] == LAKE
    picture = find(tab, "race.right.picture", RacePicture)
    QTest.mouseClick(picture, Qt.MouseButton.LeftButton, pos=picture.rect().center())
    moved = find(tab, "race.left.picture", RacePicture)._lens
    assert (moved.x, moved.y) == pytest.approx((0.5, 0.5), abs=0.02)


def test_what_comes_after_a_race_moves_no_button_of_a_narrow_window(tab: RaceTab) -> None:
    def places() -> list[list[QRect]]:
        found = []
        for width in range(760, 1160, 50):
            tab.resize(width, 440)
            settle()
            settle()
            names = ("race.full_screen", "race.photo", "race.open")
            found.append([find(tab, name).geometry() for name in names])
            if width >= 900:
                found[-1] += [lane.picture.rect() for lane in tab._lanes]
        return found

    before = places()
    run(tab)
    assert find(tab, "race.save").isVisible()
    assert places() == before


def test_the_result_moves_no_picture(tab: RaceTab, engines: Engines, tmp_path: Path) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.run_id == "race-2" else None
    )
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    wait_until(lambda: "so far" in text(tab, "race.sentence"))
    before = [lane.picture.rect() for lane in tab._lanes]
    engines.latest.go()
    wait_over(tab)
    wait_until(lambda: "beat" in text(tab, "race.sentence"))
    assert [lane.picture.rect() for lane in tab._lanes] == before


def test_a_race_is_saved_as_an_animation(
    tab: RaceTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "race.webp"
    asked: list[tuple[object, ...]] = []
    monkeypatch.setattr(
        QFileDialog,
        "getSaveFileName",
        lambda *args: asked.append(args) or (str(tmp_path / "race"), ""),
    )
    run(tab)
    find(tab, "race.save.animation", QAction).trigger()
    assert re.fullmatch(r"race-\d{4}-\d\d-\d\d-\d{6}\.webp", Path(str(asked[0][2])).name)
    wait_until(lambda: text(tab, "race.outcome") == f"Saved as {path}")
    assert sees(tab, "race.outcome")
    click(tab, "race.picture.paint")
    assert not sees(tab, "race.outcome")

    film = QImageReader(str(path))
    assert film.supportsAnimation()
    assert film.size() == QSize(*(960, 540))
    durations_ms = []
    first = last = film.read()
    while film.canRead():
        durations_ms.append(film.nextImageDelay())
        last = film.read()
    assert sum(durations_ms) <= 15_000
    assert first != last
    assert path.stat().st_size <= LARGEST_BYTES


def test_another_tab_can_start_the_race(tab: RaceTab) -> None:
    tab.go_to(Destination(page=RACE, starts=True))
    wait_over(tab)

    assert tab.race.verdict.finished.leader == 1


def test_a_race_without_a_verdict_has_a_button_that_runs_it_again(
    tab: RaceTab, engines: Engines, tmp_path: Path
) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request,
        **(kept_busy(race_seconds(request) / 800) if request.race.threads else {}),
    )
    run(tab)
    assert "cannot be told" in text(tab, "race.sentence")
    assert find(tab, "race.again", QPushButton).text() == "Run again"

    engines.scripts[RunWorkload] = lambda _engine, request: race_run(request)
    click(tab, "race.again")
    wait_over(tab)
    assert "2.0" in text(tab, "race.sentence")
    assert not sees(tab, "race.again")
