from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import pytest

from gpu_studio.builds import plan
from gpu_studio.builds.plan import Planner
from gpu_studio.core.wheel_table import TorchBuild, WheelTable
from tests.builds.wheel_server import WheelServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


PIP_MODULE = plan.pip_module


@pytest.fixture(autouse=True)
def _without_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let requests to this PC stay on it, whatever proxy it uses."""
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("NO_PROXY", "*")


@pytest.fixture
def server() -> Iterator[WheelServer]:
    with WheelServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _own_pip(monkeypatch: pytest.MonkeyPatch, server: WheelServer) -> None:
    """Let pip ask only this test's server."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")


@pytest.fixture(scope="session")
def imported_pip(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path | None]:
    """A script that is a pip without its imports; None where no process can fork."""
    if sys.platform != "linux":
        yield None
        return
    from tests.builds.warm_pip import warm_pip

    with warm_pip(tmp_path_factory.mktemp("pip")) as script:
        yield script


@pytest.fixture(autouse=True)
def _warm_pip(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spare pip its imports, but not in a test with `pip_as_it_is`."""
    script = request.getfixturevalue("imported_pip")
    if script is not None:
        monkeypatch.setattr(plan, "pip_module", lambda: script)


@pytest.fixture
def pip_as_it_is(_warm_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip be started as it is for a user."""
    monkeypatch.setattr(plan, "pip_module", PIP_MODULE)


@pytest.fixture
def wheel_table(server: WheelServer) -> WheelTable:
    tags = ("cpu", "cu126")
    builds = tuple(TorchBuild(tag, f"{server.url}/whl/{tag}", {}, {}) for tag in tags)
    return WheelTable("9.1.0", builds)


@pytest.fixture
def pip_set_up(monkeypatch: pytest.MonkeyPatch, server: WheelServer) -> None:
    """Let pip be started for the wheels alone, and not for its configuration as well.

    That names this test's server, no folder, and no mirror that has PyTorch; what it does
    otherwise is tested in test_plan.py.
    """
    monkeypatch.setattr(Planner, "_configured_folder", lambda _self, _tag: None)
    monkeypatch.setattr(Planner, "_configured_indexes", lambda _self: (f"{server.url}/simple",))
    monkeypatch.setattr(Planner, "_downloaded_by_pip", lambda _self, _tag: None)
