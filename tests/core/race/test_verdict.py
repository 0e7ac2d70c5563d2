import json
import random

import msgspec
import pytest

from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.messages.engine_messages import EngineEnded
from gpu_studio.core.messages.race_messages import RaceOutcome
from gpu_studio.core.protocol import encode
from gpu_studio.core.race.contestant import (
    Contestant,
    contestant_name,
    race_requests,
    usual_contestants,
)
from gpu_studio.core.race.pictures import GROW, LEARN
from gpu_studio.core.race.verdict import judge
from tests.core.race.racing import CARD, CPU, ONE, over, request
from tests.fakes.run_answers import batch, started


def test_the_usual_race_is_that_of_the_cpu_against_a_card_or_of_its_threads():
    assert usual_contestants(["cuda:0", "cuda:1"], 4) == (CPU, CARD)
    assert usual_contestants([], 4) == (ONE, CPU)
    assert usual_contestants([], 1) == (ONE,)


def test_every_contestant_runs_the_same_work():
    requests = race_requests(GROW, 128, [ONE, CPU, CARD], 5.0, first_number=4)
    assert [one.run_id for one in requests] == ["race-4", "race-5", "race-6"]
    assert {(one.workload, one.size, one.budget_s) for one in requests} == {("grow", 128, 5.0)}
    assert [one.race.threads for one in requests] == [1, None, None]


@pytest.mark.parametrize(
    ("contestant", "name"),
    [
        (ONE, "one CPU thread"),
        (CPU, "all 4 CPU threads"),
        (Contestant(device="cpu", threads=3), "3 CPU threads"),
        (CARD, "your GT 1030"),
    ],
)
def test_names(contestant: Contestant, name: str):
    assert contestant_name(over(contestant, 1e-3)) == name


def test_the_faster_one_leads_by_the_ratio_of_the_bars():
    """The slower one is as it stood when the first one finished."""
    verdict = judge(LEARN, [over(CPU, 30e-3, 200, reached=False), over(CARD, 10e-3, 600)])
    finished = verdict.finished
    assert (finished.leader, finished.undecided) == (1, False)
    slower, faster = finished.contestants
    assert slower.seconds == faster.seconds
    assert finished.ratio == pytest.approx(faster.steps / slower.steps)
    assert finished.sentence == (
        "Your GT 1030 beat all 4 CPU threads: 3.0\u202f× faster, 100 against 33.3 steps a second."
    )


def test_a_wrong_result_never_wins():
    finished = judge(LEARN, [over(CPU, 30e-3), over(CARD, 1e-3, verified=False)]).finished
    assert (finished.leader, finished.ratio, finished.undecided) == (None, None, True)
    assert "your GT 1030" in finished.sentence
    assert "wrong" in finished.sentence


def test_beside_other_programs_a_ghost_is_not_beaten_by_a_run_of_another_time():
    busy = over(CPU, 50e-3, other_processes=True)
    assert judge(LEARN, [busy, over(CARD, 10e-3)]).finished.undecided


def test_of_three_the_fastest_right_one_leads_the_second():
    runs = [over(CARD, 1e-3, verified=False), over(ONE, 40e-3), over(CPU, 20e-3)]
    finished = judge(LEARN, runs).finished
    assert finished.leader == 2
    assert finished.ratio == pytest.approx(2.0)


def test_a_contestant_whose_engine_died_keeps_its_steps_and_says_so():
    asked = request(CARD)
    run = Run(asked)
    run.apply(started(asked, race=asked.race))
    run.apply(batch(asked, (0.01,) * 5, 0.1, calls=2))
    run.apply(EngineEnded(exit_code=-9))
    finished = judge(LEARN, [over(CPU, 30e-3), run]).finished
    card = finished.contestants[1]
    assert (card.steps, card.seconds, card.reached, card.verified) == (10, 0.1, False, None)
    assert card.step_median_s is None
    assert "did not finish: The system ended PyTorch" in finished.sentence
    assert (finished.leader, finished.undecided) == (None, False)


def test_a_recording_is_named_where_it_differs():
    ghost = over(CARD, 10e-3, recording="RTX 3060, last week")
    ghost.recording = "RTX 3060, last week"
    finished = judge(LEARN, [over(CPU, 30e-3), ghost]).finished
    assert "(recording: RTX 3060, last week)" in finished.sentence
    assert "Your" not in finished.sentence
    assert finished.contestants[1].recording == "RTX 3060, last week"


def test_the_launches_are_the_reason_if_they_take_most_of_a_step():
    card = over(CARD, 10e-3, parts_s={"launch": 8e-3, "compute": 2e-3})
    assert judge(LEARN, [over(CPU, 5e-3), card]).reason.startswith("Launch cost: 80")


def test_the_reason_has_the_paces_of_the_sentence():
    """Steps that stall make the mean longer than the median."""
    outcome = RaceOutcome(reached=False, steps=50, seconds=2.0, measure=20.0, progress=0.25)
    runs = [over(ONE, 10e-3), over(CPU, 30e-3, reached=False, outcome=outcome)]
    verdict = judge(LEARN, runs)
    assert "100 against 25.0 steps a second" in verdict.finished.sentence
    assert verdict.reason == "A step takes 10.0\u202fms with 1 thread and 40.0\u202fms with 4."


def test_the_ratio_has_its_interval_and_no_claim_has_none():
    won = judge(LEARN, [over(CPU, 30e-3), over(CARD, 10e-3)]).finished
    assert won.ratio == pytest.approx(3.0)
    assert won.ratio_low <= won.ratio <= won.ratio_high
    wrong = judge(LEARN, [over(CPU, 30e-3), over(CARD, 10e-3, verified=False)]).finished
    assert (wrong.ratio, wrong.ratio_low, wrong.ratio_high) == (None, None, None)


def test_the_last_line_has_the_fields_of_the_terminal():
    line = json.loads(encode(judge(LEARN, [over(CPU, 30e-3), over(CARD, 10e-3)]).finished))
    assert {
        "type", "picture", "size", "contestants", "leader", "ratio", "ratio_low", "ratio_high",
        "undecided", "sentence",
    } <= set(line)  # fmt: skip
    assert line["type"] == "race_finished"
    assert {
        "device", "threads", "dtype", "steps", "seconds", "step_median_s", "reached", "verified",
    } <= set(line["contestants"][0])  # fmt: skip
    assert [one["threads"] for one in line["contestants"]] == [4, None]


def in_turns(contestant, step_s, slices_s, **changes):
    """Return a run that is over and took turns with another."""
    run = over(contestant, step_s, **changes)
    run.result = msgspec.structs.replace(run.result, turns="one race", rounds_s=tuple(slices_s))
    return run


def noisy(step_s: float, seed: int, stalls: int = 0) -> list[float]:
    """Return the mean steps of twenty slices; a stall makes one 40 times as long."""
    generator = random.Random(seed)
    slices_s = [step_s * generator.gauss(1, 0.01) for _ in range(20)]
    for index in generator.sample(range(20), stalls):
        slices_s[index] *= 40
    return slices_s


@pytest.mark.parametrize("stalls", [1, 2, 3])
def test_equal_contestants_with_rare_stalls_have_no_winner(stalls: int):
    leaders = 0
    for seed in range(100):
        slices_s = noisy(10e-3, seed, stalls), noisy(10e-3, seed + 1000)
        totals_s = [sum(each) / 20 * 200 for each in slices_s]
        runs = [in_turns(ONE, 10e-3, slices_s[0]), in_turns(CPU, 10e-3, slices_s[1])]
        for run, total_s in zip(runs, totals_s, strict=True):
            outcome = msgspec.structs.replace(run.result.outcome, seconds=total_s)
            run.result = msgspec.structs.replace(run.result, outcome=outcome)
        leaders += judge(LEARN, runs).finished.leader is not None
    assert leaders <= 5
