"""The folder is the permission: every import inside the program runs along one of these arrows."""

import ast
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "gpu_studio"

# folder → the folders of the program that it may import. app and cli are the composition roots.
ARROWS = {
    "core": set(),
    "process": set(),
    "builds": {"core", "process"},
    "hardware": {"core", "process"},
    "engine": {"core", "process"},
    "line": {"core", "engine", "hardware", "process"},
    "model": {"core", "process"},
    "ui": {"core", "model"},
    "app": {"builds", "core", "engine", "hardware", "line", "model", "process", "ui"},
    "cli": {"builds", "core", "engine", "hardware", "line", "process"},
    "__main__": {"app", "cli", "core"},
}
# The child's composition root hands the sensor to the timing.
EXCEPTIONS = {("engine/serve.py", "hardware")}
# third party package → who may name it.
THIRD_PARTY = {
    "torch": {"engine"},
    "pynvml": {"hardware"},
    "psutil": {"hardware", "engine"},
    "PySide6": {"model", "ui", "app"},
    "pyqtgraph": {"ui"},
    "shiboken6": {"ui"},
    "numpy": {"core", "engine", "ui"},
    "msgspec": {"builds", "core", "engine", "hardware", "line", "model", "cli"},
    "platformdirs": {"app", "cli"},
    "wgpu": {"engine"},
}
QT_OF_THE_MODEL = {"PySide6.QtCore"}
WITHOUT_TORCH = {"client.py", "probe_client.py", "recorded_engine.py"}


# What is imported by its path, such as a page on its first use: "gpu_studio.ui.tank:TankBar".
LATE = re.compile(r"(gpu_studio(?:\.\w+)+):(\w+)")


@cache
def imports(path: Path) -> list[tuple[str, int]]:
    """Return (dotted name, line) of every import in a file, wherever it stands."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found += [(alias.name, node.lineno) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: a relative import hides its arrow"
            module = node.module or ""
            is_package = (ROOT / module.replace(".", "/")).is_dir()
            names = [f"{module}.{alias.name}" for alias in node.names] if is_package else [module]
            found += [(name, node.lineno) for name in names]
        elif isinstance(node, ast.Constant) and (late := LATE.fullmatch(str(node.value))):
            found.append((late[1], node.lineno))
    return found


def folder_of(dotted: str) -> str:
    parts = dotted.split(".")
    return parts[1] if len(parts) > 1 else ""


SOURCES = sorted(PACKAGE.rglob("*.py"))


def test_the_folders_are_those_of_the_design():
    folders = {p.stem if p.is_file() else p.name for p in PACKAGE.iterdir()}
    assert folders - {"__init__", "__pycache__", "py"} == set(ARROWS)  # py.typed


def wrong_arrows(path):
    """Return the imports of a file that its folder does not allow, each with its line."""
    relative = path.relative_to(PACKAGE).as_posix()
    home = relative.split("/")[0].removesuffix(".py")
    if home == "__init__":
        return []
    return [
        f"{relative}:{line} imports {name}"
        for name, line in imports(path)
        if not _is_allowed(name, path.name, relative, home)
    ]


def _is_allowed(name, file_name, relative, home):
    top = name.split(".")[0]
    if top == "gpu_studio":
        target = folder_of(name)
        return target == home or target in ARROWS[home] or (relative, target) in EXCEPTIONS
    if top not in THIRD_PARTY:
        return True
    return (
        home in THIRD_PARTY[top]
        and (top != "PySide6" or home != "model" or name in QT_OF_THE_MODEL)
        and (top != "torch" or file_name not in WITHOUT_TORCH)
    )


def test_imports_follow_the_arrows():
    assert [where for path in SOURCES for where in wrong_arrows(path)] == []


def test_what_is_imported_by_its_path_is_there():
    paths = [
        late.groups()
        for source in (path.read_text(encoding="utf-8") for path in SOURCES)
        if LATE.search(source)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Constant) and (late := LATE.fullmatch(str(node.value)))
    ]
    assert len(paths) >= 12
    for module, name in paths:
        file = ROOT / f"{module.replace('.', '/')}.py"
        body = ast.parse(file.read_text(encoding="utf-8")).body
        assert name in {getattr(node, "name", "") for node in body}, f"{module}:{name}"


def test_no_file_asks_pythons_platform_which_starts_a_process_on_windows():
    asking = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "platform" in {name for name, _ in imports(path)}
    ]
    assert asking == []


def test_packages_are_empty():
    for path in PACKAGE.rglob("__init__.py"):
        body = ast.parse(path.read_text(encoding="utf-8")).body
        assert all(isinstance(node, ast.Expr) for node in body), path


def test_only_app_names_the_real_engine_and_the_sensor_reader_for_the_window():
    for path in (*PACKAGE.glob("model/**/*.py"), *PACKAGE.glob("ui/**/*.py")):
        text = path.read_text(encoding="utf-8")
        assert "ProcessEngine" not in text, path
        assert "SensorReader" not in text, path


# layer → room → the rooms of the same layer that it may import; what stands in no room is free.
ROOMS = {
    "core": {
        "builds": set(),
        "messages": set(),
        "devices": {"messages"},
        "benchmark": {"messages", "devices"},
        "memory": {"messages", "devices"},
        "errors": {"devices", "memory"},
        "switcher": {"messages", "devices"},
        "race": {"messages", "devices", "benchmark"},
        "check": {"messages", "devices"},
        "pythons": {"devices"},
    },
    # Only the table of them, hardware/makers.py, imports a maker.
    "hardware": {"linux": set(), "nvidia": set(), "windows": set()},
    "engine": {
        # Only the table of them, engine/device.py, imports these.
        "accelerators": set(),
        "memory": set(),
        "workloads": set(),
        # A user's own code is a workload.
        "own_code": {"workloads"},
        "benchmark": {"memory", "workloads", "own_code"},
        "switcher": set(),
        "pitfalls": set(),
        "check": set(),
        "quick": {"benchmark", "check", "workloads"},
        # The engine's account of itself lists what there is.
        "devices": {"workloads", "switcher", "pitfalls"},
    },
    "model": {
        "devices": set(),
        "benchmark": {"devices"},
        "memory": {"devices"},
        "switcher": {"devices"},
        "race": {"devices", "benchmark"},
        "check": {"devices"},
    },
    "ui": {
        "plots": set(),
        "devices": {"plots"},
        "benchmark": {"plots"},
        "memory": {"plots"},
        "switcher": {"plots"},
        "race": set(),
        "check": {"plots"},
        "setup": set(),
    },
}


def rooms_of(layer: str) -> set[str]:
    return {path.parent.name for path in (PACKAGE / layer).glob("*/__init__.py")}


@pytest.mark.parametrize("layer", ROOMS)
def test_the_rooms_are_those_that_have_arrows(layer):
    assert rooms_of(layer) == set(ROOMS[layer])


def test_no_other_layer_has_rooms():
    layers = {path.parent.parent.name for path in PACKAGE.glob("*/*/__init__.py")}
    assert layers == set(ROOMS)


@pytest.mark.parametrize(
    ("layer", "room"), [(layer, room) for layer in ROOMS for room in ROOMS[layer]]
)
def test_what_two_rooms_use_is_in_neither(layer, room):
    for path in (PACKAGE / layer / room).rglob("*.py"):
        for name, line in imports(path):
            parts = name.split(".")
            if parts[:2] != ["gpu_studio", layer] or parts[2] not in ROOMS[layer]:
                continue
            allowed = parts[2] == room or parts[2] in ROOMS[layer][room]
            assert allowed, f"{path}:{line} imports {name}"


def imported(path: Path) -> set[str]:
    """Return the names that a file imports anywhere, for types and in functions as well."""
    names: set[str] = set()
    for statement in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(statement, ast.Import):
            names |= {alias.name for alias in statement.names}
        elif isinstance(statement, ast.ImportFrom):
            module = statement.module or ""
            names |= {module, *(f"{module}.{alias.name}" for alias in statement.names)}
    return names


def test_no_files_import_each_other_in_a_circle() -> None:
    files = {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for path in PACKAGE.rglob("*.py")
    }
    needs = {name: imported(path) & files.keys() - {name} for name, path in files.items()}
    # Files that need none of those left go; what remains then is in a circle, or above one.
    while done := {name for name, needed in needs.items() if not needed & needs.keys()}:
        needs = {name: needed for name, needed in needs.items() if name not in done}
    assert not needs


def test_there_is_one_thread_class():
    threads = [
        (path.name, node.name)
        for path in SOURCES
        if "Thread" in (source := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef)
        and any("Thread" in ast.unparse(base) for base in node.bases)
    ]
    assert threads == [("worker.py", "Worker")]


# Its engine speaks from a plan, without PyTorch.
_WINDOW = """
import os, sys
from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication
from gpu_studio.app import build_window
from gpu_studio.engine import client
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
client._MODULE, os.environ["CHILD_PLAN"] = "tests.engine.scripted_child", "beat"
application = QApplication([])
window = build_window(settings=Settings(None){options})
heavy = [name for name in {forbidden} if name in sys.modules]
window.show()
QTimer.singleShot(120000, application.quit)
session = window.findChild(Studio).session
session.engine_described.connect(application.quit)
application.exec()
assert session.description is not None, "the engine never came"
heavy += [name for name in ("torch", "pynvml") if name in sys.modules]
window.close()
sys.exit(f"imported: {{heavy}}" if heavy else 0)
"""
# What the Devices page needs only after its first paint: a third of what it imported once.
_AFTER_PAINT = [
    "gpu_studio.core.benchmark", "gpu_studio.core.devices.peaks", "gpu_studio.core.wheels",
    "gpu_studio.core.memory",
    "gpu_studio.ui.benchmark.benchmark_tab", "gpu_studio.ui.memory.memory_tab",
    "gpu_studio.ui.devices.fact_grid", "gpu_studio.ui.devices.copy_dialog",
    "gpu_studio.core.check",
    "gpu_studio.model.builds",  # only a program that keeps its own engines installs one
    "html",  # has all entities
]  # fmt: skip


@pytest.mark.parametrize(
    ("options", "forbidden"),
    [
        pytest.param("", ["numpy", "pyqtgraph"], id="built"),
        pytest.param(", tabs_after_paint=True", _AFTER_PAINT, id="before the first paint"),
    ],
)  # fmt: skip
def test_the_window_does_not_import(options, forbidden):
    script = _WINDOW.format(options=options, forbidden=forbidden)
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=240, cwd=ROOT
    )
    assert done.returncode == 0, done.stderr


def test_a_public_class_name_stands_once() -> None:
    """A newcomer who searches for a class finds one."""
    places: dict[str, list[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places.setdefault(node.name, []).append(path.relative_to(PACKAGE).as_posix())
    twice = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert not twice
