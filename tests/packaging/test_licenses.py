from __future__ import annotations

import json
import zipfile
from email.parser import HeaderParser
from typing import TYPE_CHECKING

import pytest
from studio_build import licenses
from studio_build.console import BuildError

if TYPE_CHECKING:
    from pathlib import Path


def _package(app: Path, name: str, received: str, texts: dict[str, str]) -> None:
    info = app / "packages" / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Name: {name}\nVersion: 1.0\n{received}\n", encoding="utf-8")
    for path, text in texts.items():
        (info / path).parent.mkdir(parents=True, exist_ok=True)
        (info / path).write_text(text, encoding="utf-8")


@pytest.fixture
def app(tmp_path: Path) -> Path:
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


def test_every_part_has_its_license_and_its_texts(app: Path) -> None:
    licenses.collect(app, python="3.13.5")
    rows = json.loads((app / "licenses" / "index.json").read_text(encoding="utf-8"))
    assert [row["name"] for row in rows] == ["GPU Studio", "CPython", "numpy", "pip", "psutil"]
    assert all(row["version"] and row["license"] and row["files"] for row in rows)
    texts = [
        (app / "licenses" / one).read_text(encoding="utf-8") for row in rows for one in row["files"]
    ]
    assert texts == ["MIT", "PSF", "BSD", "pocketfft", "MIT of pip", "MIT of rich", "BSD of psutil"]


def test_the_lgpl_comes_with_the_texts_that_its_package_only_names(
    app: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _package(app, "PySide6_Essentials", "License: LGPL-3.0-only OR GPL-2.0-only", {})
    monkeypatch.setattr(licenses, "_COMMON", tmp_path)
    with pytest.raises(BuildError, match="LGPL-3"):
        licenses.collect(app)
    for name in ("LGPL-3", "GPL-3"):
        (tmp_path / name).write_text(name, encoding="utf-8")
    (app / "licenses" / "index.json").unlink(missing_ok=True)
    parts = {part.name: part for part in licenses.collect(app)}
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
