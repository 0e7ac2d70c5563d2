from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from studio_setup import stamp as stamps
from studio_setup import system_libraries
from studio_setup.need import Need, has_display
from studio_setup.stamp import Verdict, judge
from studio_setup.system_libraries import (
    FONT,
    OFFSCREEN,
    SCREEN,
    apt_command,
    as_named_here,
    loads,
    missing_libraries,
    missing_venv_package,
)

PRESENT: dict[str, Any] = {
    "format": 2,
    "place": "/home/me/gpu-studio/.venv",
    "python": "3.11",
    "requirements": "abc",
}
STAMP: dict[str, Any] = PRESENT | {
    "extras": ["test"],
    "wanted": "auto",
}


def _judge(stamp: dict[str, Any] | None, *extras: str, wanted: str | None = None) -> Verdict:
    return judge(stamp, PRESENT, extras, wanted, lambda: "3.12")


def test_a_stamp_that_fits_needs_nothing() -> None:
    assert _judge(STAMP) is Verdict.FRESH
    assert _judge(STAMP, "test") is Verdict.FRESH
    assert _judge(STAMP, wanted="auto") is Verdict.FRESH


@pytest.mark.parametrize(
    ("change", "verdict"),
    [
        ({"format": 0}, Verdict.BUILD),
        ({"place": "/elsewhere/.venv"}, Verdict.BUILD),
        ({"python": "3.10"}, Verdict.BUILD),
        ({"python": "3.12"}, Verdict.FRESH),
        ({"requirements": "old"}, Verdict.UPDATE),
        ({"engine": "cu126"}, Verdict.UPDATE),  # its folder is gone
    ],
)
def test_what_changed_decides(change: dict[str, Any], verdict: Verdict) -> None:
    assert _judge(STAMP | change) is verdict


def test_no_stamp_builds_and_new_wishes_install() -> None:
    assert _judge(None) is Verdict.BUILD
    assert _judge({}) is Verdict.BUILD
    assert _judge(STAMP, "lint", "test") is Verdict.UPDATE
    assert _judge(STAMP, wanted="cpu") is Verdict.UPDATE


def _interpreter(environment: Path) -> Path:
    python = Path(stamps.python_in(str(environment)))
    python.parent.mkdir(parents=True)
    python.write_bytes(b"")
    return python


def test_a_stamp_is_read_as_it_was_written(tmp_path: Path) -> None:
    python = _interpreter(tmp_path)
    assert stamps.read_stamp(str(tmp_path)) is None
    stamps.write_stamp(str(tmp_path), STAMP)
    assert stamps.read_stamp(str(tmp_path)) == STAMP
    python.unlink()
    assert stamps.read_stamp(str(tmp_path)) is None


@pytest.mark.parametrize("text", ["", "{", "[1]", "\x00"])
def test_a_broken_stamp_is_none(tmp_path: Path, text: str) -> None:
    _interpreter(tmp_path)
    stamps.write_stamp(str(tmp_path), STAMP)
    (tmp_path / "gpu-studio-stamp.json").write_text(text, encoding="utf-8")
    assert stamps.read_stamp(str(tmp_path)) is None
    stamps.remove_stamp(str(tmp_path))
    stamps.remove_stamp(str(tmp_path))
    assert not (tmp_path / "gpu-studio-stamp.json").exists()


def test_the_hash_follows_every_file_that_decides(tmp_path: Path) -> None:
    names = ("pyproject.toml", "resources/wheels.json", "packaging/locks/linux-x86_64.txt")
    files = [tmp_path / name for name in names]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a", encoding="utf-8")
    seen = {stamps.requirements_hash(str(tmp_path))}
    for path in files:
        path.write_text("b", encoding="utf-8")
        seen.add(stamps.requirements_hash(str(tmp_path)))
    assert len(seen) == 4


@pytest.mark.parametrize(
    ("system", "environ", "expected"),
    [
        ("linux", {}, False),
        ("linux", {"DISPLAY": ""}, False),
        ("linux", {"DISPLAY": ":0"}, True),
        ("linux", {"WAYLAND_DISPLAY": "wayland-0"}, True),
        ("win32", {}, True),
        ("darwin", {}, True),
    ],
)
def test_where_there_is_a_screen(system: str, environ: dict[str, str], expected: bool) -> None:
    assert has_display(environ, system) is expected


def _fresh_need(
    root: Path, environment: Path, *, opens_window: bool, has_screen: bool, level: int
) -> Need:
    need = Need(root, (), opens_window, has_screen, None)
    need.environment = environment
    need.present["place"] = str(environment)
    stamp = need.present | {"extras": [], "wanted": "auto", "libraries": level}
    stamps.write_stamp(str(environment), stamp)
    return need


@pytest.mark.parametrize(
    ("opens_window", "has_screen", "level", "met"),
    [
        (False, False, 0, True),
        (False, True, 0, True),
        (True, False, 0, False),
        (True, False, 1, True),
        (True, True, 1, False),
        (True, True, 2, True),
    ],
)
def test_libraries_count_only_for_a_window(
    root: Path, tmp_path: Path, opens_window: bool, has_screen: bool, level: int, met: bool
) -> None:
    _interpreter(tmp_path)
    need = _fresh_need(
        root, tmp_path, opens_window=opens_window, has_screen=has_screen, level=level
    )
    assert need.is_met() is met


def test_the_shortcut_is_offered_once(root: Path, tmp_path: Path) -> None:
    _interpreter(tmp_path)
    need = _fresh_need(root, tmp_path, opens_window=True, has_screen=False, level=1)
    assert need.offer_is_due()
    assert not need.offer_is_due()
    assert need.is_met()


def test_without_writing_it_down_the_shortcut_is_not_offered(root: Path, tmp_path: Path) -> None:
    _interpreter(tmp_path)
    need = _fresh_need(root, tmp_path, opens_window=True, has_screen=False, level=1)
    (tmp_path / "gpu-studio-stamp.json.new").mkdir()  # in the way of the stamp's next version
    assert not need.offer_is_due()


@pytest.mark.parametrize(
    ("takes_files", "missing", "met"),
    [
        (True, {}, False),  # is set up, and written down
        (False, {}, True),
        (False, {"libEGL.so.1": "libegl1"}, False),
    ],
)
def test_a_read_only_environment_is_started_as_it_is(
    root: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    takes_files: bool,
    missing: dict[str, str],
    met: bool,
) -> None:
    _interpreter(tmp_path)
    need = _fresh_need(root, tmp_path, opens_window=True, has_screen=True, level=0)
    monkeypatch.setattr(os, "access", lambda *_: takes_files)
    monkeypatch.setattr(system_libraries, "missing_libraries", lambda *_: missing)
    assert need.is_met() is met


def test_a_start_imports_little(root: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from studio_setup.commands import need_of, Request\n"
        f"need_of(Path({str(root)!r}), Request('run', ['devices'])).is_met()\n"
        "print(' '.join(sorted(set(sys.modules) & {'subprocess', 'ctypes', 'dataclasses', "
        "'urllib.request', 'gpu_studio.core.wheels', 'tkinter', 'shutil'})))"
    )
    done = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=root / "packaging",
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == []


def test_a_real_screen_needs_more() -> None:
    def missing(screen: bool, system: str, there: bool) -> dict[str, str]:
        return missing_libraries(screen, system, lambda soname: there, lambda: there)

    assert missing(False, "linux", False) == OFFSCREEN | FONT
    assert missing(True, "linux", False) == OFFSCREEN | SCREEN | FONT
    assert missing(True, "linux", True) == {}
    assert missing(True, "win32", False) == {}


def test_a_font_is_asked_of_fontconfig(tmp_path: Path) -> None:
    """A configuration of its own, in a process of its own: the system's fonts do not count."""
    configuration = tmp_path / "fonts.conf"
    configuration.write_text(
        '<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig>'
        f"<dir>{tmp_path}</dir><cachedir>{tmp_path}</cachedir></fontconfig>"
    )
    code = "from studio_setup.system_libraries import has_fonts; print(has_fonts())"
    paths = [str(Path(system_libraries.__file__).parent.parent), *filter(None, sys.path)]
    environ = os.environ | {
        "FONTCONFIG_FILE": str(configuration), "PYTHONPATH": os.pathsep.join(paths)
    }  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "False"
    lacking = missing_libraries(False, "linux", lambda soname: True, lambda: False)
    assert apt_command([*lacking.values()]) == "sudo apt-get install -y fonts-dejavu-core"


def test_only_what_is_missing_is_named() -> None:
    missing = missing_libraries(True, "linux", lambda soname: "xcb" not in soname, lambda: True)
    assert list(missing.values()) == [
        "libxcb-cursor0",
        "libxcb-icccm4",
        "libxcb-keysyms1",
        "libxcb-shape0",
    ]
    assert apt_command(["libegl1", "libgl1"]) == "sudo apt-get install -y libegl1 libgl1"


@pytest.mark.parametrize(
    ("known", "name"),
    [
        ("libglib2.0-0\nlibglib2.0-0-dbgsym\n", "libglib2.0-0"),
        ("libglib2.0-0t64\nlibglib2.0-0\n", "libglib2.0-0t64"),
        ("libglib2.0-0t64\n", "libglib2.0-0t64"),
        ("", "libglib2.0-0"),
    ],
)
def test_glib_has_two_names(known: str, name: str) -> None:
    assert as_named_here(["libgl1", "libglib2.0-0"], known) == ["libgl1", name]


def test_a_library_that_is_not_there_does_not_load() -> None:
    assert not loads("libno-such-library.so.7")


def test_debian_splits_venv_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "studio_setup.system_libraries.importlib.util.find_spec", lambda name: object()
    )
    assert missing_venv_package() is None
    monkeypatch.setattr("studio_setup.system_libraries.importlib.util.find_spec", lambda name: None)
    major, minor = sys.version_info[:2]
    assert missing_venv_package() == f"python{major}.{minor}-venv"
