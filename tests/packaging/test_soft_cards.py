from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from studio_setup import soft_cards

if TYPE_CHECKING:
    from pathlib import Path


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
