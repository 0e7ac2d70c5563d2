import json
from pathlib import Path
from typing import Any

import pytest

from tests.core.errors.test_memory_numbers import OWN, newer

MIB, GIB = 1 << 20, 1 << 30


@pytest.fixture
def type_in(typed: Any) -> Any:
    def type_in(*arguments: str) -> tuple[int, list[str], str]:
        status, output, errors = typed("explain", *arguments)
        return status, output.splitlines(), errors

    return type_in


@pytest.fixture
def explained(type_in: Any, tmp_path: Path) -> Any:
    """Return the JSON about a text."""

    def explained(content: str | bytes) -> dict[str, Any]:
        path = tmp_path / "error.txt"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        _, lines, _ = type_in(str(path), "--json")
        return json.loads(lines[-1])

    return explained


def test_the_json_has_the_numbers(explained: Any):
    processes = "Process 4711 has 1.50 GiB memory in use. " + OWN
    found = explained(newer(gpu="1", processes=processes, allowed="1.80 GiB allowed; "))
    assert (found["type"], found["schema"], found["errors"]) == ("error_explained", 1, 1)
    assert found["numbers"] == {
        "tried_bytes": 256 * MIB,
        "total_bytes": round(1.95 * GIB),
        "free_bytes": round(153.81 * MIB),
        "in_use_bytes": round(1.79 * GIB),
        "allocated_bytes": round(1.75 * GIB),
        "unallocated_bytes": 8 * MIB,
        "limit_bytes": round(1.8 * GIB),
        "processes": [{"pid": 4711, "bytes": round(1.5 * GIB)}],
    }


def test_in_words(type_in: Any, tmp_path: Path):
    path = tmp_path / "error.txt"
    path.write_text("\n".join(newer(unallocated="200.00 MiB").split(" ")))
    status, lines, _ = type_in(str(path))
    assert status == 0
    assert lines[0] == "Fragmented."
    assert any(line.strip().startswith("Allocated") for line in lines)
    assert any("two decimals" in line for line in lines)
    assert any("expandable_segments:True" in line for line in lines)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le"])
def test_what_a_shell_writes_is_read(explained: Any, encoding: str):
    assert explained(newer().encode(encoding))["numbers"]["tried_bytes"] == 256 * MIB


def test_an_error_that_is_not_known_says_what_was_recognised_and_is_in_doubt(
    type_in: Any, tmp_path: Path
):
    path = tmp_path / "error.txt"
    path.write_text("Python 3.11.9\nIndexError: list index out of range")
    status, lines, _ = type_in(str(path))
    assert status == 3
    assert "not known" in lines[0]
    assert "IndexError: list index out of range" in lines[1]
    assert "Python 3.11.9" in lines[1]


@pytest.mark.parametrize(("path", "words"), [("/no/such/file", "/no/such/file"), ("/", "folder")])
def test_a_file_that_is_none_is_wrong_use(type_in: Any, path: str, words: str):
    status, lines, notes = type_in(path)
    assert (status, lines) == (2, [])
    assert words in notes
