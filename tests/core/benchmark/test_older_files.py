"""Files of the version that had every field of a result side by side: all of them still open."""

import json
from pathlib import Path
from typing import Any

import msgspec

from gpu_studio.core.benchmark.kept_run import decode_header, decode_kept
from gpu_studio.core.benchmark.recording import decode_recording
from gpu_studio.core.benchmark.standard_record import decode_standard
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.core.race.picture_file import decode_shared

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
        assert len(kept.samples_s) == kept.result.samples
        (older,) = older_results(json.loads(content))
        check(kept.result, older)
        assert decode_header(content).result == kept.result


def test_a_recording_opens() -> None:
    content = (FILES / "race.jsonl").read_bytes()
    recording = decode_recording(content, "race.jsonl")
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
