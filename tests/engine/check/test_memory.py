"""Memory: what is written, where a wrong word is, and a comparison that does not see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
import torch

from gpu_studio.core.check.thresholds import ram_bytes
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check import video_memory
from gpu_studio.engine.check.planting import Plant
from gpu_studio.engine.check.video_memory import PATTERNS, Pattern, TestedMemory, VideoMemory
from tests.engine.check.benches import MIB, TickingClock, bench_for, card_bench, run, sensor_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.engine.check.stage import StageBench


def words_of(title: str, count: int = 200, seed: int = 0) -> list[int]:
    pattern = next(one for one in PATTERNS if one.title == title)
    out, spare = (torch.empty(count, dtype=torch.int64) for _ in range(2))
    pattern.fill(torch.arange(count), out, spare, seed)
    return [int(word) & (2**64 - 1) for word in out]


def test_the_patterns_are_what_they_are_called() -> None:
    both_halves = (1 << 32) + 1
    assert words_of("addresses")[:3] == [0, 8 * both_halves, 16 * both_halves]
    walking = words_of("walking ones")
    assert walking[:2] == [0x0101010101010101, 0x0202020202020202]
    assert {word.bit_count() for word in walking} == {8}
    assert words_of("walking ones", seed=1)[:1] == walking[1:2]
    random = words_of("random words", 5000)
    assert len(set(random)) == 5000
    assert sum(word.bit_count() for word in random) / 5000 == pytest.approx(32, abs=0.5)
    assert random != words_of("random words", 5000, seed=1)


@pytest.mark.parametrize(
    ("title", "inverse"),
    [("addresses", "inverted addresses"), ("random words", "inverted random words"),
     ("walking ones", "walking zeros")],
)  # fmt: skip
def test_every_pattern_has_its_inverse(title: str, inverse: str) -> None:
    both = [
        first ^ second for first, second in zip(words_of(title), words_of(inverse), strict=True)
    ]
    assert set(both) == {2**64 - 1}


@pytest.mark.parametrize("row", [1 << power for power in range(7, 17)])
def test_each_bit_is_a_one_alone_among_its_neighbors_in_one_of_eight_passes(row: int) -> None:
    """The neighbors in its word, and those in the words one row before and after it."""
    walking = next(one for one in PATTERNS if one.title == "walking ones")
    places = np.array([-row, 0, row]) + 123_457
    for bit in (1, 30, 62):
        alone = 0
        for seed in range(8):
            above, here, below = (int(word) & (2**64 - 1) for word in walking.known(places, seed))
            near = above >> bit | below >> bit | here >> bit - 1 | here >> bit + 1
            alone += here >> bit & 1 and not near & 1
        assert alone == 1


@pytest.mark.parametrize(("step", "pattern"), [(-1, "addresses"), (1, "inverted addresses")])
def test_a_write_that_disturbs_what_lies_above_or_below_is_found(
    monkeypatch: pytest.MonkeyPatch, step: int, pattern: str
) -> None:
    bench = bench_for("memory", budget_s=600.0)
    memory = TestedMemory.allocate(bench, 40 * MIB)
    real = memory._write

    def disturbing(pattern: Pattern, number: int) -> None:
        real(pattern, number)
        if 0 <= number + step < len(memory.chunks):
            memory.chunks[number + step][77] ^= 1 << 9

    monkeypatch.setattr(memory, "_write", disturbing)
    list(memory.one_pass())
    assert bench.findings[0].kind == "wrong_bits"
    assert f"with {pattern}:" in bench.findings[0].sentence


def test_the_memory_rests_between_the_writes_and_the_reads() -> None:
    idle = Telemetry(temperature_c=40.0, sm_clock_mhz=139.0)
    busy = Telemetry(temperature_c=60.0, sm_clock_mhz=1468.0)
    bench = bench_for("memory", budget_s=100.0, read=sensor_of(busy, busy, idle))
    steps, _ = run(VideoMemory(most_bytes=32 * MIB, passes=1), bench)
    doing = [step.doing for step in steps]
    rest = doing.index("A rest before the words are read")
    assert "Writing addresses" in doing[:rest]
    assert "Reading addresses" not in doing[:rest]
    assert bench.pause is not None
    assert bench.pause[1] - bench.pause[0] == pytest.approx(12.0, abs=0.5)
    assert "read after a rest of 12" in steps[-1].tested.replace("\u202f", " ")
    assert "at 139\u202fMHz" in steps[-1].tested


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
    # 60 % of the time, 12 writings and readings of 0.1 s a chunk, after 14 of the first one.
    assert chunks == [3, 8]


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


@pytest.mark.parametrize(
    "blind",
    [blind_to_the_high_half, blind_to_the_last_eighth, blind_to_the_last_word, blind_to_one_bit,
     BlindLater()],
)  # fmt: skip
def test_a_stuck_bit_is_found_however_blind_the_comparison_is(
    monkeypatch: pytest.MonkeyPatch,
    blind: Callable[[torch.Tensor], torch.Tensor],
) -> None:
    bench = card_bench("memory", clock=TickingClock(0.001))
    memory = memory_of(bench, monkeypatch, 64 * MIB)
    real = memory._write

    def stuck(pattern: video_memory.Pattern, number: int) -> None:
        real(pattern, number)
        if number == 1:
            memory.chunks[1][-1] |= -(1 << 63)

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


@pytest.mark.parametrize(("counter", "severity"), [("ecc_uncorrected", "error"),
                                                   ("ecc_corrected", "doubt")])  # fmt: skip
def test_memory_errors_that_the_card_counts_are_reported(counter: str, severity: str) -> None:
    before, after = Telemetry(**{counter: 4}), Telemetry(**{counter: 6})
    bench = bench_for("memory", read=sensor_of(before, before, after))
    run(VideoMemory(most_bytes=32 * MIB), bench)
    (finding,) = bench.findings
    assert (finding.kind, finding.severity) == ("ecc_errors", severity)
    assert "2" in finding.sentence


def test_a_counter_that_stood_high_before_says_nothing() -> None:
    bench = bench_for("memory", read=lambda: Telemetry(ecc_corrected=9, ecc_uncorrected=9))
    run(VideoMemory(most_bytes=32 * MIB), bench)
    assert bench.findings == []


def memory(plant: Plant | None = None) -> TestedMemory:
    bench = bench_for("memory", budget_s=600.0)
    if plant is not None:
        bench.plant = plant
    return TestedMemory.allocate(bench, 40 * MIB)


def sentences(one: TestedMemory) -> list[str]:
    list(one.one_pass())
    return [finding.sentence for finding in one._bench.findings]


def test_memory_that_repeats_is_called_so_with_the_size_that_is_there() -> None:
    one = memory()
    assert len(one.chunks) >= 4
    # Two of the chunks are there, and the others are the same memory again.
    one.chunks = [one.chunks[number % 2] for number in range(4)]
    found = sentences(one)
    size = 2 * one.chunks[0].nbytes // MIB
    assert "the memory repeats" in found[0]
    assert f"{size}" in found[0]
    assert one._bench.errors > 0


def test_a_wrong_bit_and_words_that_changed_places_are_no_repetition() -> None:
    for kind in ("bit", "swap"):
        one = memory(Plant(kind))
        assert not any("repeats" in sentence for sentence in sentences(one))
    assert sentences(memory()) == []
