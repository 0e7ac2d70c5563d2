import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import system_libraries
from system_libraries import (
    apt_command,
    missing_libraries,
)

on_linux = pytest.mark.skipif(sys.platform != "linux", reason="the starter of Linux")


@pytest.fixture
def fit_pc(root: Path) -> Any:
    """The module that the starter runs."""
    path = root / "packaging" / "linux" / "fit_pc.py"
    spec = importlib.util.spec_from_file_location("fit_pc", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@on_linux
@pytest.mark.parametrize("version", [(3, 9, 2), (3, 15, 0), (2, 7, 18)])
def test_an_unsupported_python_is_reported_with_its_version(
    fit_pc: Any, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int]
) -> None:
    monkeypatch.setattr(fit_pc.sys, "version_info", version)
    assert ".".join(map(str, version)) in fit_pc.unfit_python()


def test_the_supported_pythons_are_those_of_the_table(fit_pc: Any, root: Path) -> None:
    import json

    table = json.loads((root / "resources" / "wheels.json").read_text(encoding="utf-8"))["python"]
    result = fit_pc.unfit_python.__code__.co_consts
    assert tuple(table["oldest"]) in result
    assert tuple(table["newest"]) in result


@on_linux
def test_missing_libraries_are_reported_with_what_to_type(
    fit_pc: Any, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:

    monkeypatch.setattr(
        system_libraries, "missing_libraries", lambda screen: {"libEGL.so.1": "libegl1"}
    )
    monkeypatch.setattr(system_libraries, "has_apt", lambda: True)
    monkeypatch.setattr(fit_pc.sys, "path", list(sys.path))
    assert "sudo apt-get install -y libegl1" in fit_pc.missing_libraries(str(root))
    monkeypatch.setattr(system_libraries, "has_apt", lambda: False)
    assert fit_pc.missing_libraries(str(root)).endswith("libEGL.so.1")
    monkeypatch.setattr(system_libraries, "missing_libraries", lambda screen: {})
    assert fit_pc.missing_libraries(str(root)) is None


@pytest.fixture
def app(root: Path, tmp_path: Path) -> Path:
    """A portable folder whose Python is this one, and whose program prints its arguments."""
    folder = tmp_path / "GPU Studio (1)"
    (folder / "bin").mkdir(parents=True)
    (folder / "gpu_studio").mkdir()
    (folder / "packages").mkdir()
    for name in ("gpu-studio", "fit_pc.py", "menu.py", "system_libraries.py"):
        (folder / name).write_bytes((root / "packaging" / "linux" / name).read_bytes())
    (folder / "gpu-studio").chmod(0o755)
    (folder / "bin" / "python3").symlink_to(sys.executable)
    text = "import os, sys; print(sys.argv[1:], os.environ.get('PYTHONHOME'))\n"
    (folder / "gpu_studio" / "__main__.py").write_text(text, encoding="utf-8")
    (folder / "gpu_studio" / "__init__.py").touch()
    return folder


def _started(app: Path, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    # -m finds the little program in the current folder; the real one is on the path.
    return subprocess.run(
        [str(app / "gpu-studio"), *arguments],
        cwd=app,
        env={"PATH": os.environ["PATH"], **environ},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@on_linux
def test_the_starter_hands_on_its_arguments_and_no_strange_python(app: Path) -> None:
    done = _started(app, "bench", "a b", PYTHONHOME="/nowhere", PYTHONPATH="/nowhere")
    assert (done.returncode, done.stdout) == (0, "['bench', 'a b'] None\n"), done.stderr


def _python(folder: Path, name: str, version: str) -> Path:
    """Make a Python that says it is of some version, and that is this one in all else."""
    folder.mkdir(exist_ok=True)
    numbers = tuple(int(one) for one in version.split("."))
    text = (
        f"import runpy, sys; sys.argv = sys.argv[1:]; sys.version_info = {numbers}; "
        "sys._base_executable = sys.executable = sys.argv.pop(0); "
        "runpy.run_path(sys.argv[0], run_name='__main__')"
    )
    program = folder / name
    # -I -B and the script are what the starter gives.
    program.write_text(
        f'#!/bin/sh\n[ "$1" = -m ] && exec \'{sys.executable}\' "$@"\n'
        f'shift 2; exec \'{sys.executable}\' -c "{text}" "$0" "$@"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    return program


@pytest.fixture
def bare(app: Path, tmp_path: Path) -> str:
    """A search path with what the starter calls and no Python, for a folder whose link is dead."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("dirname", "readlink"):
        (tools / name).symlink_to(str(shutil.which(name)))
    (app / "bin" / "python3").unlink()
    script = (app / "gpu-studio").read_text(encoding="utf-8")
    (app / "gpu-studio").write_text(script.replace("/usr/bin/python3 ", ""), encoding="utf-8")
    return str(tools)


@on_linux
def test_without_python_the_starter_says_what_to_install(app: Path, bare: str) -> None:
    done = _started(app, "devices", PATH=bare)
    assert done.returncode == 1
    assert "install the package python3" in done.stderr


@on_linux
def test_another_python_is_used_where_python3_does_not_fit(
    app: Path, bare: str, tmp_path: Path
) -> None:
    _python(tmp_path / "old", "python3", "3.9.2")
    fitting = _python(tmp_path / "own", "python3.12", "3.12.1")
    path = f"{bare}:{tmp_path / 'old'}:{tmp_path / 'own'}"
    done = _started(app, "devices", PATH=path)
    assert (done.returncode, done.stdout) == (0, "['devices'] None\n"), done.stderr
    assert (app / "bin" / "python3").readlink() == fitting
    assert f"home = {fitting.parent}\n" in (app / "pyvenv.cfg").read_text(encoding="utf-8")


@on_linux
def test_a_python_that_does_not_fit_is_told_with_its_version(
    app: Path, bare: str, tmp_path: Path
) -> None:
    _python(tmp_path / "old", "python3", "3.9.2")
    done = _started(app, "devices", PATH=f"{bare}:{tmp_path / 'old'}")
    assert done.returncode == 1
    assert "3.9.2" in done.stderr
    assert not (app / "bin" / "python3").exists()


@on_linux
@pytest.mark.parametrize(
    ("arguments", "environ", "is_shown"),
    [((), {"DISPLAY": ":7"}, True), (("devices",), {"DISPLAY": ":7"}, False), ((), {}, False)],
)
def test_only_a_double_click_gets_a_dialog(
    app: Path,
    bare: str,
    tmp_path: Path,
    arguments: tuple[str, ...],
    environ: dict[str, str],
    is_shown: bool,
) -> None:
    dialog = tmp_path / "tools" / "zenity"
    dialog.write_text(f"#!/bin/sh\nprintf shown > '{tmp_path}/shown'\n", encoding="utf-8")
    dialog.chmod(0o755)
    done = _started(app, *arguments, PATH=bare, **environ)
    assert "install the package python3" in done.stderr
    assert (tmp_path / "shown").exists() == is_shown


@on_linux
@pytest.mark.parametrize(("package", "status"), [("tar", 0), ("deb", 1)])
def test_the_portable_folder_alone_goes_into_the_menu(
    app: Path, root: Path, tmp_path: Path, package: str, status: int
) -> None:
    (app / "installed.json").write_text(f'{{"package": "{package}"}}', encoding="utf-8")
    shutil.copy(root / "packaging" / "gpu-studio.desktop", app)
    done = _started(app, "--add-to-menu", HOME=str(tmp_path))
    entry = tmp_path / ".local" / "share" / "applications" / "gpu-studio.desktop"
    assert (done.returncode, entry.exists()) == (status, status == 0), done.stderr
    assert _started(app, "--remove-from-menu", HOME=str(tmp_path)).returncode == status
    assert not entry.exists()


def test_only_what_is_missing_is_named() -> None:
    missing = missing_libraries(True, "linux", lambda soname: "xcb" not in soname, lambda: True)
    assert list(missing.values()) == [
        "libxcb-cursor0",
        "libxcb-icccm4",
        "libxcb-keysyms1",
        "libxcb-shape0",
    ]
    assert apt_command(["libegl1", "libgl1"]) == "sudo apt-get install -y libegl1 libgl1"
