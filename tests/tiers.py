"""The quick tier: all tests but the slowest, which ``tests/slow.txt`` lists as they were measured.

``--quick`` leaves them out; ``--measure`` writes the list anew from a run of the whole suite.
"""

from collections import Counter
from pathlib import Path

import pytest

SLOW = Path(__file__).with_name("slow.txt")
# Of the time of all tests, so that a list that is measured on a busy PC is the same one.
_QUICK_SHARE = 1 / 4
_HEAD = """\
# The slowest tests, in seconds for all their cases: `bootstrap.py test --quick` leaves them out.
# Written by `bootstrap.py test --measure`; a test that is not here is quick.
"""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("tiers of GPU Studio's tests")
    group.addoption("--quick", action="store_true", help="leave out the tests of tests/slow.txt")
    group.addoption("--measure", action="store_true", help="write tests/slow.txt from this run")


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("measure") and not hasattr(config, "workerinput"):  # xdist's workers
        config.pluginmanager.register(_Measuring())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("quick"):
        slow = slow_tests()
        left_out = [one for one in items if function_of(one.nodeid) in slow]
        items[:] = [one for one in items if function_of(one.nodeid) not in slow]
        config.hook.pytest_deselected(items=left_out)


def function_of(node_id: str) -> str:
    """Return a test's name without its case: ``tests/x.py::test_y``."""
    return node_id.partition("[")[0]


def slow_tests() -> set[str]:
    lines = SLOW.read_text(encoding="utf-8").splitlines()
    return {line.split()[1] for line in lines if line[:1] != "#"}


class _Measuring:
    """Adds up what each test takes with its fixtures, and writes the list at the end."""

    def __init__(self) -> None:
        self._taken_s: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self._taken_s[function_of(report.nodeid)] += report.duration

    def pytest_sessionfinish(self) -> None:
        SLOW.write_text(_HEAD + "".join(rows_of(self._taken_s)), encoding="utf-8")


def rows_of(taken_s: Counter[str]) -> list[str]:
    """Return a line for each of the slowest, as many as it takes for the rest to be quick."""
    rows, rest_s = [], taken_s.total()
    quick_s = rest_s * _QUICK_SHARE
    for name, of_it_s in taken_s.most_common():
        if rest_s <= quick_s:
            break
        rows.append(f"{of_it_s:6.1f} {name}\n")
        rest_s -= of_it_s
    return rows
