from __future__ import annotations

import hashlib
import os
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any

import pytest
import write_locks
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from studio_setup import locked_packages, pip_runner
from studio_setup.console import Log, SetupError
from studio_setup.environment import read_project
from studio_setup.locked_packages import install_locked
from studio_setup.pip_runner import Pip
from write_locks import Package, lock_text, packages_in

from gpu_studio.builds.lock_file import lines_of

if TYPE_CHECKING:
    from pathlib import Path

    from packaging.markers import Marker

PLATFORMS = {"linux-x86_64": ("linux", "Linux"), "windows-x86_64": ("win32", "Windows")}


def _requirement(line: str) -> tuple[Requirement, list[str]]:
    words = line.split(" --hash=sha256:")
    return Requirement(words[0]), words[1:]


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("minor", [10, 14])
def test_a_lock_has_every_package_of_every_python_with_its_hash(
    root: Path, platform: str, minor: int
) -> None:
    lock = (root / "packaging" / "locks" / f"{platform}.txt").read_text(encoding="utf-8")
    sys_platform, system = PLATFORMS[platform]
    environment = {
        "python_version": f"3.{minor}",
        "python_full_version": f"3.{minor}.0",
        "sys_platform": sys_platform,
        "platform_system": system,
    }

    def applies(marker: Marker | None) -> bool:
        return marker is None or marker.evaluate(environment)

    pins = {}
    for line in lines_of(lock, ("run", "test")):
        requirement, hashes = _requirement(line)
        assert hashes, line
        assert all(len(one) == 64 and int(one, 16) for one in hashes), line
        if applies(requirement.marker):
            assert requirement.name not in pins, "one version for a Python"
            [pin] = requirement.specifier
            pins[requirement.name] = pin.version
    project = read_project(sys.executable, root / "pyproject.toml")
    wanted = list(project["dependencies"])
    for extra in project["optional-dependencies"].values():
        wanted += extra
    for requirement in map(Requirement, wanted):
        if requirement.name != "torch" and applies(requirement.marker):
            version = pins[canonicalize_name(requirement.name)]
            assert requirement.specifier.contains(version), requirement


def test_a_lock_gives_the_sections_that_are_wanted() -> None:
    lock = "# Made by\n\n# [run]\na==1\n\n# [test]\nb==2\n\n# [cu130]\nc==3\n"
    assert lines_of(lock, ("run",)) == ["a==1"]
    assert lines_of(lock, ("run", "cu130", "test")) == ["a==1", "b==2", "c==3"]
    assert lines_of("", ("run",)) == []


def test_a_lock_is_written_with_a_marker_only_where_pythons_differ() -> None:
    old, new = Package("numpy", "2.2.6", ("aa",)), Package("numpy", "2.4.6", ("bb",))
    other = [Package("psutil", "7.0", (one,)) for one in ("cc", "cc", "dd")]
    text = lock_text(
        {"run": {10: [old, other[0]], 11: [new, other[1]], 12: [new, other[2]]}}, "Made by a test."
    )
    assert text.splitlines() == [
        "# Made by a test.",
        "",
        "# [run]",
        'numpy==2.2.6 ; python_version == "3.10" --hash=sha256:aa',
        'numpy==2.4.6 ; python_version == "3.11" or python_version == "3.12" --hash=sha256:bb',
        "psutil==7.0 --hash=sha256:cc --hash=sha256:dd",
    ]
    for line in lines_of(text, ("run",)):
        _requirement(line)


def test_only_a_platforms_own_wheels_are_locked() -> None:
    pylock = "".join(
        f'[[packages]]\nname = "{name}"\nversion = "1"\nwheels = [{{ url = "https://x/{file}", '
        f'hashes = {{ sha256 = "{digest}" }} }}]\n'
        for name, file, digest in (
            ("a", "a-1-py3-none-any.whl", "aa"),
            ("b", "b-1-cp311-cp311-win_amd64.whl", "bb"),
            ("c", "c-1-cp311-cp311-manylinux_2_28_x86_64.whl", "cc"),
        )
    )
    endings = write_locks._PLATFORMS["windows-x86_64"][1]
    assert [one.hashes for one in packages_in(pylock, endings)] == [("aa",), ("bb",), ()]


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with pip, which is the real one in what follows."""
    folder = tmp_path_factory.mktemp("locked") / "env"
    subprocess.run([sys.executable, "-I", "-m", "venv", str(folder)], check=True)
    return folder


class Place:
    """An index on this disk with one package, and a checkout that locks it."""

    def __init__(self, folder: Path, platform_key: str) -> None:
        self.url = (folder / "index").as_uri()
        self.wheel = folder / "index" / "greeting" / "greeting-1.0-py3-none-any.whl"
        self.wheel.parent.mkdir(parents=True)
        with zipfile.ZipFile(self.wheel, "w") as archive:
            archive.writestr("greeting.py", "WORD = 'hello'\n")
            meta = "Metadata-Version: 2.1\nName: greeting\nVersion: 1.0\n"
            archive.writestr("greeting-1.0.dist-info/METADATA", meta)
            archive.writestr(
                "greeting-1.0.dist-info/WHEEL",
                "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
            )
            archive.writestr("greeting-1.0.dist-info/RECORD", "")
        page = f'<a href="{self.wheel.name}">{self.wheel.name}</a>'
        (self.wheel.parent / "index.html").write_text(page, encoding="utf-8")
        self.root = folder
        self.lock = folder / "packaging" / "locks" / f"{platform_key}.txt"
        self.lock.parent.mkdir(parents=True)
        self.digest = hashlib.sha256(self.wheel.read_bytes()).hexdigest()

    def write(self, version: str, digest: str) -> None:
        self.lock.write_text(
            f"# [run]\ngreeting=={version} --hash=sha256:{digest}\n", encoding="utf-8"
        )


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """pip asks the test's index, and nothing that this PC's pip is configured with."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setattr(locked_packages, "platform_key", lambda *_: "this-pc")
    place = Place(tmp_path, "this-pc")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", place.url)
    return place


def _installed(environment: Path) -> bool:
    return any(environment.rglob("greeting.py"))


def test_a_file_with_its_hash_is_installed(
    environment: Path, place: Place, console: Any, tmp_path: Path
) -> None:
    pip = Pip(environment, console, Log(tmp_path / "log.txt"))
    place.write("1.0", place.digest)
    install_locked(pip, place.root, with_tests=False)
    assert _installed(environment)
    pip.run("uninstall", "--yes", "greeting")
    assert console.lines == []


def test_a_file_with_another_hash_stops_the_set_up_where_only_pypi_is_asked(
    environment: Path,
    place: Place,
    console: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pip_runner, "_PYPI", place.url)
    pip = Pip(environment, console, Log(tmp_path / "log.txt"))
    place.write("1.0", "0" * 64)
    with pytest.raises(SetupError, match=r"not installed.*--packages newest"):
        install_locked(pip, place.root, with_tests=False)
    assert not _installed(environment)


@pytest.mark.parametrize(
    ("version", "words"), [("1.0", "other files than PyPI"), ("1.1", "using other versions")]
)
def test_a_mirror_of_the_users_or_a_version_that_is_gone_is_reported_and_goes_on(
    environment: Path, place: Place, console: Any, tmp_path: Path, version: str, words: str
) -> None:
    pip = Pip(environment, console, Log(tmp_path / "log.txt"))
    place.write(version, "0" * 64)
    install_locked(pip, place.root, with_tests=False)
    assert not _installed(environment)
    [line] = console.lines
    assert words in line


def test_without_a_lock_for_this_kind_of_pc_nothing_is_asked(
    place: Place, console: Any, tmp_path: Path
) -> None:
    pip = Pip(tmp_path / "no environment", console, Log(tmp_path / "log.txt"))
    install_locked(pip, place.root, with_tests=False)
    assert console.lines == []


def test_a_place_of_the_users_is_known_from_pypi(
    environment: Path, place: Place, console: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pip = Pip(environment, console, Log(tmp_path / "log.txt"))
    assert pip.has_places_of_its_own()
    monkeypatch.setenv("PIP_INDEX_URL", "https://pypi.org/simple/")
    assert not pip.has_places_of_its_own()
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    assert pip.has_places_of_its_own()
