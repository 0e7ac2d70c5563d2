from __future__ import annotations

import os
import site
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from studio_build import app_folder
from studio_build.app_folder import Program, own_folders, program_of, set_times, varying
from studio_build.console import BuildError
from studio_build.linux_packages import add_starter

if TYPE_CHECKING:
    from pathlib import Path


def test_the_version_is_that_of_pyproject(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    text = (root / "pyproject.toml").read_text(encoding="utf-8")
    (tmp_path / "pyproject.toml").write_text(text, encoding="utf-8")
    assert f'version = "{program_of(tmp_path).version}"' in text
    assert program_of(tmp_path).epoch == 1700000000


def test_a_version_that_windows_cannot_report_is_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('version = "1.0rc1"\n', encoding="utf-8")
    with pytest.raises(BuildError, match="three numbers"):
        program_of(tmp_path)


def test_without_git_the_time_has_to_be_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    (tmp_path / "pyproject.toml").write_text('version = "1.0.0"\n', encoding="utf-8")
    with pytest.raises(BuildError, match="SOURCE_DATE_EPOCH"):
        program_of(tmp_path)


LINES = {
    10: ["numpy==2.2.6 --hash=sha256:1", "psutil==7.2.2 --hash=sha256:2"],
    11: ["numpy==2.4.6 --hash=sha256:3", "psutil==7.2.2 --hash=sha256:2"],
    12: ["numpy==2.5.5 --hash=sha256:4", "psutil==7.2.2 --hash=sha256:2"],
    13: ["numpy==2.5.5 --hash=sha256:4", "psutil==7.2.2 --hash=sha256:2"],
}


def test_only_what_differs_between_pythons_has_folders_of_its_own() -> None:
    assert varying(LINES) == {"numpy"}
    versions = {10: "2.2.6", 11: "2.4.6", 12: "2.5.5", 13: "2.5.5"}
    wanted = {minor: {"numpy": f"packages-numpy-{one}"} for minor, one in versions.items()}
    assert own_folders(LINES) == wanted


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A program's folder with its path file."""
    for name in ("packages", "packages-3.11"):
        (tmp_path / name).mkdir()
    place = tmp_path / "lib" / "python3.11" / "site-packages"
    app_folder._write_path_file(place, ("packages-3.11", "packages"))
    return tmp_path


def test_the_path_file_leads_to_the_packages(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GPU_STUDIO_PACKAGES", raising=False)
    monkeypatch.setattr(sys, "path", [])
    site.addsitedir(str(app / "lib" / "python3.11" / "site-packages"))
    found = [os.path.realpath(one) for one in sys.path[1:]]
    wanted = [app / "packages-3.11", app / "packages", app]
    assert found == [os.path.realpath(one) for one in wanted]


def test_an_engine_environment_comes_first(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = tmp_path / "Änne's engine"
    monkeypatch.setenv("GPU_STUDIO_PACKAGES", str(engine))
    monkeypatch.setattr(sys, "path", ["elsewhere"])
    site.addsitedir(str(app / "lib" / "python3.11" / "site-packages"))
    assert sys.path[0] == str(engine)


def test_all_files_have_one_time_and_a_plain_mode(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("#!/bin/sh\n", encoding="utf-8")
    (tmp_path / "run").chmod(0o700)
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "text").write_text("", encoding="utf-8")
    (tmp_path / "below" / "text").chmod(0o600)
    set_times(tmp_path, 1700000000)
    assert {path.stat().st_mtime for path in tmp_path.rglob("*")} == {1700000000}
    if sys.platform != "win32":
        assert (tmp_path / "run").stat().st_mode & 0o777 == 0o755
        assert (tmp_path / "below" / "text").stat().st_mode & 0o777 == 0o644


def test_a_checkout_is_copied_without_its_traces(root: Path, tmp_path: Path) -> None:
    checkout, app, wheels = (tmp_path / name for name in ("checkout", "app", "wheels"))
    for name in ("gpu_studio", "resources"):
        for trace in ("__pycache__", ".mypy_cache"):
            (checkout / name / trace).mkdir(parents=True)
            (checkout / name / trace / "one.txt").write_text("", encoding="utf-8")
        (checkout / name / "one.py").write_text("", encoding="utf-8")
    for name in ("pyproject.toml", "uv.lock", "LICENSE"):
        assert (root / name).exists()
        (checkout / name).write_text("", encoding="utf-8")
    (checkout / "packaging").mkdir()
    wheels.mkdir()
    (wheels / "pip-26.3-py3-none-any.whl").write_bytes(b"")
    app.mkdir()
    app_folder._copy_program(Program(checkout, "1.0.0", 0), app, wheels)
    files = {path.relative_to(app).as_posix() for path in app.rglob("*") if path.is_file()}
    assert files == {
        "gpu_studio/one.py",
        "resources/one.py",
        "pyproject.toml",
        "uv.lock",
        "LICENSE",
        "pip-26.3-py3-none-any.whl",
    }


def test_the_starter_for_linux_finds_all_that_it_asks(root: Path, tmp_path: Path) -> None:
    add_starter(Program(root, "1.0.0", 0), tmp_path)
    script = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import fit_pc, menu\n"
    script += f"print(fit_pc.missing_libraries({str(tmp_path)!r}))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True)
    assert done.returncode == 0, done.stderr


def test_another_python_does_not_compile(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match=r"Run build\.py with Python 3\.99"):
        app_folder._compile(tmp_path, 99)


def test_modules_are_compiled_the_same_twice(tmp_path: Path) -> None:
    collected = []
    for name in ("first", "second"):
        app = tmp_path / name
        for folder in ("packages", "gpu_studio", "packaging"):
            (app / folder).mkdir(parents=True)
        text = "NAMES = {'a', 'b', 'c', 'd'}\ndef f(x):\n    return x in {'k', 'l', 'm'}\n"
        (app / "gpu_studio" / "one.py").write_text(text, encoding="utf-8")
        os.utime(app / "gpu_studio" / "one.py", (len(collected), len(collected)))
        app_folder._compile(app, sys.version_info[1])
        (compiled,) = (app / "gpu_studio" / "__pycache__").iterdir()
        collected.append(compiled.read_bytes())
    assert collected[0] == collected[1]


def test_the_builds_help_names_all_it_can_do(root: Path) -> None:
    command = [sys.executable, str(root / "packaging" / "build.py"), "--help"]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=True)
    assert all(word in done.stdout for word in ("windows", "linux", "prove", "--python", "--fast"))
