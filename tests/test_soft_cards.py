"""What ``test --soft-cards`` runs; its own tests need gcc and 8 GB."""

from __future__ import annotations

import pytest

from tests.softcards import __main__ as soft_cards


@pytest.mark.parametrize("is_kept", [True, False])
def test_each_build_has_its_tests_and_those_that_measure_run_last(tmp_path, monkeypatch, is_kept):
    ran = []

    def run(environment, *arguments):
        ran.append((environment.name, arguments[1]))
        return 5 if arguments[1] == "old_cards and alone" else 0

    monkeypatch.setattr(soft_cards, "_ROOT", tmp_path)
    monkeypatch.setattr(soft_cards, "why_skipped", lambda: None)
    monkeypatch.setattr(soft_cards, "_set_up", lambda environment, _torch: environment.mkdir())
    monkeypatch.setattr(soft_cards, "_run", run)
    builds = [(tag, torch, (9, 9), marker) for tag, torch, _, marker in soft_cards._BUILDS]
    monkeypatch.setattr(soft_cards, "_BUILDS", builds)  # any Python will do
    assert soft_cards.main([] if is_kept else ["--discard"]) == 0
    assert ran == [
        (".venv-soft-cu130", "soft and not alone"),
        (".venv-soft-cu130", "soft and alone"),
        (".venv-soft-cu126", "old_cards and not alone"),
        (".venv-soft-cu126", "old_cards and alone"),
    ]
    assert len(list(tmp_path.iterdir())) == (2 if is_kept else 0)


def test_what_is_named_runs_as_typed():
    assert soft_cards.runs("soft", ["-k", "empty_cache"]) == [["-m", "soft", "-k", "empty_cache"]]
