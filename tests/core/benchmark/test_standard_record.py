import json
import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_studio.core.benchmark.standard import (
    DEVICE_S,
    LOAD,
    LOAD_S,
    STANDARD,
    STANDARD_1,
    StandardPlan,
    key_of,
    standard_s,
)
from gpu_studio.core.benchmark.standard_record import (
    CHUNK,
    SCHEMA,
    StandardFolder,
    StandardRun,
    decode_standard,
    encode_standard,
    has_standard,
    read_standard,
    standard_in,
)
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.run_messages import MOST_IN_TURNS, RunWorkload
from gpu_studio.core.png_chunks import PNG_HEAD
from gpu_studio.core.record_json import LARGEST_RECORD_BYTES
from tests.core.benchmark.standard_runs import paced_device, standard_device, standard_run

CARDS = [f"cuda:{index}" for index in range(16)]


def groups_of(plan: StandardPlan) -> list[list[RunWorkload]]:
    """Return all runs of a plan; those of a group take turns."""
    groups = []
    while requests := plan.next_requests():
        groups.append(requests)
    return groups


def test_all_items_of_all_devices_take_turns_and_the_loads_are_alone() -> None:
    plan = StandardPlan(["cuda:0", "cpu"])
    asked = [[(key_of(one.run_id), one.device) for one in group] for group in groups_of(plan)]
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


RUN = standard_run(paced_device(), paced_device("Ryzen 7 5700G", 0.1, device="cpu"))
JSON = encode_standard(RUN)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixel = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"".join((PNG_HEAD, head, *chunks, pixel, chunk(b"IEND", b"")))


KEY = CHUNK.encode()
FORMS: dict[str, bytes] = {
    "tEXt": png(chunk(b"tEXt", KEY + b"\0" + JSON)),
    "zTXt": png(chunk(b"zTXt", KEY + b"\0\0" + zlib.compress(JSON))),
    "iTXt": png(chunk(b"iTXt", KEY + b"\0\0\0\0\0" + JSON)),
    "JSON": JSON,
    "JSON, indented": msgspec.json.format(JSON),
    "recording": b'{"type":"recording_header"}\n' + b'{"type":"x"}\n' * 1000
    + b'{"type":"standard_finished","run":' + JSON + b"}\n",
    "PowerShell": (b'{"type":"standard_finished","run":' + JSON + b"}\r\n").decode().encode(
        "utf-16"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_what_its_contents_are(form: str, tmp_path: Path) -> None:
    for name in ("a.txt", "b.png", "c"):
        path = tmp_path / name
        path.write_bytes(FORMS[form])
        assert has_standard(path)
        assert read_standard(path) == RUN


@pytest.mark.parametrize(
    "content",
    [png(), b"\xff\xd8\xff\xe0 a photo", b"RIFF\0\0\0\0WEBP", b"\0\0\0 ftypavif"],
    ids=["PNG", "JPEG", "WebP", "AVIF"],
)
def test_a_picture_without_its_data_names_the_files_that_keep_it(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "from chat.png"
    path.write_bytes(content)
    assert not has_standard(path)
    with pytest.raises(StudioError, match=r"from chat.png has lost its data.*JSON"):
        read_standard(path)


def bare(text: str) -> bytes:
    """Return a record with a number that only Python's JSON knows."""
    return JSON.replace(b'"samples":40', b'"samples":' + text.encode())


def record(change: Callable[[dict[str, Any]], object]) -> bytes:
    run = msgspec.json.decode(JSON)
    change(run)
    return msgspec.json.encode(run)


# What takes long to make is made by the test: every worker collects the names of all tests.
HOSTILE: dict[str, bytes | Callable[[], bytes]] = {
    "cut off": JSON[:-300],
    "NaN": bare("NaN"),
    "a count of 2**64": bare(str(1 << 64)),
    "deep": b'{"schema":1,"standard":1,"devices":' + b"[" * 300_000,
    "a bomb": lambda: png(chunk(b"zTXt", KEY + b"\0\0" + zlib.compress(bytes(200 << 20)))),
    "a damaged text": png(chunk(b"zTXt", KEY + b"\0\0" + b"not deflated")),
    "a chunk that claims 2 GiB": PNG_HEAD + b"\x7f\xff\xff\xfftEXt" + KEY + b"\0{",
    "10,000 devices": lambda: record(lambda run: run.update(devices=run["devices"] * 5000)),
    "too large": lambda: record(lambda run: run.update(pc_name="x" * (2 << 20))),
    "zeros": bytes(100_000),
    "a recording cut off": FORMS["recording"][:-100],
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_bad_file_is_refused_in_one_plain_sentence(
    content: bytes | Callable[[], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "bad\u202egnp.dat"
    path.write_bytes(content() if callable(content) else content)
    has_standard(path)
    with pytest.raises(StudioError) as refused:
        read_standard(path)
    sentence = str(refused.value)
    assert sentence.isprintable()
    assert sentence.endswith(".")
    assert 20 < len(sentence) < 400


def test_the_newest_run_of_a_folder_is_shown_and_a_damaged_one_left_out(tmp_path: Path) -> None:
    folder = StandardFolder(tmp_path)
    older = msgspec.structs.replace(RUN, made_at="2026-11-21T14:40:00.000+01:00")
    for run in (RUN, older):
        folder.keep(run)
    (tmp_path / "99.json").write_bytes(JSON[:-100])
    assert folder.newest() == RUN


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.data())
def test_no_change_of_a_byte_does_more_than_refuse(form: str, data: st.DataObject) -> None:
    content = bytearray(FORMS[form])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        text = standard_in(bytes(content))
    except StudioError:
        return
    assert text is None or math.isfinite(len(text))
