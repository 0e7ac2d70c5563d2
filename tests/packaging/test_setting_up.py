from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from studio_setup import setting_up
from studio_setup import stamp as stamps
from studio_setup import system_libraries as libraries
from studio_setup.console import SetupError
from studio_setup.need import Need
from studio_setup.setting_up import SetUp
from studio_setup.stamp import Verdict

from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.record import Wanted


class SilentPip:
    """A pip that does nothing."""

    def __init__(self, *_: object) -> None:
        self.pass_fds = ()


class World:
    """The PC, pip and the disk as the setup sees them, with a switch for each thing that fails."""

    def __init__(self, environment: Path) -> None:
        self.environment = environment
        self.card_build = "cpu"
        self.leads_to: tuple[Path, ...] = ()
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

    def install_locked(self, pip: object, root: Path, with_tests: bool) -> None:
        self._do(f"locked{' and tests' if with_tests else ''}")

    def install_packages(self, pip: object, root: Path, extras: list[str], newest: bool) -> None:
        self._do("newest packages" if newest else "packages")

    def install_engine(self, build: str) -> str:
        family = self.card_build if build == "auto" else build
        self._do(f"engine {build}")
        (self.environment / "engines" / family).mkdir(exist_ok=True)
        return family

    def lead_to(self, environment: Path, *folders: Path) -> None:
        self.leads_to = folders

    def try_imports(self, environment: Path, modules: list[str], log: object) -> None:
        self.done.append(f"import {' '.join(modules)}")
        if self.fails is not None and not self.old_works:
            raise SetupError("nothing works.")


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    world = World(tmp_path / ".venv")
    steps = ("make_environment", "install_locked", "install_packages")
    for name in (*steps, "lead_to", "try_imports"):
        monkeypatch.setattr(setting_up, name, getattr(world, name))
    monkeypatch.setattr(setting_up, "Pip", SilentPip)
    monkeypatch.setattr(
        setting_up, "EngineSetUp", lambda *_: SimpleNamespace(install=world.install_engine)
    )
    monkeypatch.setattr(setting_up, "compile_program", lambda *_: None)
    monkeypatch.setattr(setting_up, "require_space", lambda *_: None)
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
    return Need(folder, extras, window, False, None)


def _verdict(need: Need) -> Verdict:
    return need.judged()[1]


def test_a_first_set_up_writes_its_stamp_last(root: Path, world: World, console: Any) -> None:
    need = _need(root, world, extras=("test",))
    assert _verdict(need) is Verdict.BUILD
    SetUp(need, console).run()
    assert world.done == [
        "venv", "locked and tests", "packages", "import numpy PySide6.QtWidgets", "engine auto",
    ]  # fmt: skip
    stamp, verdict = need.judged()
    assert verdict is Verdict.FRESH
    assert stamp is not None
    assert (stamp["engine"], stamp["extras"], stamp["libraries"]) == ("cpu", ["test"], 1)
    assert [line[:3] for line in console.lines if line[1:2] == "/"] == ["1/4", "2/4", "3/4", "4/4"]
    engine = world.environment / "engines" / "cpu"
    assert world.leads_to == (world.environment.parent, engine)
    engine.rmdir()  # removed in the window
    assert _verdict(need) is Verdict.UPDATE


@pytest.mark.parametrize("step", ["venv", "locked", "packages"])
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


def test_an_interrupted_engine_continues_in_the_same_environment(
    root: Path, world: World, console: Any
) -> None:
    """Its downloads are in the environment."""
    world.fails = "engine auto"
    need = _need(root, world)
    with pytest.raises(SetupError, match="engine auto failed"):
        SetUp(need, console).run()
    assert _verdict(need) is Verdict.UPDATE
    world.fails = None
    world.done.clear()
    SetUp(need, console).run()
    assert "venv" not in world.done
    assert world.done[-1] == "engine auto"
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
    for step in ("packages", "engine auto"):
        world.fails = step
        with pytest.raises(SetupError):
            SetUp(need, console).run()
        assert _verdict(_need(root, world)) is Verdict.FRESH
        assert _verdict(need) is Verdict.UPDATE
        assert world.leads_to[1:] == (world.environment / "engines" / "cpu",)
    world.fails = "packages"
    world.old_works = False
    with pytest.raises(SetupError):
        SetUp(need, console).run()
    assert _verdict(_need(root, world)) is Verdict.BUILD


def test_pip_never_sees_the_packages_of_an_engine(
    root: Path, world: World, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would replace them in their folder."""
    SetUp(_need(root, world), console).run()
    seen: list[tuple[Path, ...]] = []
    monkeypatch.setattr(setting_up, "install_locked", lambda *_: seen.append(world.leads_to))
    SetUp(_need(root, world, extras=("test",)), console).run()
    assert seen == [(world.environment.parent,)]


def test_a_build_asked_for_by_name_stays(root: Path, world: World, console: Any) -> None:
    need = _need(root, world)
    need.wanted_build = "cu126"
    SetUp(need, console).run()
    stamp, verdict = need.judged()
    assert verdict is Verdict.FRESH
    assert stamp is not None
    assert (stamp["engine"], stamp["wanted"]) == ("cu126", "cu126")
    need.wanted_build = "cu999"
    with pytest.raises(SetupError, match="build cu999: choose auto, cpu"):
        SetUp(need, console).run()


def test_a_build_that_was_chosen_in_the_window_stays(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    BuildShelf(world.environment / "engines").write_wanted(Wanted(("cpu", "cu130"), "cu130"))
    SetUp(_need(root, world, extras=("test",)), console).run()
    assert world.done[-1] == "engine cu130"


def test_a_change_that_is_killed_is_not_built_from_nothing(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    need = _need(root, world)
    need.wanted_build = "cu126"
    world.is_killed = True
    with pytest.raises(KeyboardInterrupt):
        SetUp(need, console).run()
    again = _need(root, world)
    assert _verdict(again) is Verdict.UPDATE
    world.is_killed = False
    SetUp(again, console).run()
    assert again.judged()[0]["engine"] == "cpu"
    assert _verdict(again) is Verdict.FRESH


def test_the_newest_packages_are_installed_where_asked_for_and_stay(
    root: Path, world: World, console: Any
) -> None:
    SetUp(_need(root, world), console).run()
    for wish, expected in (
        ("newest", ["newest packages", "import numpy PySide6.QtWidgets", "engine auto"]),
        (None, []),
        ("tested", ["locked", "packages", "import numpy PySide6.QtWidgets", "engine auto"]),
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
    assert "import numpy" in world.done
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
