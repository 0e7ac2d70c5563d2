from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING

import bootstrap
import pytest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("version", "fits"),
    [
        ((3, 9, 18), False),
        ((3, 10, 0), True),
        ((3, 14, 2), True),
        ((3, 15, 0), False),
        ((2, 7, 18), False),
    ],
)
def test_the_python_version_is_checked(
    root: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], fits: bool
) -> None:
    interpreter = SimpleNamespace(
        version_info=version,
        executable="/some/python",
        implementation=SimpleNamespace(name="cpython"),
        maxsize=2**63 - 1,
    )
    monkeypatch.setattr(bootstrap, "sys", interpreter)
    expected = (
        "GPU Studio needs a 64-bit CPython from 3.10 to 3.14; "
        f"this is {'.'.join(map(str, version))} (/some/python)."
    )
    assert bootstrap.unfit_python(str(root)) == (None if fits else expected)


@pytest.mark.parametrize(
    ("name", "maxsize", "reason"),
    [("pypy", 2**63 - 1, "pypy"), ("cpython", 2**31 - 1, "a 32-bit one")],
)
def test_other_interpreters_are_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, maxsize: int, reason: str
) -> None:
    interpreter = SimpleNamespace(
        version_info=(3, 11, 2),
        executable="/some/python",
        implementation=SimpleNamespace(name=name),
        maxsize=maxsize,
    )
    monkeypatch.setattr(bootstrap, "sys", interpreter)
    assert f"this is {reason} (/some/python)." in bootstrap.unfit_python(str(root))


def test_an_old_python_can_read_the_first_file(root: Path) -> None:
    tree = ast.parse((root / "packaging" / "bootstrap.py").read_text(encoding="utf-8"))
    too_new = (ast.JoinedStr, ast.AnnAssign, ast.NamedExpr, ast.Match, ast.AsyncFunctionDef)
    assert [node for node in ast.walk(tree) if isinstance(node, too_new)] == []
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    assert [f.name for f in functions if f.returns or any(a.annotation for a in f.args.args)] == []
    imported = [node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    assert imported == ["studio_setup.commands"]


def test_a_missing_table_is_a_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    assert bootstrap.main() == 1
    assert "resources/wheels.json is missing or broken" in capsys.readouterr().err


def test_the_clickable_scripts_know_the_same_python_versions(root: Path) -> None:
    table = json.loads((root / "resources" / "wheels.json").read_text(encoding="utf-8"))
    oldest, newest = table["python"]["oldest"], table["python"]["newest"]
    check = f"({oldest[0]}, {oldest[1]}) <= sys.version_info[:2] <= ({newest[0]}, {newest[1]})"
    words = f"Python {oldest[0]}.{oldest[1]} to {newest[0]}.{newest[1]}"
    names = [f"3.{minor}" for minor in range(newest[1], oldest[1] - 1, -1)]
    for script, prefix in (("gpu-studio.sh", "python"), ("GPU Studio.bat", "")):
        text = (root / "packaging" / script).read_text(encoding="utf-8")
        assert check in text
        assert words in text
        assert " ".join(prefix + name for name in names) in text


def test_the_batch_file_has_windows_line_ends(root: Path) -> None:
    content = (root / "packaging" / "GPU Studio.bat").read_bytes()
    assert re.findall(rb"(?<!\r)\n", content) == []
    assert content.count(b"\r\n") > 10


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script")
def test_the_shell_script_is_one(root: Path) -> None:
    script = root / "packaging" / "gpu-studio.sh"
    assert script.stat().st_mode & 0o111
    assert subprocess.run(["sh", "-n", str(script)], check=False).returncode == 0
