from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpu_studio.builds.plan import Planner
from gpu_studio.core.wheel_table import TorchBuild, WheelTable
from tests.builds.wheel_server import WheelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


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
