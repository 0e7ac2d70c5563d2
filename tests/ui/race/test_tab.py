from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from PySide6.QtCore import QRect, Qt
from PySide6.QtGui import QColor, QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QFileDialog, QPushButton
from pytestqt.qtbot import QtBot

from gpu_studio.core.benchmark.own_code import own_code
from gpu_studio.core.benchmark.recording import recording_of
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.messages.run_messages import (
    RunFailed,
    RunInTurns,
    RunWorkload,
)
from gpu_studio.core.notice import Tone
from gpu_studio.core.race.contestant import Contestant, race_requests
from gpu_studio.core.race.picture_file import CHUNK, decode_shared
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.pages import RACE, Destination
from gpu_studio.model.studio import Studio
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.race import race_stage
from gpu_studio.ui.race.race_lane import RacePicture
from gpu_studio.ui.race.race_tab import RaceTab
from gpu_studio.ui.theme import Theme
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
from tests.fakes.descriptions import described, matmul
from tests.fakes.pc import two_cards
from tests.fakes.race_answers import race_in_turns, race_run, race_seconds
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import kept_busy, run_events
from tests.fakes.scripted_engine import Engines, Pause

with_cards = pytest.mark.parametrize("inventory", [two_cards()])


def requests_of(engines: Engines) -> list[RunWorkload]:
    return [request for request in engines.requests if isinstance(request, RunWorkload)]


def picture(tab: RaceTab, side: str = "left") -> RacePicture:
    return find(tab, f"race.{side}.picture", RacePicture)


def pick(tab: RaceTab, form: str) -> None:
    menu = find(tab, "race.save", QPushButton).menu()
    menu.aboutToShow.emit()
    next(one for one in menu.actions() if form in one.text()).trigger()


def save(tab: RaceTab, form: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(QFileDialog, "getSaveFileName", lambda *_: (str(path), ""))
    pick(tab, form)
    wait_until(lambda: text(tab, "race.outcome") == f"Saved as {path}")


def opened(tab: RaceTab, path: Path) -> None:
    tab.go_to(Destination(page=RACE, paths=(path,)))
    wait_until(lambda: not tab.race.files.is_reading)


def test_own_code_races_in_an_engine_of_its_own(tab: RaceTab, engines: Engines) -> None:
    click(tab, "race.picture.own")
    assert "Drop a .py on the window" in text(tab, "race.sentence")
    assert not find(tab, "race.run", QPushButton).isEnabled()
    code = own_code("x = 1", "mine.py")
    workload = msgspec.structs.replace(
        matmul(), name="mine.py", title="mine.py", sizes=(8, 16, 32), dtypes=("float16",)
    )
    tab.go_to(Destination(page=RACE, code=code, workload=workload))
    wait_over(tab)
    runs = requests_of(engines)
    assert {(run.workload, run.code, run.size, run.dtype) for run in runs} == {
        ("mine.py", code, 16, "float16")
    }
    assert all(run.race is not None for run in runs)
    assert "runs a second" in text(tab, "race.sentence")
    wait_until(lambda: tab.race.own.session.state is EngineState.ABSENT)


def test_a_fresh_tab_offers_the_race_of_this_pc(tab: RaceTab) -> None:
    assert text(tab, "race.sentence").endswith("?")
    assert [chips(tab, side)[0] for side in ("left", "right")] == [
        "CPU, 1 thread", "CPU, 4 threads",
    ]  # fmt: skip
    assert find(tab, "race.run", QPushButton).isEnabled()
    assert not find(tab, "race.stop", QPushButton).isEnabled()
    assert not sees(tab, "race.save")
    tab.hide()
    tab._studio.settings.change(unsaved="race.webp")
    tab.show()
    assert "race.webp" in text(tab, "race.outcome")


def test_one_click_ends_with_a_sentence_and_two_pictures(tab: RaceTab) -> None:
    run(tab)
    assert "2.0" in text(tab, "race.sentence")
    assert text(tab, "race.left.clock") == text(tab, "race.right.clock") == "16.0 s"
    assert gray(tab, "right") > gray(tab, "left") > 0
    assert [picture(tab, side).share for side in ("left", "right")] == [0.5, 1.0]
    assert numbers(chips(tab, "left")[1]) == ["32.0"]
    assert find(tab, "race.trust", TrustChip).notice.tone is Tone.GOOD


def test_both_run_live_at_the_same_time(tab: RaceTab, engines: Engines) -> None:
    def answer(_engine: object, request: RunInTurns) -> Iterator[object]:
        for event in race_in_turns(request):
            yield event
            if isinstance(event, FrameReady) and (event.run_id, event.number) == ("race-2", 4):
                yield Pause()

    engines.scripts[RunInTurns] = answer
    tab.race._soon.setInterval(60_000)  # the frames do not wait for the words
    click(tab, "race.run")
    wait_until(lambda: text(tab, "race.right.steps").startswith("400 of"))
    tab.race._soon.start(10)

    # Both are shown at one time, up to which both are known.
    assert int(text(tab, "race.left.steps").split()[0]) <= 400
    assert tab.race.now_s == min(side.end_s for side in tab.race.sides)
    assert chips(tab, "left")[1] == chips(tab, "right")[1] == "Live"
    wait_until(lambda: "faster so far" in text(tab, "race.sentence"))
    engines.latest.go()
    wait_over(tab)


def test_a_stop_keeps_what_was_drawn_and_says_so(tab: RaceTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.run_id == "race-2" else None
    )
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    wait_until(lambda: text(tab, "race.right.steps").startswith("400 of"))
    assert not find(tab, "race.run", QPushButton).isEnabled()
    click(tab, "race.stop")
    wait_over(tab)
    assert find(tab, "race.trust", TrustChip).notice.tone is Tone.AMBER
    assert text(tab, "race.right.steps").startswith("400 of"), "the frames so far stay"


def test_a_side_that_failed_says_so_and_names_the_reason(tab: RaceTab, engines: Engines) -> None:
    failure = Failure(FailureKind.OUT_OF_MEMORY, "It is full.")
    engines.scripts[RunWorkload] = lambda _engine, request: [
        RunFailed(run_id=request.run_id, failure=failure)
    ]
    click(tab, "race.run")
    wait_over(tab)
    assert chips(tab, "left")[1] == chips(tab, "right")[1] == "▲ Did not finish"
    assert "It is full." in text(tab, "race.sentence")


@with_cards
def test_the_lever_finds_the_crossover(
    tab: RaceTab, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    tab.race._settling.setInterval(0)
    QTest.keyClick(lever(tab), Qt.Key.Key_Home)
    assert tab.race.size == 16
    assert not tab.race._settling.isActive(), "the lever alone starts no first race"
    run(tab)

    QTest.keyClick(lever(tab), Qt.Key.Key_End)
    wait_until(lambda: tab.race.crossover is not None)
    wait_over(tab)

    roles = [mark.role for mark in tab.page.lever.marks]
    assert (roles[0], roles[-1]) == ("cpu", "gpu0")
    assert "GT 1030 leads from 512" in text(tab, "race.outcome")
    assert "GT 1030 is faster at 512" in lever(tab).accessibleDescription()


@with_cards
def test_other_contestants_can_be_chosen(tab: RaceTab, engines: Engines) -> None:
    choose(tab, "race.contestants.left", "RTX 3060")
    choose(tab, "race.contestants.right", "GT 1030, float16")
    run(tab)
    asked = [(one.device, one.dtype) for one in requests_of(engines)]
    assert asked == [("cuda:1", "float32"), ("cuda:0", "float16")]


def photo(path: Path) -> Path:
    image = QImage(40, 20, QImage.Format.Format_RGB32)
    image.fill(QColor("red"))
    image.save(str(path))
    return path


def test_a_photo_of_ones_own_is_learned(
    tab: RaceTab, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = photo(tmp_path / "me.png")
    monkeypatch.setattr(QFileDialog, "getOpenFileName", lambda *_: (str(path), ""))
    click(tab, "race.open")
    wait_until(lambda: not tab.race.files.is_reading)

    assert find(tab, "race.photo", QComboBox).currentText() == "me.png"
    assert picture(tab).image.pixelColor(9, 9) == QColor("red")
    run(tab)
    request = requests_of(engines)[0]
    assert len(request.race.photo) == 64
    assert request.showing.photo.identity == request.race.photo
    choose(tab, "race.photo", "Mountain lake")
    QTest.keyClick(find(tab, "race.photo"), Qt.Key.Key_Return)
    run(tab)
    assert requests_of(engines)[-1].race.photo == ""


def test_a_file_that_cannot_be_opened_changes_nothing(tab: RaceTab, tmp_path: Path) -> None:
    request = RunWorkload(run_id="a", workload="matmul", device="cpu", size=64, dtype="float32")
    plain_run = Run(request)
    for event in run_events(request):
        plain_run.apply(event)
    contents = {
        "bad.png": (b"no picture", "bad.png"),
        "bad.jsonl": (b"{", "bad.jsonl"),
        "matmul.jsonl": (recording_of(recording_header(), described(), [plain_run]), "Benchmark"),
    }
    for name, (content, word) in contents.items():
        (tmp_path / name).write_bytes(content)
        opened(tab, tmp_path / name)
        assert word in text(tab, "race.outcome")
        assert property_of(tab, "race.outcome", "tone") == "failure"
    assert tab.race.sides == ()
    assert tab.race.choices.photo == ""


def test_files_dropped_on_the_window_are_opened_here(
    pages_on_sight: None,
    qtbot: QtBot,
    studio: Studio,
    theme: Theme,
    tmp_path: Path,
    engines: Engines,
) -> None:
    """A photo is learned, and a recorded race is shown at its end: the next one is against it."""
    runs = []
    contestants = [Contestant(device="cpu", threads=threads) for threads in (1, None)]
    for request in race_requests(LEARN, 128, contestants, 5.0):
        runs.append(Run(request))
        for event in race_run(request):
            runs[-1].apply(event)
    header = recording_header(title="a race", device_name="Other CPU")
    (tmp_path / "race.jsonl").write_bytes(recording_of(header, described(), runs))
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitExposed(window)
    studio.start()
    wait_until(lambda: studio.session.is_free and studio.sensors.inventory is not None)
    open_tab(window, "Memory")
    assert drop(window, photo(tmp_path / "me.png"))
    wait_until(lambda: sees(window, "race.photo"))
    wait_until(lambda: find(window, "race.photo", QComboBox).currentText() == "me.png")

    assert drop(window, tmp_path / "race.jsonl")
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


def test_a_race_is_recorded_with_its_pictures_and_opens_again(
    tab: RaceTab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mine.jsonl"
    run(tab)
    save(tab, "recording", path, monkeypatch)
    before = tab.race.sides
    opened(tab, path)
    for mine, again in zip(before, tab.race.sides, strict=True):
        assert again is not mine
        assert again.end_s == mine.end_s
        shown, seen = (side.track.picture_at(side.end_s) for side in (again, mine))
        assert shown == seen is not None
    # A recording has its file already.
    pick(tab, "recording")
    wait_until(lambda: property_of(tab, "race.outcome", "tone") == "failure")


def test_a_race_is_saved_as_a_picture_and_opens_again_as_a_ghost(
    tab: RaceTab, engines: Engines, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "race.png"
    run(tab)
    save(tab, "picture", path, monkeypatch)
    assert decode_shared(QImage(str(path)).text(CHUNK)).race == tab.race.verdict.finished

    opened(tab, path)
    assert "saved" in chips(tab, "left")[0]
    assert "saved" in find(tab, "race.contestants.left", QComboBox).currentText()
    click(tab, "race.picture.paint")
    assert tab.race.ghost is None, "it learned"
    opened(tab, path)
    run(tab)
    assert len(requests_of(engines)) == 3, "only one contestant ran again"
    assert text(tab, "race.left.clock") == text(tab, "race.right.clock")
    assert tab.race.verdict.finished.contestants[0].recording.startswith("saved")
    choose(tab, "race.contestants.left", "CPU, 1 thread")
    assert tab.race.ghost is None


def test_full_screen_is_the_race_alone_again_and_again_until_esc(
    tab: RaceTab, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(race_stage, "_RESULT_MS", 10)
    engines.scripts[DescribeEngine] = [Pause(), *engines.scripts[DescribeEngine]]
    tab._studio.session.restart()
    wait_until(engines.latest.paused.is_set)
    click(tab, "race.full_screen")
    stage = tab._stage
    assert stage.isFullScreen()
    assert not stage.page.findChildren(QPushButton)
    assert "PyTorch is starting" in text(stage.page, "race.stage.detail")
    engines.latest.go()
    wait_until(lambda: tab.race.can_run)
    tab.race.start()
    wait_over(tab)
    wait_until(lambda: text(stage.page, "race.stage.headline") == "2.0 × faster")
    assert picture_of_stage(stage.page).image is not None
    for _ in range(2):
        wait_until(lambda: tab.race.is_replaying)
        tab.race.replay()

    QTest.keyClick(stage, Qt.Key.Key_Escape)
    wait_until(lambda: tab._stage is None)
    assert not tab.race.is_replaying
    assert tab.isVisible()


def picture_of_stage(page: race_stage.StagePage) -> RacePicture:
    return find(page, "race.stage.right.picture", RacePicture)


def test_neither_the_race_nor_its_result_moves_anything_in_a_small_window(
    tab: RaceTab, engines: Engines
) -> None:
    def places() -> list[QRect]:
        settle()
        names = ("race.full_screen", "race.photo", "race.open", "race.left.picture", "race.size")
        return [find(tab, name).geometry() for name in names]

    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, pause_after=4 if request.run_id == "race-2" else None
    )
    tab.resize(900, 440)
    before = places()
    click(tab, "race.run")
    wait_until(lambda: engines.latest.paused.is_set())
    wait_until(lambda: "so far" in text(tab, "race.sentence"))
    assert places() == before
    engines.latest.go()
    wait_over(tab)
    wait_until(lambda: "beat" in text(tab, "race.sentence"))
    assert sees(tab, "race.save")
    assert places()[:3] == before[:3]
    tab.resize(1240, 720)
    wide = places()
    click(tab, "race.picture.paint")
    click(tab, "race.picture.learn")
    assert places() == wide


def test_beside_other_programs_no_winner_is_named(tab: RaceTab, engines: Engines) -> None:
    engines.scripts[RunWorkload] = lambda _engine, request: race_run(
        request, **(kept_busy(race_seconds(request) / 800) if request.race.threads else {})
    )
    run(tab)
    assert "cannot be told" in text(tab, "race.sentence")
    assert "other programs" in text(tab, "race.sentence")
    assert find(tab, "race.trust", TrustChip).notice.tone is Tone.AMBER
