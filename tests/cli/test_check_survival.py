import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from gpu_studio.cli import main as cli
from gpu_studio.cli import pc
from gpu_studio.core import limits
from gpu_studio.core.check.check_folder import FOLDER_NAME, CheckFolder
from gpu_studio.core.messages.check_messages import CheckStageBegan
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.hardware.cpu import boot_mark
from tests.patience import PATIENCE_S, limit, outliving

ROOT = Path(__file__).resolve().parent.parent.parent
CPU = ["--device", "cpu", "--json"]


def next_event(program: subprocess.Popen[bytes]) -> dict[str, Any]:
    assert program.stdout is not None
    line = program.stdout.readline()
    assert line, program.communicate()[1]
    event: dict[str, Any] = json.loads(line)
    return event


def test_a_check_that_was_killed_is_a_result_of_the_next_one(
    environment: dict[str, str], tmp_path: Path
) -> None:
    """The whole program, ended at once: by SIGKILL, or by TerminateProcess on Windows."""
    program = subprocess.Popen(
        [sys.executable, "-m", "gpu_studio", "check", "--time", "480min", *CPU], cwd=ROOT,
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    try:
        while next_event(program)["type"] != "check_progressed":
            pass
    finally:
        program.kill()
        program.communicate()
    (state,) = tmp_path.rglob("*.running")
    record = CheckFolder(state.parent, boot_mark()).conclude_cut_off()
    assert record is not None
    assert "The program ended" in record.sentence


class EngineThatIsHeld(ProcessEngine):
    """The engine, whose process the system holds in the middle of a stage, as Ctrl-Z does.

    Nobody waits long for it then; one that only has little of the PC has its time.
    """

    held: psutil.Process | None = None

    def run(self, request: Request) -> Iterator[Event]:
        limits.current = limits.current._replace(check_step_s=PATIENCE_S)
        for event in super().run(request):
            if isinstance(event, CheckStageBegan) and EngineThatIsHeld.held is None:
                EngineThatIsHeld.held = psutil.Process(self.pid)
                EngineThatIsHeld.held.suspend()
                limits.current = limits.current._replace(check_step_s=0.5)
            yield event


def test_an_engine_that_is_held_is_a_pause_and_its_stage_runs_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(EngineThatIsHeld, "held", None)
    monkeypatch.setattr(pc, "ProcessEngine", EngineThatIsHeld)
    monkeypatch.setattr("platformdirs.user_data_path", lambda *_, **__: tmp_path)
    monkeypatch.setattr(cli, "_start_log", lambda: tmp_path / "log")
    limit(monkeypatch, check_step_s=PATIENCE_S)

    status = cli.main(["check", "--time", "1min", "--stage", "layouts", *CPU])

    out = capsys.readouterr().out
    end = json.loads(out.splitlines()[-1])
    assert end["type"] == "check_finished"
    assert (status, end["verdict"]) in ((0, "passed"), (3, "partial")), "a busy PC has less time"
    (record,) = CheckFolder(tmp_path / FOLDER_NAME).records()
    assert record.findings == ()
    assert len(record.pauses) == 1
    held = EngineThatIsHeld.held
    assert held is not None
    alive = outliving([held])
    assert alive == []
