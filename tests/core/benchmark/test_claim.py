import pytest

from gpu_studio.core.benchmark.claim import Outcome, claim_of, fixes_sentence
from gpu_studio.core.benchmark.options import compare_ways, findings_of
from gpu_studio.core.messages.pitfall_messages import Figure
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.switcher.pitfall_words import format_figure
from tests.fakes.run_answers import finished, in_turns


def plain(text):
    return text.replace("\u202f", " ")


def result(median_s, **changes):
    request = RunWorkload(run_id="r", workload="x", device="cpu", size=8, dtype="float32")
    return finished(request, (median_s,) * 20, **changes)


def test_the_fastest_and_the_smallest_are_named():
    results = {
        "AMP off": result(0.02, peak_allocated_bytes=4 << 20),
        "AMP on": result(0.01, peak_allocated_bytes=3 << 20),
    }
    assert plain(compare_ways(results)) == (
        "The fastest is “AMP on”, 10.0 ms per call: 2.0 × faster than “AMP off”. “AMP on” uses "
        "least memory, 3 MiB at its peak; “AMP off” uses most, 4 MiB."
    )


def test_what_is_not_known_of_all_is_not_compared():
    results = {"a": result(0.02, peak_allocated_bytes=4 << 20), "b": result(0.01)}
    assert "memory" not in compare_ways(results)
    assert compare_ways({"a": result(0.02)}) == ""
    for median_s in (0.02, 0.0202):
        sentence = compare_ways({"a": result(0.02), "b": result(median_s)})
        assert plain(sentence) == "All options take about the same time, 20.0 ms per call."
    assert "The fastest" in compare_ways({"a": turns(0.02), "b": turns(0.022)})


def test_a_run_in_doubt_is_not_praised_without_saying_so():
    results = {"a": result(0.03), "b": result(0.01, throttled=True)}
    assert plain(compare_ways(results)) == (
        "The fastest is “b”, 10.0 ms per call: about 3 × faster than “a”. In doubt: throttled."
    )
    both = {"a": result(0.02, throttled=True), "b": result(0.01, throttled=True)}
    assert compare_ways(both).endswith("In doubt: throttled.")


def test_wrong_results_are_reported_first_and_are_not_the_fastest():
    results = {"a": result(0.02), "b": result(0.01, verified=False), "c": result(0.04)}
    text = compare_ways(results)
    assert text.startswith("Don't trust “b”: wrong results. The fastest is “a”")
    assert "fastest" not in compare_ways({label: results[label] for label in "ab"})


def test_overlapping_ways_have_no_fastest():
    wide = {"ci95_s": (0.015, 0.025)}
    results = {"a": result(0.02, **wide), "b": result(0.021, **wide)}
    assert compare_ways(results) == "Which is the fastest cannot be told: their times overlap."
    results = {"a": result(0.02, throttled=True), "b": result(0.03)}
    assert compare_ways(results).startswith(
        "Which is the fastest cannot be told: the times are doubtful (throttled). Let the card cool"
    )


def test_of_several_ways_those_too_close_are_named():
    results = {"a": result(0.02), "b": result(0.0201), "c": result(0.04)}
    assert plain(compare_ways(results)) == (
        "“a” takes 20.0 ms per call: 2.0 × faster than “c”. Which of “a” and “b” is faster cannot "
        "be told."
    )


def test_findings_are_reported_once_with_whom_they_are_about():
    results = {
        "a": result(1, findings=("Both.", "A alone.")), "b": result(1, findings=("Both.",)),
    }  # fmt: skip
    assert list(findings_of(results)) == ["Both.", "a: A alone."]


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.0021, "s", "2.10 ms"), (1 << 20, "bytes", "1 MiB"), (0.4, "share", "40 %"),
        (2.0, "×", "2.0 ×"), (65536.0, "", "65536"), (0.0073, "", "0.00730"),
    ],
)  # fmt: skip
def test_a_figure_has_its_unit(value, unit, text):
    figure = Figure(name="x", title="X", value=value, unit=unit)
    assert plain(format_figure(figure)) == text


def turns(median_s, *, rounds=(1.0,) * 12, **changes):
    rounds_s = tuple(median_s * each for each in rounds)
    return in_turns(result(median_s, **changes), rounds_s=rounds_s)


def test_doubtful_times_are_not_equal():
    assert claim_of(result(0.02), result(0.02)).outcome is Outcome.EQUAL
    hot = result(0.02, throttled=True, ci95_s=(0.0199, 0.0201))
    assert claim_of(hot, result(0.02)).outcome in (Outcome.OVERLAP, Outcome.DOUBTFUL)


def test_a_small_lead_counts_in_turns_and_not_between_two_times():
    apart = claim_of(result(0.011), result(0.010))
    assert apart.outcome is Outcome.OTHER_TIME
    assert claim_of(result(0.013), result(0.010)).outcome is Outcome.FASTER
    assert claim_of(turns(0.011), turns(0.010)).outcome is Outcome.FASTER


@pytest.mark.parametrize(("pairs", "is_told"), [(1, False), (2, False), (3, True), (12, True)])
def test_fewer_than_three_pairs_of_rounds_have_no_winner(pairs, is_told):
    found = claim_of(turns(0.020, rounds=(1.0,) * pairs), turns(0.010, rounds=(1.0,) * pairs))
    assert (found.outcome is Outcome.FASTER) is is_told
    if not is_told:
        assert found.outcome is Outcome.FEW_ROUNDS
        assert "more time" in fixes_sentence([found])


@pytest.mark.parametrize(
    ("pairs", "samples", "is_told"),
    [(1, 20, False), (5, 20, False), (6, 20, True), (6, 10, True), (8, 8, False)],
)
def test_on_a_busy_pc_few_pairs_or_samples_have_no_winner(pairs, samples, is_told):
    busy = {"other_processes": True, "rounds": (1.0,) * pairs, "samples": samples}
    found = claim_of(turns(0.200, **busy), turns(0.010, **busy))
    assert (found.outcome is Outcome.FASTER) is is_told
    if not is_told:
        assert found.outcome is Outcome.BUSY
        assert plain(found.words) == "cannot be told, at least 20 × apart"


def test_on_a_busy_pc_a_winner_wins_every_round():
    slower = (1.2, 1.3, 1.25, 1.1, 1.3, 1.2) * 2
    busy = {"other_processes": True}
    won = claim_of(turns(0.010, rounds=slower, **busy), turns(0.008, **busy))
    assert won.outcome is Outcome.FASTER
    assert plain(won.words) == "less than 2 × faster"
    lost_one = claim_of(turns(0.010, rounds=(0.75, *slower[1:]), **busy), turns(0.008, **busy))
    assert lost_one.low > 1
    assert (lost_one.outcome, lost_one.words) == (Outcome.BUSY, "cannot be told")


@pytest.mark.parametrize(
    ("card_s", "verdict"),
    [(0.004, Outcome.FASTER), (0.016, Outcome.BUSY), (0.025, Outcome.SLOWER)],
)
def test_a_card_that_a_game_uses_too_loses_only_by_a_factor_of_two(card_s, verdict):
    cpu = turns(0.010)
    card = turns(card_s, other_processes=True, device="cuda:0")
    assert claim_of(cpu, card).outcome is verdict
    swapped = {Outcome.FASTER: Outcome.SLOWER, Outcome.SLOWER: Outcome.FASTER}
    assert claim_of(card, cpu).outcome is swapped.get(verdict, verdict)


def test_two_ways_on_a_card_that_a_game_uses_meet_it_alike():
    shared = {"other_processes": True, "device": "cuda:0"}
    assert claim_of(turns(0.016, **shared), turns(0.010, **shared)).outcome is Outcome.FASTER
    assert claim_of(turns(0.016, **shared), turns(0.010, device="cuda:0")).sign == 1


def test_a_disturbance_of_both_takes_no_winner_away():
    drift = (1.0, 3.0, 1.5, 2.0, 1.0, 4.0) * 2
    spread = {"iqr_s": 0.01}
    found = claim_of(turns(0.02, rounds=drift, **spread), turns(0.01, rounds=drift, **spread))
    assert found.doubts
    assert found.outcome is Outcome.FASTER


@pytest.mark.parametrize(
    ("lead", "words"),
    [(1.08, "cannot be told"), (1.3, "less than 2 × faster"), (1.6, "about 2 × faster")],
)
def test_of_doubtful_times_a_lead_within_five_percent_is_none_and_a_small_one_has_no_figure(
    lead, words
):
    slower = turns(0.01 * lead, rounds=(0.9, 1.1) * 6, iqr_s=0.01)
    assert plain(claim_of(slower, turns(0.01)).words) == words


def test_the_ratio_of_totals_widens_the_interval_to_hold_it():
    found = claim_of(turns(0.02), turns(0.01), ratio=2.5)
    assert (found.ratio, found.high) == (2.5, 2.5)
    assert found.low == pytest.approx(2.0)
