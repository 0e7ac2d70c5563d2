"""A card with less memory than it reports answers at each address, with another one's words."""

from __future__ import annotations

import numpy as np

from gpu_studio.engine.check.planting import Plant
from gpu_studio.engine.check.video_memory import PATTERNS, TestedMemory
from tests.engine.check.benches import MIB, bench_for


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


def test_an_address_over_4_gib_is_read_back() -> None:
    one = memory()
    one.chunks = one.chunks[:1] * 4000
    places = np.arange(one._words, dtype=np.int64)
    seen = PATTERNS[0].known(places + 3900 * one._words, 0)
    assert one._distances(seen, 3900) == {}
    assert one._distances(seen, 3000) == {900 * one.chunks[0].nbytes: one._words}
    random = np.random.default_rng(1).integers(-(1 << 62), 1 << 62, one._words)
    assert one._distances(random, 3000) == {}
