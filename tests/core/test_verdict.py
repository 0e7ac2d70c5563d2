from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gpu_studio.core.protocol import RunFinished, RunWorkload
from gpu_studio.core.verdict import crossovers, speed_up, verdict
from tests.fakes import finished


def result(
    size: int, median_s: float, device: str = "cpu", dtype: str = "float32", **changes: Any
) -> RunFinished:
    request = RunWorkload(run_id="1", workload="elementwise", device=device, size=size, dtype=dtype)
    return finished(request, (median_s,), **changes)


def pairs(ratios: dict[int, float], device: str = "cuda:0") -> list[RunFinished]:
    """Return results in which the device is so many times faster than the CPU."""
    return [
        made
        for size, ratio in ratios.items()
        for made in (result(size, 1.0), result(size, 1.0 / ratio, device))
    ]


def said(results: list[RunFinished]) -> str:
    return verdict(results).replace("\u202f", " ")


def test_nothing_measured_says_nothing() -> None:
    assert verdict([]) == ""


def test_the_size_from_which_the_card_wins_and_the_cpus_best() -> None:
    assert said(pairs({256: 0.5, 512: 1 / 1.8, 1024: 2.0, 2048: 3.0})) == (
        "On this PC the GeForce GT 1030 wins from 1024 × 1024 on, of the sizes measured "
        "(elementwise, float32); at 256 × 256 the CPU is 2.0 × faster."
    )


def test_a_tie_above_the_first_win_is_no_loss() -> None:
    text = said(pairs({256: 0.5, 512: 2.0, 1024: 0.99}))
    assert "wins from 512 × 512 on" in text


def test_a_loss_above_the_first_win_means_it_depends() -> None:
    assert said(pairs({256: 0.5, 512: 2.0, 1024: 0.8})) == (
        "On this PC it depends on the size (elementwise, float32): the GeForce GT 1030 is 2.0 × "
        "faster at 512 × 512, the CPU 2.0 × at 256 × 256."
    )


def test_always_faster_always_slower_and_equal() -> None:
    assert "wins at every size measured (elementwise, float32): up to 4.0 × faster, at 512" in said(
        pairs({256: 2.0, 512: 4.0})
    )
    assert (
        "the CPU wins at every size measured (elementwise, float32): at 256 × 256 it is 4.0 ×"
        in (said(pairs({256: 0.25, 512: 0.5})))
    )
    assert "are equally fast" in said(pairs({256: 1.04, 512: 0.97}))


def test_one_device_alone_invites_the_other() -> None:
    assert said([result(512, 0.001)]) == (
        "Ryzen 7 5700G needs 1.00 ms for one call of elementwise at 512 × 512, float32. With "
        "a GPU measured as well, this line compares the two."
    )
    assert "With the CPU measured as well" in said([result(512, 0.001, "cuda:0")])


def test_each_card_has_its_sentence() -> None:
    assert said([*pairs({256: 2.0}), *pairs({256: 0.5}, "cuda:1")]) == (
        "On this PC the GeForce GT 1030 wins at every size measured (elementwise, float32): up to "
        "2.0 × faster, at 256 × 256. The CPU wins at every size measured: at 256 × 256 it is "
        "2.0 × faster than the GeForce RTX 3060."
    )


def test_only_the_latest_kind_of_work_counts() -> None:
    results = [*pairs({256: 2.0}), result(256, 1.0, dtype="float16")]
    assert "needs 1.00 s for one call of elementwise at 256 × 256, float16" in said(results)


def test_a_later_run_replaces_an_earlier_one() -> None:
    results = [*pairs({256: 2.0}), result(256, 4.0, "cuda:0")]
    assert "the CPU wins at every size measured" in said(results)
    assert speed_up(results[1], results) == pytest.approx(2.0)


def test_a_recording_is_called_one() -> None:
    results = [result(256, 1.0), result(256, 0.5, "cuda:0", recording="A GT 1030 in 2025")]
    assert "(recording: A GT 1030 in 2025)" in said(results)


def test_the_speed_up_is_over_the_cpu_at_the_same_work() -> None:
    cpu, card = result(256, 1.0), result(256, 0.25, "cuda:0")
    others = [result(512, 9.0), result(256, 9.0, dtype="float16")]
    assert speed_up(card, [*others, cpu, card]) == pytest.approx(4.0)
    assert speed_up(card, [cpu, card, result(256, 2.0)]) == pytest.approx(8.0)
    assert speed_up(card, [*others, card]) is None
    assert speed_up(cpu, [cpu, card]) is None


def test_curves_cross_between_two_measured_sizes() -> None:
    (crossing,) = crossovers(pairs({256: 0.25, 512: 0.5, 1024: 2.0, 2048: 4.0}), "cuda:0")
    assert (crossing.below, crossing.above) == (512, 1024)
    # halfway on logarithmic axes, since 0.5 and 2 are equally far from 1
    assert crossing.crosses_at == pytest.approx((512 * 1024) ** 0.5)


def test_the_mark_lies_nearer_to_the_nearer_tie() -> None:
    (crossing,) = crossovers(pairs({256: 0.5, 1024: 8.0}), "cuda:0")
    assert crossing.crosses_at == pytest.approx(256 * 4**0.25)


def test_no_crossing_is_made_up() -> None:
    assert crossovers(pairs({256: 2.0, 512: 4.0}), "cuda:0") == []
    assert crossovers([result(256, 1.0), result(512, 0.5, "cuda:0")], "cuda:0") == []
    assert crossovers(pairs({256: 0.5, 512: 2.0}), "cuda:1") == []


def test_two_crossings_are_two() -> None:
    found = crossovers(pairs({64: 0.5, 128: 2.0, 256: 0.5}), "cuda:0")
    assert [(crossing.below, crossing.above) for crossing in found] == [(64, 128), (128, 256)]


def test_a_tie_exactly_at_a_size_is_passed_over() -> None:
    (crossing,) = crossovers(pairs({64: 0.5, 128: 1.0, 256: 2.0}), "cuda:0")
    assert (crossing.below, crossing.above) == (64, 256)
    assert crossing.crosses_at == pytest.approx(128.0)


def test_a_device_that_gave_wrong_results_is_not_praised_without_saying_so() -> None:
    results = pairs({512: 2.0, 1024: 4.0})
    assert "wrong" not in said(results)
    results[1] = msgspec.structs.replace(results[1], verified=False)
    assert said(results).endswith(
        "But the GeForce GT 1030 gave wrong results: do not rely on this."
    )
    alone = [msgspec.structs.replace(result(512, 1.0), verified=False)]
    assert said(alone).endswith("But the CPU gave wrong results: do not rely on this.")
