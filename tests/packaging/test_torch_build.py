from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from studio_setup import torch_build
from studio_setup.console import SetupError
from studio_setup.torch_build import install_torch, installed_torch

from gpu_studio.core.builds.trouble import (
    Trouble,
    TroubleError,
    no_network,
    proxy_refused,
    untrusted,
)
from gpu_studio.core.wheels import choice_of_tag

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

CPU = choice_of_tag("cpu", system="Linux")
CU126 = choice_of_tag("cu126", system="Linux")


def put_torch(environment: Path, version: str, cuda: str | None, called: str | None = None) -> None:
    folder = environment / "lib" / "python3.11" / "site-packages" / "torch"
    folder.mkdir(parents=True, exist_ok=True)
    meta = folder.parent / f"torch-{called or version}.dist-info"
    meta.mkdir(exist_ok=True)
    (meta / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: torch\nVersion: {called or version}\n", encoding="utf-8"
    )
    shown = "None" if cuda is None else f"'{cuda}'"
    (folder / "version.py").write_text(
        f"from typing import Optional\n__version__ = '{version}'\ndebug = False\n"
        f"cuda: Optional[str] = {shown}\nhip: Optional[str] = None\n",
        encoding="utf-8",
    )


class FakePip:
    """Notes what it is asked to install, and lets a rule decide what happens."""

    def __init__(self, environment: Path, console: Any, rule: Callable[[tuple[str, ...]], bool]):
        self.environment = environment
        self.console = console
        self.log_path = environment / "log.txt"
        self._rule = rule
        self.installed: list[tuple[str, ...]] = []
        self.uninstalled: list[str] = []

    def install(self, *arguments: str) -> bool:
        self.installed.append(arguments)
        return self._rule(arguments)

    def uninstall(self, name: str) -> bool:
        self.uninstalled.append(name)
        return True

    def failure(self, what: str) -> SetupError:
        return SetupError(f"{what} failed.")


WHEEL = "torch-2.13.0-any.whl"


@pytest.fixture
def download(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Trouble | None], None]:
    """Let the download succeed, or fail for a reason."""

    def set_outcome(trouble: Trouble | None) -> None:
        def fake(choice: object, folder: Path, *_: object) -> Path:
            if trouble is not None:
                raise TroubleError(trouble)
            folder.mkdir(parents=True, exist_ok=True)
            (folder / WHEEL).write_bytes(b"")
            return folder / WHEEL

        monkeypatch.setattr(torch_build, "download_torch", fake)

    return set_outcome


def test_a_local_wheel_is_taken_before_any_index_is_asked(
    tmp_path: Path, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> Path:
        raise AssertionError("an index was asked")

    monkeypatch.setattr(torch_build, "download_torch", fail)

    def rule(arguments: tuple[str, ...]) -> bool:
        put_torch(tmp_path, "2.13.0+cpu", None)
        return True

    pip = FakePip(tmp_path, console, rule)
    assert install_torch(pip, CPU) == "torch==2.13.0+cpu"
    assert pip.installed == [("--no-index", "--no-deps", "torch==2.13.0")]


def test_without_a_local_wheel_the_exact_build_comes_from_its_index(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None]
) -> None:
    download(None)

    def rule(arguments: tuple[str, ...]) -> bool:
        put_torch(tmp_path, "2.13.0+cu126", "12.6")
        return arguments[-1].endswith(".whl")

    pip = FakePip(tmp_path, console, rule)
    assert install_torch(pip, CU126) == "torch==2.13.0+cu126"
    wheel = tmp_path / "downloads" / WHEEL
    assert pip.installed == [
        ("--no-index", "--no-deps", "torch==2.13.0+cu126"),
        ("--no-index", "--no-deps", str(wheel)),
    ]
    assert not wheel.exists()  # it is installed


def test_a_wheel_of_pypi_is_kept_under_the_name_that_pip_finds_again(
    tmp_path: Path, console: Any
) -> None:
    def rule(arguments: tuple[str, ...]) -> bool:
        put_torch(tmp_path, "2.13.0+cpu", None, called="2.13.0")
        return True

    assert install_torch(FakePip(tmp_path, console, rule), CPU) == "torch==2.13.0"


@pytest.mark.parametrize("trouble", [untrusted("x"), proxy_refused("x")])
def test_pip_tries_where_the_download_is_refused_and_a_mirror_comes_last(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None], trouble: Trouble
) -> None:
    """Pip has its own certificates and settings for a proxy."""
    download(trouble)

    def rule(arguments: tuple[str, ...]) -> bool:
        if arguments != ("--no-deps", "torch==2.13.0+cu126"):
            return False
        put_torch(tmp_path, "2.13.0+cu126", "12.6")
        return True

    pip = FakePip(tmp_path, console, rule)
    assert install_torch(pip, CU126) == "torch==2.13.0+cu126"
    assert [arguments.count("--index-url") for arguments in pip.installed] == [0, 1, 0]


def test_no_install_merges_two_indexes(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None]
) -> None:
    for answer in (None, no_network("x"), untrusted("x")):
        download(answer)
        for choice in (CPU, CU126):
            pip = FakePip(tmp_path, console, lambda arguments: False)
            with pytest.raises(SetupError):
                install_torch(pip, choice)
            assert not any("--extra-index-url" in arguments for arguments in pip.installed)


def test_a_local_cuda_wheel_does_not_stay_on_a_pc_without_a_card(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None]
) -> None:
    download(None)

    def rule(arguments: tuple[str, ...]) -> bool:
        is_local = not arguments[-1].endswith(".whl")
        put_torch(tmp_path, *(("2.13.0", "13.0") if is_local else ("2.13.0+cpu", None)))
        return True

    pip = FakePip(tmp_path, console, rule)
    assert install_torch(pip, CPU) == "torch==2.13.0+cpu"
    assert pip.uninstalled == ["torch"]
    assert pip.installed[-1][-1].endswith(WHEEL)


def test_an_unreachable_index_is_named_and_never_waited_for(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None]
) -> None:
    download(no_network("download.pytorch.org"))
    pip = FakePip(tmp_path, console, lambda arguments: False)
    with pytest.raises(SetupError, match=r"Cannot reach download\.pytorch\.org"):
        install_torch(pip, CPU)
    assert pip.installed[1:] == [("--no-deps", "torch==2.13.0+cpu")]


def test_an_index_without_the_build_is_a_failure(
    tmp_path: Path, console: Any, download: Callable[[Trouble | None], None]
) -> None:
    download(None)
    pip = FakePip(tmp_path, console, lambda arguments: False)
    with pytest.raises(SetupError, match=r"Installing torch==2\.13\.0\+cu126 failed"):
        install_torch(pip, CU126)


def test_the_installed_build_is_read_without_importing_it(tmp_path: Path) -> None:
    assert installed_torch(tmp_path) is None
    put_torch(tmp_path, "2.13.0+cpu", None)
    assert installed_torch(tmp_path) == ("2.13.0+cpu", None)
    put_torch(tmp_path, "2.13.0", "13.0")
    assert installed_torch(tmp_path) == ("2.13.0", "13.0")
