import ast
import re
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.breaks import ROOT, breaks, is_found
from tests.softcards import __main__ as soft_cards
from tests.tiers import rows_of, slow_tests

TESTS = Path(__file__).resolve().parent
# Collected by a run of their own, or no tests at all.
APART = {"bench", "gpu", "soft", "softcards"}
# What each of them may sleep for; everything else waits for a signal or a condition.
SLEEPERS = {
    "patience.py": "between two looks at what another process does",
    "windows/wine_pc.py": "between two looks at the processes of Windows",
    "engine/scripted_child.py": "plays an engine, which beats by the clock",
}


def test_no_folder_is_left_out_of_a_run_because_of_its_name(pytestconfig: pytest.Config):
    patterns = [one for one in pytestconfig.getini("norecursedirs") if not one.startswith(".")]
    left_out = {
        folder.relative_to(TESTS).as_posix()
        for folder in TESTS.rglob("*/")
        if folder.is_dir() and any(folder.match(pattern) for pattern in patterns)
    }
    assert left_out == APART


def fixed_waits(source: str) -> list[str]:
    """Return the calls in a program that wait for so long and not for something."""
    if not re.search(r"sleep|\.wait\(|qWait|qSleep", source):
        return []
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [
        called
        for called in (ast.unparse(call.func) for call in calls)
        if called.endswith(("time.sleep", "qtbot.wait", ".qWait", ".qSleep"))
    ]


def test_no_test_waits_for_a_fixed_time():
    waits = {
        path.relative_to(TESTS).as_posix(): set(fixed_waits(path.read_text(encoding="utf-8")))
        for path in TESTS.rglob("*.py")
    }
    found = {path: calls for path, calls in waits.items() if calls}
    assert found == {path: {"time.sleep"} for path in SLEEPERS}


@pytest.mark.parametrize(
    "line", ["qtbot.wait(20)", "self._qtbot.wait(ms)", "time.sleep(0.1)", "QTest.qWait(50)"]
)
def test_a_fixed_wait_is_found(line: str):
    assert len(fixed_waits(f"def test():\n    {line}\n    qtbot.waitUntil(lambda: True)\n")) == 1


def test_the_quick_tier_is_a_quarter_of_the_time():
    taken_s = Counter({"tests/a.py::test_a": 8.0, "tests/a.py::test_b": 1.0, "tests/b.py": 1.0})
    assert rows_of(taken_s) == ["   8.0 tests/a.py::test_a\n"]


def test_the_list_of_slow_tests_is_that_of_this_suite():
    """Where a tenth of them are gone or renamed, measure again: `bootstrap.py test --measure`."""
    slow = slow_tests()
    there = {
        f"{path.relative_to(TESTS.parent).as_posix()}::{name}"
        for path in {TESTS.parent / one.partition("::")[0] for one in slow}
        if path.exists()
        for name in re.findall(r"^def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert len(slow & there) > 0.9 * len(slow), slow - there


def test_quick_leaves_the_slow_tests_out():
    asked = [sys.executable, "-m", "pytest", "--co", "-q", "--quick", "tests/test_random_walk.py"]
    ended = subprocess.run(asked, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert "test_the_walk_notes_memory_that_is_never_freed" in ended.stdout
    assert "test_hundreds_of_steps_with_a_real_engine" not in ended.stdout


@pytest.mark.parametrize("one", breaks(), ids=lambda one: f"{one.file}: {one.text.split()[0]}")
def test_each_break_still_has_its_place_and_its_tests(one) -> None:
    assert is_found(one)
    assert one.text != one.change
    assert all((ROOT / name.partition("::")[0]).exists() for name in one.tests)
    assert len(breaks()) >= 60


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
