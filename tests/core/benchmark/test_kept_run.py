import json
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpu_studio.core.benchmark.kept_run import (
    LONGEST_NAME,
    clean_name,
    decode_header,
    decode_kept,
    encode_kept,
    kept_of,
)
from gpu_studio.core.benchmark.recording import decode_recording
from gpu_studio.core.benchmark.standard_record import decode_standard
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.race_messages import RaceOutcome
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.race.picture_file import decode_shared
from tests.core.benchmark.kept_runs import KEPT_AT, finished_run, kept_run
from tests.core.race.racing import CARD, over
from tests.fakes.run_answers import changed


def test_a_kept_run_reads_back_as_the_run_that_was_kept() -> None:
    changes = {"options": {"amp": "on"}, "cache": "cold", "transfers": True, "sustained": True}
    kept = kept_of(finished_run(512, "cuda:0", budget_s=20.0, **changes), KEPT_AT)
    assert decode_kept(encode_kept(kept)) == kept


def test_a_list_needs_no_samples() -> None:
    kept = kept_run()
    header = decode_header(encode_kept(kept))
    assert (header.result, header.kept_at, header.budget_s) == (kept.result, KEPT_AT, 2.0)


def altered(**changes: Any) -> bytes:
    """Return a file whose JSON was changed; a key ``result__times__x`` is inside a part of it."""
    content = json.loads(encode_kept(kept_run())) | {"sha256": ""}
    for name, value in changes.items():
        *places, field = name.split("__")
        part = content
        for place in places:
            part = part.setdefault(place, {})
        part[field] = value
    return json.dumps(content).encode()


def samples(*values: float) -> str:
    import base64

    return base64.b64encode(np.array(values, "<f8").tobytes()).decode()


def of_a_race(seconds: float, steps: int = 200, **changes: Any) -> bytes:
    """Return a file with a race's run of 200 steps of 10 ms, with changes."""
    kept = kept_of(over(CARD, 0.01), KEPT_AT)
    outcome = RaceOutcome(reached=True, steps=steps, seconds=seconds, measure=30.0, progress=1.0)
    result = changed(kept.result, outcome=outcome, **changes)
    return encode_kept(msgspec.structs.replace(kept, result=result))


DEEP = b'{"schema":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
HOSTILE: dict[str, tuple[bytes, str]] = {
    "empty": (b"", "damaged"),
    "truncated": (encode_kept(kept_run())[:-40], "damaged"),
    "two files in one": (encode_kept(kept_run()) * 2, "damaged"),
    "another program's": (b'{"results": []}', "damaged"),
    "invalid UTF-8": (b'{"schema":1,"name":"\xff\xfe"}', "damaged"),
    "a lone surrogate": (altered(name="\ud800"), "damaged"),
    "later schema": (altered(schema=2), "newer GPU Studio"),
    "a schema that never was": (altered(schema=0), "schema number is invalid"),
    "NaN": (altered(result__median_s=float("nan")), "damaged"),
    "text for a number": (altered(result__median_s="fast"), "damaged"),
    "no time at all": (altered(result__median_s=0.0), "out of range"),
    "a time that has no inverse": (
        altered(result__median_s=5e-324, result__ci95_s=[5e-324, 1.0]), "out of range",
    ),
    "an interval elsewhere": (altered(result__ci95_s=[1.0, 2.0]), "does not contain its median"),
    "a negative part": (altered(result__details__parts_s={"compute": -1.0}), "out of range"),
    "a very long curve": (
        altered(result__details__curves={"loss": [1.0] * 200_000}), "curve that is",
    ),
    "a curve beyond any plot": (
        altered(result__details__curves={"loss": [-1e308, 1e308]}), "out of range",
    ),
    "a negative size": (altered(result__size=-64), "size is invalid"),
    "an endless speed": (altered(result__throughput=1e300), "out of range"),
    "very many calls": (altered(result__calls_per_sample=2**63 - 1), "out of range"),
    "samples of ages": (altered(samples=samples(*[1e300] * 40)), "not a time"),
    "a budget of nothing": (altered(budget_s=0), "time budget"),
    "a very long text": (altered(result__verification="x" * 5000), "too long"),
    "very many options": (
        altered(result__options={str(number): "x" for number in range(5000)}), "list that is",
    ),
    "deeply nested": (DEEP, "too deeply"),
    "another kind of event": (altered(result__type="run_failed"), "damaged"),
    "samples that are no base64": (altered(samples="!!!"), "damaged"),
    "samples cut off": (altered(samples="AAAA"), "cut off"),
    "NaN samples": (altered(samples=samples(*[float("nan")] * 40)), "not a time"),
    "fewer samples than told": (altered(samples=samples(1.0)), "1 samples instead of 40"),
    "samples of another run": (altered(samples=samples(*[1.0] * 40)), "contradict its median"),
    "a race of few samples": (of_a_race(2.0, timed_s=1.9, calls_per_sample=1), "its samples"),
    "a race faster than its steps": (of_a_race(0.5), "contradict the steps and their median"),
    "a race slower than its steps": (of_a_race(999.0), "contradict the steps and their median"),
    "a race timed otherwise": (of_a_race(2.0, timed_s=0.5), "contradict its timed seconds"),
    "a race whose way goes back": (
        of_a_race(2.0, curves={"seconds": (0.0, 3.0, 2.0)}), "contradicts the seconds of its race",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_with_one_sentence(name: str) -> None:
    content, reason = HOSTILE[name]
    with pytest.raises(StudioError) as caught:
        decode_kept(content)
    sentence = str(caught.value)
    assert caught.value.kind is FailureKind.FILE_REFUSED
    assert sentence.startswith("This file is refused: ")
    assert sentence.endswith(".")
    assert len(sentence) < 160
    assert reason in sentence


@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_content_does_more_than_be_refused(content: bytes) -> None:
    with pytest.raises(StudioError):
        decode_kept(content)


WRITTEN = encode_kept(kept_run())


@given(st.integers(0, len(WRITTEN) - 2), st.integers(0, 255))
def test_a_changed_byte_is_noticed(position: int, value: int) -> None:
    content = bytearray(WRITTEN)
    content[position] = value
    try:
        kept = decode_kept(bytes(content))
    except StudioError:
        return
    assert bytes(content) == WRITTEN or kept.is_unchecked


def test_a_run_without_a_checksum_says_so_for_good() -> None:
    assert not decode_kept(WRITTEN).is_unchecked
    old = decode_kept(altered())
    assert old.is_unchecked
    assert decode_header(encode_kept(old)).is_unchecked, "also if it was renamed"


def test_texts_from_outside_are_one_line_without_control_characters() -> None:
    nasty = "<img onerror=alert(1)>\n\x1b[2J\u202eevil\x00"
    kept = msgspec.structs.replace(kept_run(device_name=nasty, findings=(nasty,)), name=nasty)
    read = decode_kept(encode_kept(kept))
    for text in (read.name, read.result.device_name, *read.result.details.findings):
        assert "<img onerror=alert(1)>" in text  # shown as it is, as plain text
        assert not {"\n", "\x1b", "\x00", "\u202e"} & set(text)


def test_a_name_is_short_and_one_line() -> None:
    assert clean_name("  before \n the\tupdate ") == "before the update"
    assert len(clean_name("x" * 5000)) == LONGEST_NAME


def test_fields_of_a_later_release_are_skipped() -> None:
    assert decode_kept(altered(mood="good", result__colour=[{"deep": 1}])).result.size == 64


def test_a_run_without_samples_is_a_result_alone() -> None:
    assert decode_kept(altered(samples="")).samples == b""


def test_a_race_with_stalls_and_pauses_between_batches_is_no_contradiction() -> None:
    """200 steps of 10 ms with one that stalled for 3 s."""
    stalled = decode_header(of_a_race(5.0, timed_s=4.9)).result
    assert stalled.outcome is not None
    assert stalled.outcome.seconds == 5.0


FILES = Path(__file__).parent / "older"


def older_results(value: Any) -> list[dict[str, Any]]:
    """Return the results in decoded JSON, in their order."""
    if isinstance(value, list):
        return [found for one in value for found in older_results(one)]
    if not isinstance(value, dict):
        return []
    if value.get("type") == "run_finished":
        return [value]
    return [found for one in value.values() for found in older_results(one)]


def flat(result: RunFinished) -> dict[str, Any]:
    """Return the fields of a result as the older version had them, without those unknown."""
    fields = json.loads(msgspec.json.encode(result))
    for part in ("times", "conditions", "details"):
        fields |= fields.pop(part, {})
    reached = fields.pop("reached", {})
    return fields | {"share_of_ceiling" if k == "share" else k: v for k, v in reached.items()}


def check(result: RunFinished, older: dict[str, Any]) -> None:
    said = {name: value for name, value in older.items() if value not in (None, "", [], {}, False)}
    shown = {name: value for name, value in flat(result).items() if value not in ("", [], {})}
    del said["p99_s"]  # the samples say it
    if "race" in shown:  # a race's parameters have lost two since then
        said["race"] = {name: said["race"][name] for name in shown["race"]}
    assert shown == said


def test_a_kept_run_opens_with_everything_in_it() -> None:
    for name in ("kept_run.json", "kept_race.json"):
        content = (FILES / name).read_bytes()
        kept = decode_kept(content)
        assert len(kept.samples) == 8 * kept.result.samples
        (older,) = older_results(json.loads(content))
        check(kept.result, older)
        assert decode_header(content).result == kept.result


def test_a_recording_opens() -> None:
    content = (FILES / "race.jsonl").read_bytes()
    recording = decode_recording(content)
    lines = [json.loads(line) for line in content.splitlines()]
    for run, older in zip(recording.runs, older_results(lines), strict=True):
        assert run.result is not None
        check(run.result, older)


def test_a_standard_run_opens() -> None:
    content = (FILES / "standard_run.json").read_bytes()
    (device,) = decode_standard(content).devices
    results = [figure.result for figure in device.figures if figure.result is not None]
    for result, older in zip(results, older_results(json.loads(content)), strict=True):
        check(result, older)


def test_the_picture_of_a_race_opens() -> None:
    text = (FILES / "race_picture.json").read_text()
    shared = decode_shared(text)
    results = [run.result for run in shared.runs if run.result is not None]
    for result, older in zip(results, older_results(json.loads(text)), strict=True):
        check(result, older)
