from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.windows import suite
from tests.windows.expected import EXPECTED
from tests.windows.suite import FOLDERS, Account, run_folder, run_folders


class ScriptedPc:
    """A PC on which each folder's tests end with one and the same text, but for those that fail."""

    def __init__(self, failing: str = "none") -> None:
        self._failing = failing
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.ended_before: dict[str, set[str]] = {}

    def run(self, command: list[str], _timeout_s: float, **_: object) -> tuple[int, str]:
        folder = "endings" if "tests/test_app.py" in command else command[-1].removeprefix("tests/")
        self.ended_before[folder] = set(self.ended)
        self.begun.append(folder)
        self.ended.append(folder)
        if folder == self._failing:
            return 1, "FAILED it\n=== 1 failed, 3 passed, 2 errors in 1.50s (0:00:01) ===\n"
        return 0, "== 40 passed, 6 skipped, 1 xfailed in 2.00s ==\n"


@pytest.mark.parametrize("failing", ["none", "engine", "endings"])
def test_a_folder_that_fails_ends_no_other_one(failing: str):
    pc = ScriptedPc(failing)
    assert run_folders(pc, Account()) is (failing == "none")
    assert sorted(pc.ended) == sorted(FOLDERS)


def test_what_counts_processes_has_the_pc_to_itself():
    pc = ScriptedPc()
    run_folders(pc, Account())
    assert pc.ended_before["endings"] == set(FOLDERS) - {"endings"}


def test_a_long_folder_is_not_begun_last(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(suite, "ThreadPoolExecutor", lambda _workers: ThreadPoolExecutor(1))
    pc = ScriptedPc()
    run_folders(pc, Account())
    assert set(pc.begun[:3]) == {"engine", "cli", "ui"}


def test_the_end_reports_every_part_and_the_sums(capsys: pytest.CaptureFixture[str]):
    account = Account()
    for folder in ("engine", "cli"):
        run_folder(ScriptedPc("cli"), folder, tell=account.tell)
    account.tell("Windows, the window: no picture\nand what it printed last")
    capsys.readouterr()
    account.tell_all()
    *parts, sums = capsys.readouterr().out.strip().splitlines()
    assert [part.partition(":")[0] for part in parts] == [
        "Windows, tests/engine",
        "Windows, tests/cli",
        "Windows, the window",
    ]
    assert sums.endswith(": 43 passed, 1 failed, 2 error, 6 skipped, 1 xfailed")


ROOT = Path(__file__).resolve().parent.parent.parent


@pytest.mark.parametrize("node", EXPECTED)
def test_a_listed_test_exists(node: str):
    file, _, name = node.partition("::")
    assert f"def {name}(" in (ROOT / file).read_text(encoding="utf-8")
