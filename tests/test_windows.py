"""What Windows asks of the program, as far as the lines alone show it."""

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.test_import_boundaries import ROOT

# Those that run on one other system alone, the program that bootstrap.py starts in its own
# terminal, and what a developer starts in one (write_locks.py).
EXCEPTIONS = {
    "_name_from_sysctl", "run", "refresh_desktop", "apt_names", "apt_install", "_resolve",
}  # fmt: skip
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


def sources() -> list[Path]:
    folders = (ROOT / "gpu_studio", ROOT / "packaging")
    found = {path for folder in folders for path in folder.rglob("*.py")}
    return sorted(path for path in found if not is_for_builders(path))


def is_for_builders(path: Path) -> bool:
    """Return whether a script makes the packages, which is done on Linux alone."""
    place = path.relative_to(ROOT).as_posix()
    return place.startswith(
        (
            "packaging/studio_build/",
            "packaging/linux/",
            "packaging/build.py",
            "packaging/release.py",
        )
    )


def test_no_process_opens_a_black_window():
    found = {path: list(starts(path)) for path in sources()}
    loud = [
        f"{path.relative_to(ROOT)}:{line}"
        for path, calls in found.items()
        for function, line, keywords in calls
        if "creationflags" not in keywords and function not in EXCEPTIONS
    ]
    assert loud == []
    assert sum(map(len, found.values())) > 10


def test_a_start_without_the_flag_is_seen(tmp_path: Path):
    path = tmp_path / "one.py"
    path.write_text("def ask():\n    subprocess.run(['a'], check=False)\n", encoding="utf-8")
    assert list(starts(path)) == [("ask", 2, {"check"})]
