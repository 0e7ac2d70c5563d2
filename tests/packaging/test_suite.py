from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest
from studio_setup import soft_cards, suite
from studio_setup.suite import passes, run_suite, worker_count

if TYPE_CHECKING:
    from pathlib import Path


_TOGETHER = ["-n", "2", "--dist", "loadfile", "--max-worker-restart", "0"]


@pytest.mark.parametrize(
    "typed", ["", "tests/core tests/ui -k card", "-x -q --durations=40", "-m gpu"]
)
def test_all_run_together_and_none_is_left_to_the_last_worker(typed: str):
    together = ["-n", "2", "--dist", "worksteal", "--max-worker-restart", "0"]
    assert passes(typed.split(), workers=2) == [[*typed.split(), *together]]


@pytest.mark.parametrize(
    ("typed", "rest", "chosen"),
    [
        ("", [], ""),
        ("-qx tests/core", ["-qx", "tests/core"], ""),
        ("-m old_cards tests/soft", ["tests/soft"], "(old_cards) and "),
    ],
)
def test_what_needs_quiet_runs_after_the_others(typed: str, rest: list[str], chosen: str):
    assert passes(typed.split(), workers=2, needs_quiet=True) == [
        [*rest, *_TOGETHER, "-m", f"{chosen}not alone"],
        [*rest, "-m", f"{chosen}alone"],
    ]


@pytest.mark.parametrize(
    "typed",
    [
        "tests/core/test_units.py",
        "tests/core/test_units.py::test_bytes -v",
        "-sx tests/core",
        "-n3 --dist load",
        "--junit-xml=report.xml",
    ],
)
def test_what_asks_for_one_process_runs_as_typed(typed: str):
    assert passes(typed.split(), workers=2) == [typed.split()]


def test_one_worker_is_none_at_all():
    assert passes(["tests/core"], workers=1) == [["tests/core"]]


def test_windows_runs_one_test_after_the_other(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(sys, "platform", "win32")
    assert worker_count() == 1


@pytest.mark.parametrize(
    ("cores", "memory_gib", "workers", "quiet_workers"),
    [(1, 64, 1, 1), (2, 64, 3, 2), (4, 4, 2, 2), (64, 256, 8, 8)],
)
def test_workers_share_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, cores: int, memory_gib: int, workers: int, quiet_workers: int
):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    sizes = {"SC_PAGE_SIZE": 4096, "SC_PHYS_PAGES": (memory_gib << 30) // 4096}
    monkeypatch.setattr(os, "sysconf", sizes.__getitem__, raising=False)
    assert worker_count() == workers
    assert worker_count(needs_quiet=True) == quiet_workers


@pytest.mark.parametrize(
    ("typed", "statuses", "status", "runs"),
    [
        ("", (0, 5), 0, 2),
        ("", (5, 5), 5, 2),
        ("", (1, 0), 1, 2),
        ("", (0, 1), 1, 2),
        ("-qx", (1, 0), 1, 1),
        ("--maxfail=3", (1, 0), 1, 1),
        ("", (2, 0), 2, 1),
    ],
)
def test_the_status_is_that_of_both_runs(
    monkeypatch: pytest.MonkeyPatch, typed: str, statuses: tuple[int, int], status: int, runs: int
):
    called: list[list[str]] = []

    def run(command: list[str], environ: dict[str, str]) -> int:
        assert environ == {"PYTHONDONTWRITEBYTECODE": ""}
        called.append(command)
        return statuses[len(called) - 1]

    monkeypatch.setattr(suite, "run", run)
    without_bytecode = {"PYTHONDONTWRITEBYTECODE": "1"}
    assert run_suite("python", without_bytecode, typed.split(), 2, needs_quiet=True) == status
    assert len(called) == runs


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The options of each suite that ran; environments are empty folders."""
    ran: list[list[str]] = []

    def run(
        _python: str, _environ: dict[str, str], options: list[str], *, needs_quiet: bool
    ) -> int:
        assert needs_quiet
        ran.append(options)
        return len(ran) - 1

    def set_up(_root: Path, environment: Path, *_: object) -> None:
        assert not list(environment.parent.glob(".venv-soft-*")) or not ran or _KEPT in ran[-1]
        environment.mkdir()

    monkeypatch.setattr(soft_cards, "why_skipped", lambda _: None)
    monkeypatch.setattr(soft_cards, "_set_up", set_up)
    monkeypatch.setattr(soft_cards, "run_suite", run)
    builds = [(tag, wanted, (9, 9), part) for tag, wanted, _, part in soft_cards._BUILDS]
    monkeypatch.setattr(soft_cards, "_BUILDS", builds)  # any Python will do
    return ran


_KEPT = "-k kept"


def test_the_environments_are_kept_for_the_next_run(
    suites: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert soft_cards.test_with_soft_cards(tmp_path, [_KEPT]) == 1
    assert {path.name for path in tmp_path.iterdir()} == {".venv-soft-cu130", ".venv-soft-cu126"}
    assert all(options[-1] == _KEPT for options in suites)


def test_each_environment_is_removed_before_the_next_one_is_made(
    suites: list[list[str]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk with room for one is enough then; together they took a small disk's last gigabytes."""
    monkeypatch.chdir(tmp_path)
    assert soft_cards.test_with_soft_cards(tmp_path, ["-x", soft_cards.DISCARD]) == 1
    assert not list(tmp_path.iterdir())
    assert len(suites) == 2
    assert all(options[-1] == "-x" and soft_cards.DISCARD not in options for options in suites)
