import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpu_studio.cli import answers
from gpu_studio.cli import main as cli
from gpu_studio.core.check import check_run
from gpu_studio.core.check.check_folder import FOLDER_NAME, CheckFolder
from gpu_studio.core.messages.check_messages import CheckStageBegan
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.engine.client import ProcessEngine
from tests.patience import PATIENCE_S, outliving

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = ["--device", "cpu", "--json"]
# Its stages take 4 s each; overnight, they take minutes.
SHORT = ["--minutes", "1", "--stage", "layouts,link", *CPU]


def started(environment: dict[str, str], options: list[str]) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "gpu_studio", "check", *options], cwd=ROOT, env=environment,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip


def next_event(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, program.communicate()[1]
    event: dict[str, Any] = json.loads(line)
    return event


def read_until(program: subprocess.Popen[bytes], kind: str, stage: str) -> None:
    event = next_event(program)
    while (event["type"], event.get("stage")) != (kind, stage):
        event = next_event(program)


def kill_in_its_second_stage(program: subprocess.Popen[bytes], first: str, second: str) -> None:
    """End a program at once: SIGKILL, or TerminateProcess on Windows."""
    try:
        read_until(program, "check_stage_finished", first)
        read_until(program, "check_progressed", second)
    finally:
        program.kill()
        program.communicate()


@pytest.mark.skipif(sys.platform == "win32", reason="a Ctrl-C for another process")
def test_a_check_survives_kill_9(environment: dict[str, str]) -> None:
    """The whole program, killed in its second stage, continues with that stage."""
    kill_in_its_second_stage(started(environment, SHORT), "layouts", "link")
    second = started(environment, SHORT)
    try:
        assert next_event(second)["type"] == "check_started"
        began = next_event(second)
        assert (began["type"], began["stage"]) == ("check_stage_began", "link")
        read_until(second, "check_progressed", "link")
        second.send_signal(signal.SIGINT)
        out, err = second.communicate()
    finally:
        second.kill()
        second.wait()
    end = json.loads(out.splitlines()[-1])
    assert (end["type"], end["verdict"]) == ("check_finished", "inconclusive")
    first, second_stage = (one["verdict"] for one in end["stages"])
    assert first in ("passed", "partial"), "a busy PC has less time"
    assert second_stage == "partial"
    assert b"The program ended" in err
    assert second.returncode == 1


class EngineThatIsHeld(ProcessEngine):
    """The engine, whose process the system holds in the middle of a stage, as Ctrl-Z does.

    Nobody waits long for it then; one that only has little of the PC has its time.
    """

    held: psutil.Process | None = None

    def run(self, request: Request) -> Iterator[Event]:
        check_run.STEP_PATIENCE_S = PATIENCE_S
        for event in super().run(request):
            if isinstance(event, CheckStageBegan) and EngineThatIsHeld.held is None:
                EngineThatIsHeld.held = psutil.Process(self.pid)
                EngineThatIsHeld.held.suspend()
                check_run.STEP_PATIENCE_S = 0.5
            yield event


def test_an_engine_that_is_held_is_a_pause_and_its_stage_runs_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(EngineThatIsHeld, "held", None)
    monkeypatch.setattr(answers, "ProcessEngine", EngineThatIsHeld)
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(cli, "_start_log", lambda: tmp_path / "log")
    monkeypatch.setattr(check_run, "STEP_PATIENCE_S", PATIENCE_S)

    status = cli.main(["check", "--minutes", "1", "--stage", "layouts", *CPU])

    out = capsys.readouterr().out
    end = json.loads(out.splitlines()[-1])
    assert end["type"] == "check_finished"
    assert (status, end["verdict"]) in ((0, "passed"), (1, "partial")), "a busy PC has less time"
    (record,) = CheckFolder(tmp_path / FOLDER_NAME).records()
    assert record.findings == ()
    assert len(record.pauses) == 1
    held = EngineThatIsHeld.held
    assert held is not None
    alive = outliving([held])
    assert alive == []
