"""A check in the window: what runs, what is kept, and what a bad card does to it."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.core.check.check_folder import CheckFolder
from gpu_studio.core.check.check_record import CheckRecord
from gpu_studio.core.messages.check_messages import STAGE_NAMES, CheckStageBegan, RunCheck
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.engine_session import EngineState
from tests.driving.window import wait_until
from tests.fakes.check_answers import answer_with, check_round, requests_of, wrong_bit
from tests.fakes.other_pcs import line_lost
from tests.fakes.pc import two_cards
from tests.fakes.scripted_engine import Engines, Pause, ScriptedEngine
from tests.patience import limit

with_cards = pytest.mark.parametrize("inventory", [two_cards()])
pytestmark = with_cards


def finish(check: CardCheck) -> CheckRecord:
    """Wait for the end of a check; return its record."""
    wait_until(lambda: not check.phase.is_busy and check.record)
    assert check.record is not None
    return check.record


def folder(tmp_path: Path) -> CheckFolder:
    return CheckFolder(tmp_path / "checks", "two")


def paused(engines: Engines) -> ScriptedEngine:
    wait_until(lambda: any(engine.paused.is_set() for engine in engines.made))
    return next(engine for engine in engines.made if engine.paused.is_set())


def wait_in(check: CardCheck, engines: Engines, stage: str) -> None:
    """Wait until the engine pauses in a stage, and until the window has heard all before it."""
    paused(engines)

    def has_heard_it() -> bool:
        present = check.run.present if check.run else None
        return present is not None and (present.name, present.fraction) == (stage, 0.45)

    wait_until(has_heard_it)


def test_the_cpu_is_checked_beside_the_programs_engine(check: CardCheck, engines: Engines) -> None:
    answer_with(engines, pause_in="load")
    check.choose(device="cpu", minutes=1)
    check.start()
    engine = paused(engines)

    assert check._studio.session.state is EngineState.READY
    engine.go()
    assert finish(check).device.address == "cpu"
    assert requests_of(engines)[0].round_s == 60.0


def test_a_step_that_hears_no_stop_is_ended(
    check: CardCheck, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit(monkeypatch, stop_check_ms=1)
    engines.scripts[RunCheck] = deaf_in_compute
    check.start()
    engine = paused(engines)
    check.stop()
    record = finish(check)

    assert engine.was_abandoned
    assert record.verdict == "partial"
    assert not record.findings


def deaf_in_compute(_engine: ScriptedEngine, request: RunCheck) -> Iterator[Any]:
    for event in check_round(request, pause_in="compute"):
        yield Pause(deaf=True) if isinstance(event, Pause) else event


def test_an_engine_that_a_signal_holds_up_is_a_pause(check: CardCheck, engines: Engines) -> None:
    class Held(ScriptedEngine):
        is_held = True

    engines.kind = Held
    answer_with(engines, pause_in="compute")
    check.start()
    wait_in(check, engines, "compute")
    answer_with(engines)
    check._silence.ended.emit()
    record = finish(check)
    assert (record.verdict, len(record.pauses)) == ("passed", 1)


def test_an_engine_that_a_driver_keeps_alive_is_left_behind(
    check: CardCheck, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Held(ScriptedEngine):
        def abandon(self) -> None:
            self.was_abandoned = True

    engines.kind = Held
    engines.scripts[RunCheck] = deaf_in_compute
    check.start()
    engine = paused(engines)
    wait_in(check, engines, "compute")
    limit(monkeypatch, check_step_s=0.001)
    check._expect_event()
    record = finish(check)

    assert engine.was_abandoned
    assert record.verdict == "failed"
    assert "stopped answering" in record.sentence
    engine.go()


def test_a_record_is_kept_and_a_second_failure_of_the_card_has_another_next_action(
    check: CardCheck, engines: Engines, tmp_path: Path
) -> None:
    answer_with(engines, findings={"memory": (wrong_bit(),)})
    check.start()
    first = finish(check)
    wait_until(lambda: check.kept and check.can_run)
    assert folder(tmp_path).records() == (first,) == check.kept
    assert not list((tmp_path / "checks").glob("*.running"))
    check.start()
    second = finish(check)

    assert "run the check again" in first.next_action
    assert "failed twice" in second.next_action


def test_a_check_that_the_system_ended_is_a_result_at_the_next_start(
    make_check: Callable[..., CardCheck], engines: Engines
) -> None:
    check = make_check()
    answer_with(engines, pause_in="memory", findings={"compute": (wrong_bit("compute"),)})
    check.start()
    wait_in(check, engines, "memory")
    spent_s = check.run.elapsed_s if check.run else 0.0
    # As a logoff does: unlike you, it does not mean the check.
    check._studio.is_ended_by_system = True
    check._studio.close()

    again = make_check(boot="two")
    record = finish(again)
    assert again.kept == (record,)
    (stop,) = record.interruptions
    assert (stop.after_s, stop.is_restart) == (spent_s, True), "kept at the end"
    assert (record.verdict, record.errors, record.is_stopped) == ("failed", 1, False)
    assert again.can_run
    headline = again._studio.headlines.headline
    assert headline is not None
    assert "restarted" in headline.sentence


@pytest.mark.parametrize("stops_first", [False, True])
def test_a_check_whose_window_you_closed_is_stopped_and_was_not_cut_off(
    make_check: Callable[..., CardCheck], engines: Engines, stops_first: bool
) -> None:
    check = make_check()
    check.choose(minutes=480)
    engines.scripts[RunCheck] = deaf_in_compute
    check.start()
    wait_in(check, engines, "compute")
    if stops_first:
        check.stop()
    check._studio.close()

    again = make_check(boot="two")
    wait_until(lambda: again.kept)
    (record,) = again.kept
    assert (record.verdict, record.is_stopped, record.interruptions) == ("partial", True, ())
    verdicts = [stage.verdict for stage in record.stages]
    assert verdicts == ["passed", "partial", *["skipped"] * 3]


def test_a_running_check_is_no_result_in_another_window_and_runs_alone(
    make_check: Callable[..., CardCheck], engines: Engines
) -> None:
    check = make_check()
    answer_with(engines, pause_in="load")
    check.start()
    engine = paused(engines)
    wait_until(lambda: not check._files.is_busy)

    other = make_check()
    assert other.record is None
    other.start()
    wait_until(lambda: "Another check is running" in other.outcome.sentence)
    assert not other.phase.is_busy
    assert len(requests_of(engines)) == 1
    engine.go()
    finish(check)


def test_where_nothing_can_be_kept_the_check_runs_and_it_is_reported(
    check: CardCheck, tmp_path: Path
) -> None:
    (tmp_path / "checks").write_text("")
    check.start()

    assert finish(check).verdict == "passed"
    wait_until(lambda: "could not be kept" in check.outcome.sentence)


def test_an_experiment_with_the_memory_comes_first(check: CardCheck) -> None:
    changes: list[bool] = []
    check.changed.connect(lambda: changes.append(check.can_run))
    check._studio.lab.start()
    assert "other work" in check.reason
    check._studio.lab.end()
    assert (changes[0], changes[-1]) == (False, True)


class Sleeper:
    """A clock that stands still but for the sleeps of the PC."""

    def __init__(self, check: CardCheck) -> None:
        self._timer = check._pauses
        self._now_s = 100.0
        self._timer._watch._clock = lambda: self._now_s

    def sleep(self, pause_s: float) -> None:
        self._now_s += pause_s
        self._timer.look()


def test_a_sleep_is_no_fault_and_its_stage_runs_again(check: CardCheck, engines: Engines) -> None:
    sleeper, pause_s = Sleeper(check), 80.0
    answer_with(engines, pause_in="memory")
    check.start()
    wait_in(check, engines, "memory")
    answer_with(engines)
    sleeper.sleep(pause_s)
    record = finish(check)

    assert record.verdict == "passed"
    assert record.findings == ()
    (pause,) = record.pauses
    assert pause.paused_s == pytest.approx(pause_s, abs=1)
    first, second = requests_of(engines)
    assert second.stages == STAGE_NAMES[STAGE_NAMES.index("memory") :]
    assert second.round == first.round


def test_a_line_that_is_cut_is_no_fault_of_the_card(check: CardCheck, engines: Engines) -> None:
    def cut(_engine: object, request: RunCheck) -> Iterator[object]:
        for event in check_round(request):
            if isinstance(event, CheckStageBegan) and event.stage == "memory":
                yield event
                yield line_lost()
                return
            yield event

    engines.scripts[RunCheck] = cut
    check.start()
    record = finish(check)

    assert record.verdict == "inconclusive"
    assert record.has_tested, "what was tested is kept"
    assert "The connection to attic was lost." in record.findings[-1].sentence
