import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpu_studio.cli import check
from gpu_studio.core.check.check_file import read_record
from gpu_studio.core.check.check_folder import FOLDER_NAME, CheckFolder
from gpu_studio.core.check.stages import stages_for
from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.check_messages import RunCheck
from gpu_studio.core.messages.engine_messages import (
    DescribeEngine,
    RequestFailed,
)
from tests.fakes.check_answers import answer_with, check_round, check_until, requests_of, wrong_bit
from tests.fakes.descriptions import described, described_with_cuda
from tests.fakes.scripted_engine import Engines, Pause
from tests.patience import limit

Typed = Callable[..., tuple[int, str, str]]


BOOT = "11111111-2222"


@pytest.fixture
def engines(engines_of: Any, monkeypatch: pytest.MonkeyPatch) -> Engines:
    """A PC with a card whose checks find nothing."""
    monkeypatch.setattr(check, "boot_mark", lambda: BOOT)
    return engines_of(
        {
            DescribeEngine: [described_with_cuda()],
            RunCheck: lambda _engine, request: check_round(request),
        }
    )


@pytest.fixture
def type_in(engines: Engines, typed: Any) -> Typed:
    def type_in(*arguments: str) -> tuple[int, str, str]:
        status, output, errors = typed("check", *arguments)
        return status, output.replace("\u202f", " "), errors

    return type_in


def last_line(out: str) -> dict[str, Any]:
    last: dict[str, Any] = json.loads(out.splitlines()[-1])
    return last


def test_a_pass_is_0_and_its_record_is_saved_for_a_buyer(
    type_in: Typed, engines: Engines, tmp_path: Path
) -> None:
    path = tmp_path / "record.png"
    status, out, err = type_in("--save", str(path))
    assert status == 0
    assert [one.device for one in requests_of(engines)] == ["cuda:0"]
    for text in (
        "GT 1030", "GP108", "86.08.0C.00.1D", "63 °C", "1.37 GiB", "can be forged",
        "What this record cannot rule out", "errors (passed).", "next: ",
    ):  # fmt: skip
        assert text in out
    assert str(path) in err
    assert read_record(path).verdict == "passed"


def test_the_last_line_of_json_is_the_end(type_in: Typed, engines: Engines) -> None:
    answer_with(engines, findings={"memory": (wrong_bit(),)})
    status, out, _ = type_in("--json", "--stage", "memory,load", "--plant", "bit")
    assert status == 1
    end = last_line(out)
    shown = ["type", "schema", "device", "verdict", "stages", "planted", "next_action"]
    assert list(end) == shown
    assert (end["type"], end["device"], end["verdict"]) == ("check_finished", "cuda:0", "failed")
    assert end["planted"] == "bit"
    assert [one["name"] for one in end["stages"]] == ["load", "memory"]
    assert list(end["stages"][1]) == ["name", "verdict", "tested", "errors", "seconds"]
    assert end["stages"][1]["errors"] == 1
    kinds = [json.loads(line)["type"] for line in out.splitlines()]
    assert kinds[0] == "check_started"
    assert json.loads(out.splitlines()[0])["fingerprint"] == "", "it identifies the card"
    assert {"check_vitals_read", "check_progressed", "check_finding_made"} < set(kinds)


def test_without_a_card_the_cpu_is_checked(type_in: Typed, engines: Engines) -> None:
    engines.scripts[DescribeEngine] = [described()]
    status, out, err = type_in("--time", "1min")
    assert (status, requests_of(engines)[0].device) == (0, "cpu")
    assert "CPU" in err
    assert "RAM" in out


def test_a_fault_made_on_purpose_is_marked_and_not_kept(type_in: Typed, tmp_path: Path) -> None:
    _, out, _ = type_in("--plant", "bit")
    assert "on purpose" in out
    assert not (tmp_path / FOLDER_NAME).exists()


@pytest.mark.parametrize(
    ("arguments", "word"),
    [(["--time", "2min"], "480"), (["--stage", "load,heat"], "heat"), (["--stage", ","], "layouts"),
     (["--plant", "mouse"], "throttle")],
)  # fmt: skip
def test_wrong_use_is_one_sentence(type_in: Typed, arguments: list[str], word: str) -> None:
    status, out, err = type_in(*arguments)
    assert (status, out) == (2, "")
    assert word in err
    assert len(err.splitlines()) == 1


LOST = Failure(
    FailureKind.CUDA_ERROR, "The card stopped with an error: launch failure.", "Traceback x", True
)


def test_a_lost_card_is_a_result_without_a_stack_trace(type_in: Typed, engines: Engines) -> None:
    def lose(_engine: object, request: RunCheck) -> Any:
        yield from check_round(request, end_in="compute")
        yield RequestFailed(failure=LOST)

    engines.scripts[RunCheck] = lose
    status, out, err = type_in("--json")
    end = last_line(out)
    verdicts = [one["verdict"] for one in end["stages"]]
    assert (status, end["verdict"]) == (1, "failed")
    assert verdicts == ["passed", "failed", *["skipped"] * 3]
    assert "Traceback" not in out + err


def test_a_card_that_hangs_is_abandoned_and_failed(
    type_in: Typed, engines: Engines, monkeypatch: pytest.MonkeyPatch
) -> None:
    def hang(_engine: object, request: RunCheck) -> Any:
        yield from check_round(request, end_in="link")
        yield Pause(deaf=True)

    limit(monkeypatch, check_step_s=0.3)
    engines.scripts[RunCheck] = hang
    status, out, _ = type_in()
    assert status == 1
    assert "stopped answering" in out
    assert engines.made[-1].was_abandoned


def test_a_restart_of_the_pc_is_reported_and_a_result(
    type_in: Typed, engines: Engines, tmp_path: Path
) -> None:
    folder = CheckFolder(tmp_path / FOLDER_NAME, "another start")
    folder.keep_progress("one", check_until("memory").record(), "card one")
    _, _, err = type_in("--time", "1min")
    assert "The PC restarted" in err
    assert "power supply" in err
    assert requests_of(engines)[0].stages == stages_for(1, "cpu")
    values = {record.verdict: record for record in folder.records()}
    assert set(values) == {"passed", "inconclusive"}
    assert values["inconclusive"].interruptions[0].is_restart


def test_two_checks_at_once_are_refused(type_in: Typed, engines: Engines, tmp_path: Path) -> None:
    running = CheckFolder(tmp_path / FOLDER_NAME, BOOT)
    assert running.claim()
    status, _, err = type_in()
    running.release()
    assert (status, "Another check" in err) == (1, True)
    assert not requests_of(engines)


def test_a_folder_that_cannot_be_written_is_reported_once(type_in: Typed, tmp_path: Path) -> None:
    (tmp_path / FOLDER_NAME).write_text("a file where the folder should be")
    status, _, err = type_in()
    assert (status, err.count("could not be kept")) == (0, 2)  # the state, and the result
