from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from studio_setup import setting_up
from studio_setup import stamp as stamps
from studio_setup import system_libraries as libraries
from studio_setup.cards import Sighting
from studio_setup.console import SetupError
from studio_setup.need import Need
from studio_setup.setting_up import SetUp
from studio_setup.stamp import Verdict

from gpu_studio.core.wheels import CudaCard, WheelChoice

GT1030 = Sighting((CudaCard("NVIDIA GeForce GT 1030", (6, 1)),), "580.95.05", None)
RTX5090 = Sighting((CudaCard("NVIDIA GeForce RTX 5090", (12, 0)),), "580.95.05", None)
NO_CARD = Sighting((), None, None)


class SilentPip:
    """An old pip, until it is renewed."""

    def __init__(self, *_: object) -> None:
        self.pass_fds = ()

    def learn_to_show_progress(self) -> None:
        SilentPip.renewed += 1

    renewed = 0


class World:
    """The PC, pip and the disk as the setup sees them, with a switch for each thing that fails."""

    def __init__(self, environment: Path) -> None:
        self.environment = environment
        self.sighting = NO_CARD
        self.missing: dict[str, str] = {}
        self.fails: str | None = None
        self.old_works = True
        self.is_killed = False
        self.done: list[str] = []

    def _do(self, name: str) -> None:
        stamp = stamps.read_stamp(str(self.environment))
        assert stamp is None or stamp["requirements"] is None, "the stamp comes last"
        self.done.append(name)
        if self.is_killed:
            raise KeyboardInterrupt
        if self.fails == name:
            raise SetupError(f"{name} failed.")

    def make_environment(self, *_: object) -> None:
        self._do("venv")
        python = Path(stamps.python_in(str(self.environment)))
        python.parent.mkdir(parents=True, exist_ok=True)
        python.write_bytes(b"")

    def install_torch(self, pip: object, choice: WheelChoice) -> str:
        self._do("torch")
        self.done.append(choice.tag)
        return choice.requirement

    def install_locked(self, pip: object, root: Path, tag: str, with_tests: bool) -> None:
        self._do(f"locked {tag}{' and tests' if with_tests else ''}")

    def install_project(
        self, pip: object, root: Path, pinned: str, extras: list[str], newest: bool
    ) -> None:
        self._do("newest project" if newest else "project")

    def try_imports(self, environment: Path, modules: list[str], log: object) -> None:
        self.done.append(f"import {' '.join(modules)}")
        if self.fails is not None and not self.old_works:
            raise SetupError("nothing works.")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path / ".venv")
    steps = ("make_environment", "install_torch", "install_locked", "install_project")
    for name in (*steps, "try_imports"):
        monkeypatch.setattr(setting_up, name, getattr(world, name))
    monkeypatch.setattr("studio_setup.need.environment_folder", lambda root: root / ".venv")
    monkeypatch.setattr(setting_up, "Pip", SilentPip)
    monkeypatch.setattr(SilentPip, "renewed", 0)
    monkeypatch.setattr(setting_up, "find_cards", lambda: world.sighting)
    monkeypatch.setattr(setting_up, "require_space", lambda *_: None)
    monkeypatch.setattr(setting_up, "installed_torch", lambda _: ("2.13.0+cpu", None))
    monkeypatch.setattr(setting_up, "driver_module_version", lambda: "")
    monkeypatch.setattr("gpu_studio.core.operating_system.system", lambda: "Linux")
    monkeypatch.setattr("gpu_studio.core.operating_system.machine", lambda: "x86_64")
    monkeypatch.setattr(libraries, "missing_libraries", lambda screen: world.missing)
    monkeypatch.setattr(libraries, "missing_venv_package", lambda: None)
    monkeypatch.setattr(libraries, "has_apt", lambda: True)
    monkeypatch.setattr(libraries, "apt_names", lambda packages: packages)
    monkeypatch.setattr(setting_up.os, "geteuid", lambda: 1000, raising=False)
    return world


def _need(root: Path, world: World, *, extras: tuple[str, ...] = (), window: bool = False) -> Need:
    # The stand-in for a checkout has what the stamp reads of one, and its own .venv and .setup.
    folder = world.environment.parent
    (folder / "resources").mkdir(exist_ok=True)
    for name in ("pyproject.toml", "resources/wheels.json"):
        (folder / name).write_bytes((root / name).read_bytes())
    need = Need(folder, extras, window, False, None)
    need.present["hardware"] = "nothing"
    return need


def _verdict(need: Need) -> Verdict:
    return need.judged()[1]


def test_a_first_set_up_writes_its_stamp_last(root: Path, world: World, console: Any) -> None:
    need = _need(root, world, extras=("test",))
    assert _verdict(need) is Verdict.BUILD
    SetUp(need, console).run()
    assert world.done == [
        "venv", "torch", "cpu", "locked cpu and tests", "project", "import torch PySide6.QtWidgets",
    ]  # fmt: skip
    stamp, verdict = need.judged()
    assert verdict is Verdict.FRESH
    assert stamp is not None
    assert (stamp["tag"], stamp["extras"], stamp["libraries"]) == ("cpu", ["test"], 1)
    assert SilentPip.renewed == 0
    assert [line[:3] for line in console.lines if line[1:2] == "/"] == ["1/4", "2/4", "3/4", "4/4"]
    assert "    No NVIDIA card found, so PyTorch's CPU build is used." in console.lines


@pytest.mark.parametrize("step", ["venv", "torch", "locked cpu", "project"])
def test_an_interrupted_set_up_is_built_again(
    root: Path, world: World, console: Any, step: str
) -> None:
    world.fails = step
    need = _need(root, world)
    with pytest.raises(SetupError, match=f"{step} failed"):
        SetUp(need, console).run()
    assert _verdict(need) is Verdict.BUILD
    world.fails = None
    world.done.clear()
    SetUp(need, console).run()
    assert world.done[0] == "venv"
    assert _verdict(need) is Verdict.FRESH


def test_new_dependencies_go_into_the_environment_that_is_there(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    world.done.clear()
    need = _need(root, world, extras=("test",))
    assert _verdict(need) is Verdict.UPDATE
    SetUp(need, console).run()
    assert "venv" not in world.done
    assert _verdict(_need(root, world)) is Verdict.FRESH


def test_a_failed_update_keeps_what_works(root: Path, world: World, console: Any) -> None:
    SetUp(_need(root, world), console).run()
    need = _need(root, world, extras=("test",))
    world.fails = "project"
    with pytest.raises(SetupError):
        SetUp(need, console).run()
    assert _verdict(_need(root, world)) is Verdict.FRESH
    assert _verdict(need) is Verdict.UPDATE
    world.old_works = False
    with pytest.raises(SetupError):
        SetUp(need, console).run()
    assert _verdict(_need(root, world)) is Verdict.BUILD


def _change_of_hardware(root: Path, world: World, before: Sighting, after: Sighting) -> Need:
    from tests.packaging.conftest import RecordingConsole

    world.sighting = before
    SetUp(_need(root, world), RecordingConsole()).run()
    world.done.clear()
    world.sighting = after
    need = _need(root, world)
    need.present["hardware"] = "something else"
    assert _verdict(need) is Verdict.HARDWARE
    return need


def test_a_new_card_brings_its_build(root: Path, world: World, console: Any) -> None:
    need = _change_of_hardware(root, world, NO_CARD, GT1030)
    SetUp(need, console).run()
    assert SilentPip.renewed == 1
    assert world.done[:2] == ["torch", "cu126"]
    assert "    GeForce GT 1030 (6.1) with driver 580.95.05: the cu126 build." in console.lines
    assert _verdict(need) is Verdict.FRESH


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (GT1030, NO_CARD),
        (RTX5090, RTX5090),
        (NO_CARD, NO_CARD),
    ],
)
def test_nothing_is_downloaded_where_what_is_there_serves(
    root: Path, world: World, console: Any, before: Sighting, after: Sighting
) -> None:
    need = _change_of_hardware(root, world, before, after)
    SetUp(need, console).run()
    assert world.done == []
    assert _verdict(need) is Verdict.FRESH


def test_a_build_that_cannot_be_had_leaves_the_old_one_at_work(
    root: Path, world: World, console: Any
) -> None:
    need = _change_of_hardware(root, world, GT1030, RTX5090)
    world.fails = "torch"
    SetUp(need, console).run()
    assert console.lines[-1].startswith("torch failed.\nContinuing ")
    assert _verdict(need) is Verdict.HARDWARE


def test_a_driver_that_did_not_answer_is_asked_again(
    root: Path, world: World, console: Any
) -> None:
    world.sighting = Sighting((), None, "The NVIDIA driver does not answer.", timed_out=True)
    need = _need(root, world)
    SetUp(need, console).run()
    assert _verdict(need) is Verdict.HARDWARE
    world.sighting = NO_CARD
    SetUp(need, console).run()
    assert _verdict(need) is Verdict.FRESH


def test_a_build_asked_for_by_name_stays(root: Path, world: World, console: Any) -> None:
    need = _need(root, world)
    need.wanted_tag = "cu126"
    SetUp(need, console).run()
    stamp, _ = _need(root, world).judged()
    assert stamp is not None
    assert (stamp["tag"], stamp["wanted"]) == ("cu126", "cu126")
    need.wanted_tag = "cu999"
    with pytest.raises(SetupError, match="build cu999: choose auto, cu130"):
        SetUp(need, console).run()


def test_a_change_that_is_killed_is_not_built_from_nothing(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    need = _need(root, world)
    need.wanted_tag = "cu126"
    world.is_killed = True
    with pytest.raises(KeyboardInterrupt):
        SetUp(need, console).run()
    again = _need(root, world)
    assert _verdict(again) is Verdict.UPDATE
    world.is_killed = False
    SetUp(again, console).run()
    assert again.judged()[0]["tag"] == "cpu"
    assert _verdict(again) is Verdict.FRESH


def test_the_newest_packages_are_installed_where_asked_for_and_stay(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    for wish, expected in (
        ("newest", ["torch", "cpu", "newest project", "import torch PySide6.QtWidgets"]),
        (None, []),
        ("tested", ["torch", "cpu", "locked cpu", "project", "import torch PySide6.QtWidgets"]),
    ):
        world.done.clear()
        need = _need(root, world)
        need.packages = wish
        if _verdict(need) is not Verdict.FRESH:
            assert _verdict(need) is Verdict.UPDATE
            SetUp(need, console).run()
        assert world.done == expected


def test_missing_libraries_stop_a_window_but_no_terminal(
    root: Path, world: World, console: Any
) -> None:
    world.missing = {"libEGL.so.1": "libegl1"}
    SetUp(_need(root, world), console).run()
    assert "import torch" in world.done
    assert any("sudo apt-get install -y libegl1" in line for line in console.lines)
    assert _need(root, world).is_met()
    window = _need(root, world, window=True)
    with pytest.raises(SetupError, match=r"libEGL\.so\.1(.|\n)*sudo apt-get install -y libegl1"):
        SetUp(window, console).run()
    world.missing = {}
    SetUp(window, console).run()
    assert window.is_met()


@pytest.mark.skipif(sys.platform == "win32", reason="apt is for Linux, and so is root")
def test_root_installs_the_missing_libraries(
    root: Path, world: World, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.missing = {"libEGL.so.1": "libegl1", "libGL.so.1": "libgl1"}
    asked: list[list[str]] = []

    def apt_install(packages: list[str], log: object) -> bool:
        asked.append(packages)
        world.missing = {}
        return True

    monkeypatch.setattr(libraries, "apt_install", apt_install)
    monkeypatch.setattr(setting_up.os, "geteuid", lambda: 0, raising=False)
    need = _need(root, world, window=True)
    SetUp(need, console).run()
    assert asked == [["libegl1", "libgl1"]]
    assert need.is_met()


@pytest.mark.parametrize(
    ("has_apt", "words"),
    [(True, "sudo apt-get install -y python3.11-venv libegl1"), (False, "python.org")],
)
def test_a_python_without_venv_is_explained(
    root: Path,
    world: World,
    console: Any,
    monkeypatch: pytest.MonkeyPatch,
    has_apt: bool,
    words: str,
) -> None:
    world.missing = {"libEGL.so.1": "libegl1"}
    monkeypatch.setattr(libraries, "missing_venv_package", lambda: "python3.11-venv")
    monkeypatch.setattr(libraries, "has_apt", lambda: has_apt)
    with pytest.raises(SetupError, match=words):
        SetUp(_need(root, world), console).run()
    assert world.done == []
