"""The setup that a running window starts: it tells its progress in lines, and can be stopped."""

from __future__ import annotations

import contextlib
import io
import json
import os
import threading
from typing import TYPE_CHECKING, Any

import pytest
from studio_setup import commands
from studio_setup.commands import parse
from studio_setup.console import SetupError
from studio_setup.progress_lines import write_progress
from studio_setup.stamp import Verdict

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def stdin() -> Iterator[tuple[int, int]]:
    """The two ends of a pipe; a test may close the second."""
    ends = os.pipe()
    yield ends
    with contextlib.suppress(OSError):
        os.close(ends[1])


def _told(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_progress_is_a_line_for_each_thing_that_is_said(stdin: tuple[int, int]) -> None:
    def work(console: Any) -> None:
        console.step(3, 4, "Installing PyTorch…")
        console.detail("downloading torch", 0.5)

    stream = io.StringIO()
    assert write_progress(work, stream, stdin[0])
    assert _told(stream) == [
        {"kind": "step", "text": "3/4 Installing PyTorch…", "fraction": 0.5},
        {"kind": "detail", "text": "downloading torch 50 %", "fraction": None},
        {"kind": "done", "text": "", "fraction": 1.0},
    ]


def test_a_failure_is_the_last_line(stdin: tuple[int, int]) -> None:
    def work(_console: Any) -> None:
        raise SetupError("The disk is full.")

    stream = io.StringIO()
    assert not write_progress(work, stream, stdin[0])
    assert _told(stream) == [{"kind": "failed", "text": "The disk is full.", "fraction": None}]


def test_the_end_of_stdin_stops_what_runs(stdin: tuple[int, int]) -> None:
    stopped = threading.Event()

    def work(console: Any) -> None:
        console.stops_with(stopped.set)
        os.close(stdin[1])
        assert stopped.wait(60)
        console.note("pip was killed")

    stream = io.StringIO()
    assert not write_progress(work, stream, stdin[0])
    assert [line["kind"] for line in _told(stream)] == ["failed"]


class _Need:
    """An environment in one of the states."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict

    def judged(self) -> tuple[None, Verdict]:
        return None, self.verdict

    def is_met(self) -> bool:
        return self.verdict is Verdict.FRESH


@pytest.mark.parametrize(
    ("verdict", "kind", "status"),
    [(Verdict.FRESH, "done", 0), (Verdict.UPDATE, "done", 0), (Verdict.BUILD, "failed", 1)],
)
def test_an_environment_that_is_in_use_is_never_built_from_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    stdin: tuple[int, int],
    verdict: Verdict,
    kind: str,
    status: int,
) -> None:
    done: list[object] = []

    class SetUp:
        def __init__(self, need: object, _console: object) -> None:
            self.run = lambda: done.append(need)

    monkeypatch.setattr("studio_setup.setting_up.SetUp", SetUp)
    monkeypatch.setattr(commands, "need_of", lambda *_: _Need(verdict))
    monkeypatch.setattr("studio_setup.progress_lines._STDIN", stdin[0])
    request = ["--torch", "cu126", "--progress", "lines", "install"]
    assert parse(request).in_lines
    assert commands.run_command(tmp_path, request) == status
    assert json.loads(capsys.readouterr().out.splitlines()[-1])["kind"] == kind
    assert bool(done) is (verdict is Verdict.UPDATE)
