"""What the stages do beyond their planted faults."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from gpu_studio.core.check.thresholds import OVERTIME_S, ram_bytes
from gpu_studio.core.clock_reasons import ClockReason
from gpu_studio.core.messages.check_messages import STAGE_NAMES, CheckedDevice, Vitals
from gpu_studio.engine.check import video_memory
from gpu_studio.engine.check.link import LinkCheck
from gpu_studio.engine.check.load import WarmUp
from gpu_studio.engine.check.video_memory import PATTERNS, Pattern, TestedMemory, VideoMemory
from tests.engine.check.benches import (
    MIB,
    TickingClock,
    bench_for,
    card_bench,
    rest_of,
    run,
    stage_of,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.messages.check_messages import StageName
    from gpu_studio.engine.check.stage import StageBench


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stop_ends_a_stage_after_its_step(name: StageName) -> None:
    stop = threading.Event()
    bench = bench_for(name, stop=stop)
    steps = stage_of(name).run(bench)
    next(steps)
    stop.set()
    more, is_whole = rest_of(steps)
    assert len(more) <= 1
    assert not is_whole


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_on_a_busy_pc_a_stage_takes_longer_to_test_everything_once(name: StageName) -> None:
    clock = TickingClock(0.01)
    bench = bench_for(name, budget_s=0.02, clock=clock)
    steps, is_whole = run(stage_of(name), bench)
    assert is_whole
    assert steps[-1].tested
    assert 0.02 < bench.elapsed_s < OVERTIME_S


@pytest.mark.parametrize("name", STAGE_NAMES)
def test_a_stage_that_has_not_tested_everything_ends_after_its_overtime(name: StageName) -> None:
    bench = bench_for(name, budget_s=0.2, clock=TickingClock(OVERTIME_S / 6))
    _, is_whole = run(stage_of(name), bench)
    assert not is_whole


def sensor_of(*readings: Vitals) -> Callable[[], Vitals]:
    """Return a sensor that gives these readings and then repeats the last."""
    left = list(readings)
    return lambda: left.pop(0) if len(left) > 1 else left[0]


def test_a_card_is_read_at_most_once_a_second() -> None:
    bench = bench_for("load", read=lambda: Vitals(temperature_c=50.0), clock=TickingClock(0.25))
    received = [bench.vitals() is not None for _ in range(20)]
    assert received[:5] == [True, False, False, False, True]
    assert len(bench.readings) == 5
    assert bench.vitals(at_once=True) is not None


STEADY = Vitals(temperature_c=63.0, sm_clock_mhz=1468.0, clock_event_reasons=ClockReason(0))


def test_the_load_ends_when_the_card_is_steady() -> None:
    warming = [Vitals(temperature_c=40.0 + 2 * number, sm_clock_mhz=1468.0) for number in range(6)]
    bench = bench_for("load", budget_s=119.0, read=sensor_of(*warming, STEADY))
    steps, is_whole = run(WarmUp(), bench)
    assert is_whole
    # Some seconds of warming up, then a minute of the same temperature.
    assert 66 <= bench.elapsed_s <= 90
    assert bench.is_steady
    assert "steady at 63" in steps[-1].tested
    assert not bench.findings


def test_a_clock_that_changes_is_not_steady() -> None:
    clocks = [Vitals(temperature_c=60.0, sm_clock_mhz=1400.0 + 100 * (n % 2)) for n in range(99)]
    bench = bench_for("load", budget_s=20.0, read=sensor_of(*clocks))
    run(WarmUp(), bench)
    assert bench.elapsed_s >= 20.0


@pytest.mark.parametrize(
    ("reasons", "seconds", "is_told"),
    [(0x40, 6, True), (0x80, 6, True), (0x08, 6, True), (0x40, 1, False), (0x04, 20, False),
     (0x20, 3, False), (0x20, 20, True)],
)  # fmt: skip
def test_brakes_are_reported_if_they_last(reasons: int, seconds: int, is_told: bool) -> None:
    braked = Vitals(
        temperature_c=92.0, sm_clock_mhz=900.0, clock_event_reasons=ClockReason(reasons)
    )
    changing = [
        Vitals(temperature_c=50.0 + 5 * (n % 2), clock_event_reasons=ClockReason(0))
        for n in range(99)
    ]
    bench = bench_for("load", budget_s=20.0, read=sensor_of(*[braked] * seconds, *changing))
    run(WarmUp(), bench)
    assert [finding.kind for finding in bench.findings] == ["throttled"] * is_told
    if is_told:
        (finding,) = bench.findings
        assert finding.severity == "doubt"
        assert "92" in finding.sentence


def test_a_clock_under_the_base_clock_without_a_reason_is_reported() -> None:
    card = CheckedDevice(address="cuda:0", name="GT 1030", base_clock_mhz=1227.0)
    slow = Vitals(temperature_c=50.0, sm_clock_mhz=900.0, clock_event_reasons=ClockReason(0))
    bench = bench_for("load", budget_s=12.0, read=lambda: slow, facts=card)
    run(WarmUp(), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("low_clock", "doubt")
    assert "900" in finding.sentence
    assert "1227" in finding.sentence
    assert "s after the start of the load" in finding.sentence


@pytest.mark.parametrize(
    ("fan_percent", "degrees", "is_told"),
    [(0.0, 82.0, True), (0.0, 55.0, False), (34.0, 82.0, False), (None, 82.0, False)],
)
def test_a_fan_that_stands_still_on_a_hot_card_is_reported(
    fan_percent: float | None, degrees: float, is_told: bool
) -> None:
    hot = Vitals(temperature_c=degrees, fan_percent=fan_percent, clock_event_reasons=ClockReason(0))
    bench = bench_for("load", budget_s=12.0, read=lambda: hot)
    run(WarmUp(), bench)
    assert [finding.kind for finding in bench.findings] == ["fan_stopped"] * is_told
    if is_told:
        (finding,) = bench.findings
        assert finding.severity == "doubt"
        assert "82" in finding.sentence
        assert "s after the start of the load" in finding.sentence


def test_the_fan_of_a_card_that_slows_itself_down_is_reported() -> None:
    hot = Vitals(temperature_c=93.0, fan_percent=31.0, clock_event_reasons=ClockReason(0x40))
    bench = bench_for("load", budget_s=12.0, read=lambda: hot)
    run(WarmUp(), bench)
    (finding,) = bench.findings
    assert finding.kind == "throttled"
    assert "31" in finding.sentence


def test_on_a_busy_pc_a_step_of_the_load_ends_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other programs take the CPU after the first steps: each call takes half a second."""
    clock = TickingClock(0.0)
    real = torch.mm

    def slow_mm(*operands: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        clock.now_s += 0.5 if len(calls) > 2 else 0.001
        calls.append(1)
        return real(*operands, out=out)

    calls: list[int] = []
    monkeypatch.setattr(torch, "mm", slow_mm)
    bench = bench_for("load", budget_s=12.0, clock=clock)
    steps, is_whole = run(WarmUp(), bench)
    assert is_whole
    assert len(steps) >= 8
    assert bench.elapsed_s < 14.0
    assert bench.findings == []


def words_of(title: str, count: int = 200, seed: int = 0) -> list[int]:
    pattern = next(one for one in PATTERNS if one.title == title)
    out, spare = (torch.empty(count, dtype=torch.int64) for _ in range(2))
    pattern.fill(torch.arange(count), out, spare, seed)
    return [int(word) & (2**64 - 1) for word in out]


def test_the_patterns_are_what_they_are_called() -> None:
    both_halves = (1 << 32) + 1
    assert words_of("addresses")[:3] == [0, 8 * both_halves, 16 * both_halves]
    walking = words_of("a walking one")
    assert walking[:2] == [1, 2]
    assert walking[63] == 1 << 63
    assert {word.bit_count() for word in walking} == {1}
    assert words_of("a walking one", seed=1)[:2] == [2, 4]
    random = words_of("random words", 5000)
    assert len(set(random)) == 5000
    assert sum(word.bit_count() for word in random) / 5000 == pytest.approx(32, abs=0.5)
    assert random != words_of("random words", 5000, seed=1)


@pytest.mark.parametrize(
    ("title", "inverse"),
    [("addresses", "inverted addresses"), ("random words", "inverted random words"),
     ("a walking one", "a walking zero")],
)  # fmt: skip
def test_every_pattern_has_its_inverse(title: str, inverse: str) -> None:
    both = [
        first ^ second for first, second in zip(words_of(title), words_of(inverse), strict=True)
    ]
    assert set(both) == {2**64 - 1}


def test_the_ram_of_a_pc_is_tested_in_a_modest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video_memory, "free_bytes", lambda _device: 400 * MIB)
    memory = TestedMemory.allocate(bench_for("memory"))
    allocate = sum(chunk.numel() * 8 for chunk in memory.chunks)
    assert 0 < allocate <= ram_bytes(400 * MIB) == 40 * MIB
    memory.release()
    assert memory.chunks == []


def test_of_much_ram_as_much_is_tested_as_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, make = TickingClock(tick_s=0.0), TestedMemory._make

    def in_time(memory: TestedMemory, pattern: Pattern, number: int) -> None:
        clock.now_s += 0.1
        make(memory, pattern, number)

    monkeypatch.setattr(video_memory, "free_bytes", lambda _device: 1 << 40)
    monkeypatch.setattr(video_memory, "_LARGEST_RAM_CHUNK", MIB)
    monkeypatch.setattr(TestedMemory, "_make", in_time)
    chunks = []
    for budget_s in (10.0, 20.0):
        bench = bench_for("memory", budget_s=budget_s, clock=clock)
        memory = TestedMemory.allocate(bench)
        chunks.append(len(memory.chunks))
        list(memory.one_pass())
        assert memory.passes == 1, "half a pass has no verdict"
        assert bench.elapsed_s <= budget_s
        memory.release()
    assert chunks == [4, 9], "60 % of the time, 12 writings and readings of 0.1 s a chunk"


def test_memory_that_runs_out_ends_the_taking_and_not_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_for("memory")
    memory = TestedMemory.allocate(bench, 32 * MIB)
    count = len(memory.chunks)
    real, left = torch.empty, [2]

    def scarce(*shape: int, **options: object) -> torch.Tensor:
        if not left[0]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        left[0] -= 1
        return real(*shape, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(video_memory.torch, "empty", scarce)
    memory.add_chunks(count + 5)
    assert len(memory.chunks) == count + 2


def test_a_wrong_word_has_its_address_whichever_chunk_has_it() -> None:
    bench = bench_for("memory")
    memory = TestedMemory.allocate(bench, 32 * MIB)
    doing = memory.one_pass()
    while not next(doing).startswith("Reading"):
        pass
    chunk_bytes = memory.chunks[0].numel() * 8
    memory.chunks[2][1000] ^= 1 << 5
    list(doing)
    (finding,) = bench.findings
    assert finding.bits is not None
    assert finding.bits.first_byte == 2 * chunk_bytes + 8000
    assert (finding.bits.words, finding.bits.zero_to_one, finding.bits.one_to_zero) == (1, 1, 0)
    assert finding.count == bench.errors == 1


def test_a_word_that_is_right_the_second_time_is_an_error_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = bench_for("memory")
    memory = TestedMemory.allocate(bench, 32 * MIB)
    real, calls = memory._count_wrong, []

    def misread(pattern: video_memory.Pattern, number: int) -> int:
        calls.append(number)  # the second chunk is not among those of the first proof
        return 3 if number == 1 and calls.count(1) == 1 else real(pattern, number)

    monkeypatch.setattr(memory, "_count_wrong", misread)
    list(memory.one_pass())
    (finding,) = bench.findings
    assert (finding.kind, finding.count, finding.came_back) == ("wrong_bits", 3, False)


def memory_of(bench: StageBench, monkeypatch: pytest.MonkeyPatch, most: int) -> TestedMemory:
    monkeypatch.setattr(video_memory.torch.cuda, "empty_cache", lambda: None)
    return TestedMemory.allocate(bench, most)


def test_memory_that_is_slow_as_ram_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = TickingClock(0.001)
    bench = card_bench("memory", clock=clock)
    memory = memory_of(bench, monkeypatch, 96 * MIB)
    real = bench.timed
    monkeypatch.setattr(
        bench, "timed", lambda work, step: real(work, step) * (9 if step in (10, 11) else 1)
    )
    list(memory.one_pass())
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("memory_spilled", "doubt")
    chunk_bytes = memory.chunks[0].numel() * 8
    assert memory.coverage.tested_bytes == (len(memory.chunks) - 2) * chunk_bytes


def test_a_card_that_does_not_notice_a_wrong_word_is_not_trusted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = card_bench("memory", clock=TickingClock(0.001))
    memory = memory_of(bench, monkeypatch, 64 * MIB)
    blind = torch.tensor(0)
    real = torch.count_nonzero
    calls: list[int] = []

    def count(words: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return blind if len(calls) <= 4 else real(words)

    monkeypatch.setattr(video_memory.torch, "count_nonzero", count)
    list(memory.one_pass())
    assert [(one.kind, one.severity) for one in bench.findings] == [("blind", "doubt")]


def blind_to_the_high_half(words: torch.Tensor) -> torch.Tensor:
    return (words & 0xFFFFFFFF != 0).sum()


def blind_to_the_last_eighth(words: torch.Tensor) -> torch.Tensor:
    return (words[: len(words) * 7 // 8] != 0).sum()


def blind_to_the_last_word(words: torch.Tensor) -> torch.Tensor:
    return (words[:-1] != 0).sum()


def blind_to_one_bit(words: torch.Tensor) -> torch.Tensor:
    return (words & torch.iinfo(torch.int64).max != 0).sum()


class BlindLater:
    """Sees everything with the first pattern, which has a proof, and then nothing."""

    def __init__(self) -> None:
        self.left = 14

    def __call__(self, words: torch.Tensor) -> torch.Tensor:
        self.left -= 1
        return (words != 0).sum() if self.left > 0 else torch.tensor(0)


@pytest.mark.parametrize("is_card", [True, False])
@pytest.mark.parametrize(
    "blind",
    [blind_to_the_high_half, blind_to_the_last_eighth, blind_to_the_last_word, blind_to_one_bit,
     BlindLater()],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, -1])
def test_a_stuck_bit_is_found_however_blind_the_comparison_is(
    monkeypatch: pytest.MonkeyPatch,
    blind: Callable[[torch.Tensor], torch.Tensor],
    place: int,
    is_card: bool,
) -> None:
    if isinstance(blind, BlindLater):
        blind = BlindLater()
    clock = TickingClock(0.001)
    bench = card_bench("memory", clock) if is_card else bench_for("memory", clock=clock)
    memory = memory_of(bench, monkeypatch, 64 * MIB)
    real = memory._write

    def stuck(pattern: video_memory.Pattern, number: int) -> None:
        real(pattern, number)
        if number == 1:
            memory.chunks[1][place] |= -(1 << 63)

    monkeypatch.setattr(memory, "_write", stuck)
    monkeypatch.setattr(video_memory.torch, "count_nonzero", blind)
    list(memory.one_pass())
    assert {one.kind for one in bench.findings} == {"blind", "wrong_bits"}
    assert bench.errors > 0


@pytest.mark.parametrize("pattern", PATTERNS, ids=lambda pattern: pattern.title)
def test_numpy_knows_the_words_of_each_pattern(pattern: video_memory.Pattern) -> None:
    places = torch.arange(1 << 33, (1 << 33) + 3000)
    out, spare = (torch.empty_like(places) for _ in range(2))
    pattern.fill(places, out, spare, 5)
    known = pattern.known(places.numpy(), 5)
    assert np.array_equal(out.numpy(), known)
    # Each half of a word tells it from its neighbors.
    if "address" in pattern.title:
        assert len(np.unique(known >> 32)) == len(np.unique(known & 0xFFFFFFFF)) == 3000


def test_a_card_with_too_little_free_memory_is_tested_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = card_bench("memory", clock=TickingClock(0.001))
    monkeypatch.setattr(video_memory, "free_bytes", lambda _device: 300 * MIB)
    monkeypatch.setattr(video_memory.torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(TestedMemory, "add_chunks", _take_two)
    steps, is_whole = run(VideoMemory(passes=1), bench)
    assert not is_whole
    assert steps[-1].coverage is not None
    assert steps[-1].coverage.tested_bytes == 8 * MIB


def _take_two(memory: TestedMemory, _count: int) -> None:
    memory.chunks = [torch.empty(MIB // 2, dtype=torch.int64) for _ in range(2)]


def test_the_clock_after_the_pause_is_reported() -> None:
    idle = Vitals(temperature_c=40.0, sm_clock_mhz=139.0)
    busy = Vitals(temperature_c=60.0, sm_clock_mhz=1468.0)
    bench = bench_for("cool", budget_s=10.0, read=sensor_of(busy, busy, idle))
    steps, _ = run(stage_of("cool"), bench)
    assert "at 139\u202fMHz" in steps[-1].tested


COPYING = Vitals(pcie_generation=3, pcie_width=4, pcie_replays=7)


def link_bench(clock: TickingClock, *readings: Vitals) -> StageBench:
    card = CheckedDevice(address="cuda:0", name="GT 1030", pcie_width_max=16)
    return bench_for("link", budget_s=4.0, clock=clock, read=sensor_of(*readings), facts=card)


def test_packets_that_were_sent_again_are_reported() -> None:
    more = Vitals(pcie_generation=3, pcie_width=4, pcie_replays=9)
    bench = link_bench(TickingClock(), COPYING, COPYING, more)
    run(LinkCheck(), bench)
    assert [finding.kind for finding in bench.findings] == ["link_errors"]
    assert "2 packets" in bench.findings[0].sentence


@pytest.mark.parametrize(("counter", "severity"), [("ecc_uncorrected", "error"),
                                                   ("ecc_corrected", "doubt")])  # fmt: skip
def test_memory_errors_that_the_card_counts_are_reported(counter: str, severity: str) -> None:
    before, after = Vitals(**{counter: 4}), Vitals(**{counter: 6})
    bench = bench_for("memory", read=sensor_of(before, before, after))
    run(VideoMemory(most_bytes=32 * MIB), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("ecc_errors", severity)
    assert "2" in finding.sentence


def test_a_counter_that_stood_high_before_says_nothing() -> None:
    bench = bench_for("memory", read=lambda: Vitals(ecc_corrected=9, ecc_uncorrected=9))
    run(VideoMemory(most_bytes=32 * MIB), bench)
    assert bench.findings == []
