import json
from typing import Any

import msgspec
import pytest

from gpu_studio.core.benchmark.standard import (
    DEVICE_S,
    LOAD,
    LOAD_S,
    STANDARD,
    STANDARD_1,
    StandardPlan,
    standard_s,
)
from gpu_studio.core.benchmark.standard_record import (
    SCHEMA,
    StandardRun,
    decode_standard,
    encode_standard,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import MOST_IN_TURNS, RunWorkload
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from tests.core.benchmark.standard_runs import standard_device, standard_run

CARDS = [f"cuda:{index}" for index in range(16)]


def groups_of(plan: StandardPlan) -> list[list[RunWorkload]]:
    """Return all runs of a plan; those of a group take turns."""
    groups = []
    while requests := plan.next_requests(sum(map(len, groups)) + 1):
        groups.append(requests)
    return groups


def test_all_items_of_all_devices_take_turns_and_the_loads_are_alone() -> None:
    plan = StandardPlan(["cuda:0", "cpu"])
    asked = [[(plan.keys[one.run_id], one.device) for one in group] for group in groups_of(plan)]
    items = [
        (item.key, device)
        for item in STANDARD_1
        for device in ("cpu", "cuda:0")
        if item.runs_on(device)
    ]
    assert asked == [items, [(LOAD, "cpu")], [(LOAD, "cuda:0")]]


def test_a_pc_with_many_cards_takes_as_many_turns_as_an_engine_makes() -> None:
    groups = groups_of(StandardPlan([*CARDS, "cpu"]))
    assert max(map(len, groups)) <= MOST_IN_TURNS
    assert {one.device for group in groups for one in group} == {*CARDS, "cpu"}
    ids = [one.run_id for group in groups for one in group]
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("devices", [["cpu"], ["cuda:0"], ["cpu", "cuda:0", "cuda:1"]])
def test_no_item_takes_longer_than_the_whole_has_time_for(devices: list[str]) -> None:
    items, *loads = groups_of(StandardPlan(devices))
    longest_s = [one.longest_s for one in items if one.longest_s is not None]
    assert len(longest_s) == len(items)
    assert all(one.budget_s < (one.longest_s or 0.0) for one in items)
    loads_s = sum(load[0].budget_s for load in loads)
    assert sum(longest_s) + loads_s == pytest.approx(standard_s(devices))
    assert loads_s == pytest.approx(LOAD_S * len(devices))


def test_the_time_left_is_what_the_whole_has_less_what_passed() -> None:
    plan = StandardPlan(["cpu", "cuda:0"])
    assert plan.left_s(10.0) == pytest.approx(2 * DEVICE_S - 10.0)
    assert plan.left_s(3 * DEVICE_S) > 0, "late: it is not over yet"
    assert plan.left_words(3 * DEVICE_S) == "longer than planned"
    assert plan.left_words(10.0) == "about 2\u202fmin left"


def test_a_record_opens_again_as_it_was() -> None:
    assert decode_standard(encode_standard(standard_run())) == standard_run()


def test_a_record_with_a_field_that_went_still_opens() -> None:
    older = json.loads(encode_standard(standard_run()))
    older["devices"][1]["check"] = {"verdict": "passed", "minutes": 6, "made_at": "2026-11-22"}
    assert decode_standard(json.dumps(older).encode()) == standard_run()


@pytest.mark.parametrize(
    "text", [b"", b"{", b"\xff", b"[]", b"[" * 20_000, b'{"schema": 1}',
             b'{"schema": 1, "standard": 1}', b'{"schema": 0, "standard": 1}',
             b" " * LARGEST_RECORD_BYTES + encode_standard(standard_run())],
)  # fmt: skip
def test_what_is_no_record_is_refused_in_words(text: bytes) -> None:
    with pytest.raises(StudioError, match=r"card\.png is not a standard run: ") as refused:
        decode_standard(text, "card.png")
    assert refused.value.kind is FailureKind.FILE_REFUSED


def test_a_newer_programs_record_asks_for_an_update() -> None:
    newer = json.loads(encode_standard(standard_run())) | {"schema": SCHEMA + 1, "devices": 7}
    with pytest.raises(StudioError, match=r"newer version of GPU Studio made card\.png"):
        decode_standard(json.dumps(newer).encode(), "card.png")


def test_another_standard_is_refused_with_both_numbers() -> None:
    other = msgspec.structs.replace(standard_run(), standard=STANDARD + 1)
    with pytest.raises(StudioError, match=f"standard {STANDARD + 1}, .* standard {STANDARD}"):
        decode_standard(encode_standard(other))


def test_texts_arrive_plain() -> None:
    hostile = standard_run(standard_device(name="GT \u202e1030\n"), pc_name="my\x1b[31m PC")
    run = decode_standard(encode_standard(hostile))
    assert (run.devices[0].name, run.pc_name) == ("GT  1030 ", "my [31m PC")


def changed(run: StandardRun, path: str, value: Any) -> bytes:
    """Return the JSON of a run with one value replaced: ``devices.0.name``."""
    content = json.loads(encode_standard(run))
    *way, last = (int(step) if step.isdecimal() else step for step in path.split("."))
    place = content
    for step in way:
        place = place[step]
    place[last] = value
    return json.dumps(content).encode()


@pytest.mark.parametrize(
    ("path", "value", "reason"),
    [
        ("made_at", "yesterday", "date"),
        ("devices", [], "length"),
        ("devices.0.figures.0.key", "speed", "not in standard"),
        ("devices.0.figures.0.key", "product_float32", "two figures"),
        ("devices.0.figures.0.skipped", "It was cold.", "a result and a reason"),
        ("devices.0.figures.0.result", None, "or neither"),
        ("devices.0.figures.1.result.size", 4096, "other work"),
        ("devices.0.figures.1.result.options", {"amp": "on"}, "other work"),
        ("devices.0.figures.1.result.throughput", 9e15, "not that of its median"),
        ("devices.0.figures.1.result.ci95_s", [1.0, 2.0], "interval"),
        ("devices.0.figures.1.result.median_s", 0.0, "not a standard run"),
        ("devices.0.figures.1.result.samples", -1, ">= 0"),
        ("devices.0.figures.1.result.device", "cuda:0", "another device"),
        ("devices.0.load.first_rate", 0.0, "> 0"),
        ("devices.0.load.ci95", [1.1, 1.2], "does not contain its ratio"),
        ("devices.0.load.highest_temperature_c", float("nan"), "malformed"),
    ],
)
def test_a_record_that_contradicts_itself_is_refused(path: str, value: Any, reason: str) -> None:
    with pytest.raises(StudioError, match=reason):
        decode_standard(changed(standard_run(), path, value))
