"""What Windows asks of the program, as far as the lines alone show it.

The scripts of `packaging` run in a terminal of their user's.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_import_boundaries import ROOT

# It runs on one other system alone; and a user's program keeps the terminal that it is started in.
EXCEPTIONS = {"_name_from_sysctl", "start_program"}
STARTERS = ("run", "Popen", "call", "check_output", "check_call")


def starts(path: Path) -> Iterator[tuple[str, int, set[str | None]]]:
    """Yield function, line and keywords of each call of `subprocess` in a file."""
    source = path.read_text(encoding="utf-8")
    for function in ast.walk(ast.parse(source)) if "subprocess" in source else ():
        if not isinstance(function, ast.FunctionDef):
            continue
        for call in ast.walk(function):
            match call:
                case ast.Call(func=ast.Attribute(value=ast.Name(id="subprocess"), attr=name)) if (
                    name in STARTERS
                ):
                    yield function.name, call.lineno, {one.arg for one in call.keywords}


def test_no_process_opens_a_black_window():
    found = {path: list(starts(path)) for path in (ROOT / "gpu_studio").rglob("*.py")}
    loud = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, calls in found.items()
        for function, line, keywords in calls
        if "creationflags" not in keywords and function not in EXCEPTIONS
    ]
    assert loud == []
    assert sum(map(len, found.values())) > 3


def test_a_start_without_the_flag_is_seen(tmp_path: Path):
    path = tmp_path / "one.py"
    path.write_text("def ask():\n    subprocess.run(['a'], check=False)\n", encoding="utf-8")
    assert list(starts(path)) == [("ask", 2, {"check"})]
