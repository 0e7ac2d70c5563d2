"""The runs that people added: each file in the folder, planted good and bad ones, and your card."""

from __future__ import annotations

import re
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import msgspec
import pytest

from gpu_studio.core.benchmark import public_runs as module
from gpu_studio.core.benchmark.public_runs import (
    FEWEST_OF_A_HALF,
    FOLDER,
    doubts_about,
    public_runs,
    standing_among,
)
from gpu_studio.core.benchmark.standard_record import decode_standard, encode_standard
from gpu_studio.core.failure import StudioError
from tests.core.benchmark.standard_runs import paced_device, standard_run

_NOW = datetime(2026, 12, 1, tzinfo=timezone.utc)
_NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*\.json")
_ROOT = Path(__file__).resolve().parents[3]


def problems_in(folder: Path, now: datetime) -> list[str]:
    """Return what is wrong with the files in a folder of runs."""
    found: list[str] = []
    seen: dict[bytes, str] = {}
    for path in sorted(folder.iterdir()):
        if path.name == "README.md":
            continue
        if not _NAME.fullmatch(path.name):
            found.append(f"{path.name}: small letters, digits and hyphens, and .json")
        try:
            run = decode_standard(path.read_bytes(), path.name)
        except StudioError as error:
            found.append(str(error))
            continue
        found += [f"{path.name}: {doubt}" for doubt in doubts_about(run, now)]
        content = encode_standard(run)
        if content in seen:
            found.append(f"{path.name} is the same run as {seen[content]}")
        seen[content] = path.name
    return found


def test_every_run_in_the_folder_is_plausible() -> None:
    now = datetime.now(timezone.utc)
    assert not problems_in(_ROOT / "resources" / FOLDER, now)


def good(pace: float = 1.0, **changes: Any) -> Any:
    """Return a plausible run of a card, with other fields of its results."""
    card = paced_device("NVIDIA GeForce GTX 1060", pace, **{"share_of_ceiling": 0.8, **changes})
    rate = 4.6e12 * pace
    load = msgspec.structs.replace(
        card.load, first_rate=rate, steady_rate=0.95 * rate, ci95=(0.94, 0.96)
    )
    return standard_run(msgspec.structs.replace(card, load=load))


def with_card(run: Any, **changes: Any) -> Any:
    return msgspec.structs.replace(
        run, devices=(msgspec.structs.replace(run.devices[0], **changes),)
    )


def with_load(run: Any, **changes: Any) -> Any:
    return with_card(run, load=msgspec.structs.replace(run.devices[0].load, **changes))


BAD = {
    "no driver": (with_card(good(), driver=None), "driver"),
    "no PyTorch": (with_card(good(), build=""), "PyTorch"),
    "no load": (with_card(good(), load=None), "load"),
    "a short load": (with_load(good(), seconds=3.0), "load"),
    "no clock": (with_load(good(), steady_clock_mhz=None), "clock"),
    "a throttled load": (with_load(good(), was_throttled=True), "slowed"),
    "a load of another card": (with_load(good(), first_rate=9e13, steady_rate=9e13,
                                         ci95=(0.9, 1.1)), "contradicts"),
    "over its ceiling": (good(share_of_ceiling=1.4), "over its ceiling"),
    "no ceiling": (good(share_of_ceiling=None), "no ceiling"),
    "wrong": (good(verified=False), "wrong"),
    "few rounds": (good(rounds_s=()), "rounds"),
    "a throttled result": (good(throttled=True), "slowed"),
    "a busy PC": (good(other_processes=True), "other programs"),
    "a recording": (good(recording="somebody's"), "recording"),
    "a name": (msgspec.structs.replace(good(), pc_name="Ana's PC"), "name"),
    "the future": (msgspec.structs.replace(good(), made_at="2031-01-01T00:00:00+00:00"), "future"),
    "no card": (standard_run(paced_device("Ryzen", device="cpu")), "no card"),
}  # fmt: skip


def test_a_good_file_passes_and_the_same_one_again_does_not(tmp_path: Path) -> None:
    (tmp_path / "geforce-gtx-1060.json").write_bytes(encode_standard(good()))
    (tmp_path / "geforce-gtx-1060-2.json").write_bytes(encode_standard(good(1.05)))
    assert problems_in(tmp_path, _NOW) == []
    (tmp_path / "Same Run.json").write_bytes(encode_standard(good()))
    (tmp_path / "cut-off.json").write_bytes(encode_standard(good())[:-9])
    problems = problems_in(tmp_path, _NOW)
    assert len(problems) == 3
    assert any("is the same run as" in problem for problem in problems)


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_is_found(name: str, tmp_path: Path) -> None:
    run, reason = BAD[name]
    (tmp_path / "bad.json").write_bytes(encode_standard(run))
    problems = problems_in(tmp_path, _NOW)
    assert any(reason in problem for problem in problems)


def test_a_wide_interval_is_found() -> None:
    run = msgspec.to_builtins(good())
    result = run["devices"][0]["figures"][0]["result"]
    result["ci95_s"] = (0.5 * result["median_s"], 1.5 * result["median_s"])
    assert "wider" in doubts_about(msgspec.convert(run, type(good())), _NOW)[0]


def test_your_card_stands_among_enough_others_only() -> None:
    own = good().devices[0]
    assert standing_among(own, ()) == ""
    paces = [0.90, 0.95, 0.99, 1.0, 1.01, 1.05, 1.10]
    assert len(paces) == FEWEST_OF_A_HALF
    others = [good(pace, torch_version=str(pace)) for pace in paces]
    few = standing_among(own, others[:6])
    assert few.startswith("PCs with your card: 6.")
    assert "half." not in few
    assert standing_among(own, others) == "PCs with your card: 7, yours is in the middle half."
    slow = standing_among(good(0.92).devices[0], others).replace("\u202f", " ")
    assert slow == "PCs with your card: 7, yours is 8.0 % below their middle."
    assert "above" in standing_among(good(1.2).devices[0], others)


def test_another_card_and_your_own_run_are_not_among_them() -> None:
    own = good().devices[0]
    others = [
        standard_run(msgspec.structs.replace(own, memory_total_bytes=6 << 30)),
        standard_run(msgspec.structs.replace(own, name="NVIDIA GeForce GTX 1070")),
        standard_run(msgspec.structs.replace(own, silicon="GP104 (1b83)")),
        standard_run(own),
    ]
    assert standing_among(own, others) == ""


def test_a_file_that_cannot_be_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.json").write_bytes(encode_standard(good()))
    (tmp_path / "b.json").write_bytes(b"{")
    monkeypatch.setattr(
        module, "resource_files", lambda _folder, ending: tuple(tmp_path.glob(f"*{ending}"))
    )
    assert public_runs() == (good(),)
