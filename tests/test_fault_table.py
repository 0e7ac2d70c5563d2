import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
_TEXT = (ROOT / "docs/development/faults.md").read_text(encoding="utf-8")
_PART = _TEXT[_TEXT.index("## The table of faults") :].split("\n## ")[0]
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in _PART.splitlines()
    if line.startswith("|") and not line.startswith("|---")
][1:]


def test_there_is_a_row_for_each_fault():
    assert [row[0] for row in ROWS] == [str(number) for number in range(1, 37)]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_a_row_names_tests_that_are_there(row: list[str]):
    _, fault, must_happen, tests = row
    assert fault
    assert must_happen
    names = re.findall(r"`(tests/[\w/]+\.py)::(test_\w+)`", tests)
    assert names
    assert len(names) == tests.count("`") / 2
    for path, function in names:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        assert function in defined, f"{path} has no {function}"
