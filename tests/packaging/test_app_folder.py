import json
import os
import site
import subprocess
import sys
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from studio_build import app_folder, licenses
from studio_build.app_folder import Program, own_folders, varying
from studio_build.console import BuildError
from studio_build.linux_packages import add_starter

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


def _package(licensed: Path, name: str, received: str, texts: dict[str, str]) -> None:
    info = licensed / "packages" / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n{received}\n", encoding="utf-8")
    for path, text in texts.items():
        (info / path).parent.mkdir(parents=True, exist_ok=True)
        (info / path).write_text(text, encoding="utf-8")


@pytest.fixture
def licensed(tmp_path: Path) -> Path:
    """A program's folder with two packages and a Python."""
    folder = tmp_path / "licenses" / "app"  # a folder of this name above must not matter
    (folder / "python").mkdir(parents=True)
    (folder / "python" / "LICENSE.txt").write_text("PSF", encoding="utf-8")
    (folder / "LICENSE").write_text("MIT", encoding="utf-8")
    (folder / "pyproject.toml").write_text('version = "0.1.0"\n', encoding="utf-8")
    texts = {"licenses/LICENSE": "BSD", "licenses/numpy/fft/LICENSE": "pocketfft"}
    _package(folder, "numpy", "License-Expression: BSD-3-Clause", texts)
    _package(folder, "psutil", "License: BSD-3-Clause", {"LICENSE": "BSD of psutil"})
    with zipfile.ZipFile(folder / "pip-26.3-py3-none-any.whl", "w") as wheel:
        info = "pip-26.3.dist-info"
        wheel.writestr(f"{info}/METADATA", "Name: pip\nVersion: 26.3\nLicense-Expression: MIT\n")
        wheel.writestr(f"{info}/licenses/LICENSE.txt", "MIT of pip")
        wheel.writestr(f"{info}/licenses/src/rich/LICENSE", "MIT of rich")
    return folder


def test_every_part_has_its_license_and_its_texts(licensed: Path) -> None:
    licenses.collect(licensed, python="3.13.5")
    rows = json.loads((licensed / "licenses" / "index.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in rows] == ["GPU Studio", "CPython", "numpy", "pip", "psutil"]
    assert all(row["version"] and row["license"] and row["files"] for row in rows)
    texts = [
        (licensed / "licenses" / one).read_text(encoding="utf-8")
        for row in rows
        for one in row["files"]
    ]
    assert texts == ["MIT", "PSF", "BSD", "pocketfft", "MIT of pip", "MIT of rich", "BSD of psutil"]


def test_the_lgpl_comes_with_the_texts_that_its_package_only_names(
    licensed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(licensed, "PySide6_Essentials", "License: LGPL-3.0-only OR GPL-2.0-only", {})
    monkeypatch.setattr(licenses, "_COMMON", tmp_path)
    with pytest.raises(BuildError, match="LGPL-3"):
        licenses.collect(licensed)
    for name in ("LGPL-3", "GPL-3"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (licensed / "licenses" / "index.json").unlink(missing_ok=True)
    parts = {part.name: part for part in licenses.collect(licensed)}
    assert [one.rpartition("/")[2] for one in parts["PySide6_Essentials"].files] == [
        "LGPL-3",
        "GPL-3",
    ]


@pytest.mark.parametrize(
    ("expected", "wanted"),
    [
        ("License-Expression: MIT\nLicense: old", "MIT"),
        ("License: BSD", "BSD"),
        (
            "Classifier: Topic :: X\nClassifier: License :: OSI Approved :: BSD License",
            "BSD License",
        ),
        ("Summary: none", "see its text"),
    ],
)
def test_a_license_is_reported_in_several_ways(expected: str, wanted: str) -> None:
    assert licenses.license_of(HeaderParser().parsestr(expected)) == wanted
