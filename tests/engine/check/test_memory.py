from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from gpu_studio.core.check.stages import ram_bytes
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.engine.check import memory
from gpu_studio.engine.check.memory import PATTERNS, Pattern, TestedMemory
from gpu_studio.engine.check.stage_run import StageRun
from gpu_studio.engine.check.tested_memory import wrong_bits
from tests.engine.check.stage_runs import MIB, TickingClock, card_run, follow, run_for, sensor_of


def words_of(
    title: str, places: NDArray[np.int64] | range = range(200), seed: int = 0
) -> list[int]:
    """Return the words of a pattern, which PyTorch and numpy make alike."""
    pattern = next(one for one in PATTERNS if one.title == title)
    here = np.asarray(places, dtype=np.int64)
    words = np.empty_like(here)
    pattern.fill(here.copy(), words, np.empty_like(here), seed)
    made = torch.empty(len(here), dtype=torch.int64)
    pattern.fill(torch.from_numpy(here.copy()), made, torch.empty_like(made), seed)
    assert np.array_equal(made.numpy(), words)
    return [int(word) & (2**64 - 1) for word in words]


def test_the_patterns_are_what_they_are_called() -> None:
    both_halves = (1 << 32) + 1
    assert words_of("addresses")[:3] == [0, 8 * both_halves, 16 * both_halves]
    far = words_of("addresses", range(1 << 33, (1 << 33) + 3000))
    assert len({word >> 32 for word in far}) == len({word & 0xFFFFFFFF for word in far}) == 3000
    walking = words_of("walking ones")
    assert walking[:2] == [0x0101010101010101, 0x0202020202020202]
    assert {word.bit_count() for word in walking} == {8}
    assert words_of("walking ones", seed=1)[:1] == walking[1:2]
    random = words_of("random words", range(5000))
    assert len(set(random)) == 5000
    assert sum(word.bit_count() for word in random) / 5000 == pytest.approx(32, abs=0.5)
    assert random != words_of("random words", range(5000), seed=1)


@pytest.mark.parametrize(
    ("title", "inverse"),
    [("addresses", "inverted addresses"), ("walking ones", "walking zeros")],
)
def test_every_pattern_has_its_inverse(title: str, inverse: str) -> None:
    pairs = zip(words_of(title), words_of(inverse), strict=True)
    assert {first ^ second for first, second in pairs} == {2**64 - 1}


@pytest.mark.parametrize("row", [1 << 7, 1 << 12, 1 << 16])
def test_each_bit_is_a_one_alone_among_its_neighbors_in_one_of_eight_passes(row: int) -> None:
    """The neighbors in its word, and those in the words one row before and after it."""
    places = np.array([-row, 0, row]) + 123_457
    for bit in (1, 30, 62):
        alone = 0
        for seed in range(8):
            above, here, below = words_of("walking ones", places, seed)
            near = above >> bit | below >> bit | here >> bit - 1 | here >> bit + 1
            alone += here >> bit & 1 and not near & 1
        assert alone == 1


def test_wrong_bits_have_their_addresses_directions_and_places_in_a_word() -> None:
    expected = np.array([0b1100, 0, -1, 5])
    # The highest bit of a word is the sign: it is missing in the largest number.
    seen = np.array([0b1010, 0, np.iinfo(np.int64).max, 5])
    count, where = wrong_bits(seen, expected, 800)
    assert count == 3
    assert "1 went from 0 to 1, 2 from 1 to 0." in where
    assert where.endswith("at byte 0x320; bits of a word: 1, 2, 63")
    assert "from 800" in where
    assert "to 823" in where
    assert wrong_bits(expected, ~expected, 0)[1].endswith("64 of 64")
    assert wrong_bits(expected, expected.copy(), 0) == (0, "")


def memory_of(run: StageRun, size: int = 32 * MIB) -> TestedMemory:
    return TestedMemory(run, size)


@pytest.mark.parametrize(("step", "pattern"), [(-1, "addresses"), (1, "inverted addresses")])
def test_a_write_that_disturbs_what_lies_above_or_below_is_found(
    monkeypatch: pytest.MonkeyPatch, step: int, pattern: str
) -> None:
    run = run_for("memory", planned_s=600.0)
    words = memory_of(run, 40 * MIB)
    real = words._write

    def disturbing(pattern: Pattern, number: int) -> None:
        real(pattern, number)
        if 0 <= number + step < len(words.chunks):
            words.chunks[number + step][77] ^= 1 << 9

    monkeypatch.setattr(words, "_write", disturbing)
    list(words.one_pass())
    assert run.findings[0].kind == "wrong_bits"
    assert f"with {pattern}," in run.findings[0].sentence


def test_the_memory_rests_between_the_writes_and_the_reads() -> None:
    idle = Telemetry(temperature_c=40.0, sm_clock_mhz=139.0)
    busy = Telemetry(temperature_c=60.0, sm_clock_mhz=1468.0)
    run = run_for("memory", planned_s=100.0, read=sensor_of(busy, busy, idle))
    words = memory_of(run)
    doing = list(words.one_pass())
    rest = doing.index("A rest before the words are read")
    assert "Writing addresses" in doing[:rest]
    assert "Reading addresses" not in doing[:rest]
    assert run.rested is not None
    assert run.rested[1] - run.rested[0] == pytest.approx(12.0, abs=0.5)


def test_the_ram_of_a_pc_is_tested_in_a_modest_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free_bytes", lambda _device: 400 * MIB)
    words = TestedMemory(run_for("memory"))
    taken = sum(chunk.nbytes for chunk in words.chunks)
    assert 0 < taken <= ram_bytes(400 * MIB) == 40 * MIB
    words.release()
    assert words.chunks == []


def test_of_much_ram_as_much_is_tested_as_there_is_time_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    clock, make = TickingClock(tick_s=0.0), TestedMemory._make

    def in_time(words: TestedMemory, pattern: Pattern, number: int) -> None:
        clock.now_s += 0.1
        make(words, pattern, number)

    monkeypatch.setattr(memory, "free_bytes", lambda _device: 1 << 40)
    monkeypatch.setattr(memory, "_LARGEST_RAM_CHUNK", MIB)
    monkeypatch.setattr(TestedMemory, "_make", in_time)
    chunks = []
    for planned_s in (10.0, 20.0):
        run = run_for("memory", planned_s=planned_s, clock=clock)
        words = TestedMemory(run)
        chunks.append(len(words.chunks))
        list(words.one_pass())
        assert words.passes == 1, "half a pass has no verdict"
        assert run.elapsed_s <= planned_s
    # 60 % of the time, 12 writings and readings of 0.1 s a chunk, after those of the first one.
    assert chunks == [4, 9]


def test_memory_that_runs_out_ends_the_taking_and_not_the_check(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    words = memory_of(run_for("memory"))
    count, left, real = len(words.chunks), [2], torch.empty

    def scarce(*shape: int, **options: object) -> torch.Tensor:
        if not left[0]:
            raise torch.OutOfMemoryError("CUDA out of memory.")
        left[0] -= 1
        return real(*shape, **options)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(torch, "empty", scarce)
    words.add_chunks(count + 5)
    assert len(words.chunks) == count + 2


def test_a_wrong_word_has_its_address_whichever_chunk_has_it() -> None:
    run = run_for("memory")
    words = memory_of(run)
    doing = words.one_pass()
    while not next(doing).startswith("Reading"):
        pass
    words.chunks[2][1000] ^= 1 << 5
    list(doing)
    (finding,) = run.findings
    assert f"at byte {2 * words.chunks[0].nbytes + 8000:#x}" in finding.sentence
    assert finding.count == run.errors == 1


def blind_later(real: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """Return a comparison that sees everything with the first pattern, and then nothing."""
    left = iter([*[True] * 14])
    return lambda words: real(words) if next(left, False) else torch.tensor(0)


@pytest.mark.parametrize(
    "part_of",
    [
        lambda words: words & torch.iinfo(torch.int64).max,  # of a word
        lambda words: words[:-1],
        None,
    ],
)
def test_a_stuck_bit_is_found_however_blind_the_comparison_is(
    monkeypatch: pytest.MonkeyPatch, part_of: Callable[[torch.Tensor], torch.Tensor] | None
) -> None:
    run = card_run("memory", clock=TickingClock(0.001))
    words, count = memory_of(run, 64 * MIB), torch.count_nonzero
    real = words._write

    def stuck(pattern: Pattern, number: int) -> None:
        real(pattern, number)
        if number == 1:
            words.chunks[1][-1] |= -(1 << 63)

    monkeypatch.setattr(words, "_write", stuck)
    blind = blind_later(count) if part_of is None else lambda all_: count(part_of(all_))
    monkeypatch.setattr(torch, "count_nonzero", blind)
    list(words.one_pass())
    assert {one.kind for one in run.findings} == {"blind", "wrong_bits"}
    assert run.errors > 0


def test_a_card_that_computes_nothing_does_not_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    run = card_run("memory", clock=TickingClock(0.001))
    words = memory_of(run, 64 * MIB)
    monkeypatch.setattr(words, "_make", lambda *_: None)
    monkeypatch.setattr(torch, "count_nonzero", lambda _words: torch.tensor(0))
    list(words.one_pass())
    assert "blind" in {one.kind for one in run.findings}


def test_a_card_with_too_little_free_memory_is_tested_in_part(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def take_two(words: TestedMemory, _count: int) -> None:
        words.chunks = [torch.empty(MIB // 2, dtype=torch.int64) for _ in range(2)]

    run = card_run("memory", planned_s=3.0, clock=TickingClock(0.001))
    monkeypatch.setattr(memory, "free_bytes", lambda _device: 300 * MIB)
    monkeypatch.setattr(TestedMemory, "add_chunks", take_two)
    _, is_whole = follow(run, memory.memory(run))
    assert not is_whole
    assert run.coverage is not None
    assert run.coverage.tested_bytes == 8 * MIB


@pytest.mark.parametrize(
    ("counter", "before", "severities"),
    [("ecc_uncorrected", 4, ["error"]), ("ecc_corrected", 4, ["doubt"]), ("ecc_corrected", 6, [])],
)
def test_memory_errors_that_the_card_counts_are_reported_once_they_rise(
    counter: str, before: int, severities: list[str]
) -> None:
    first, last = Telemetry(**{counter: before}), Telemetry(**{counter: 6})
    run = run_for("memory", read=sensor_of(first, first, last))
    follow(run)
    assert [(one.kind, one.severity) for one in run.findings] == [
        ("ecc_errors", severity) for severity in severities
    ]
    assert all("2" in one.sentence for one in run.findings)


def test_memory_that_repeats_is_found() -> None:
    run = run_for("memory", planned_s=600.0)
    words = memory_of(run, 40 * MIB)
    words.chunks = [words.chunks[number % 2] for number in range(4)]
    list(words.one_pass())
    assert run.findings[0].kind == "wrong_bits"
