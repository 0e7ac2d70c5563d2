from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from gpu_studio.builds import plan
from gpu_studio.core.wheel_table import TorchBuild, WheelTable
from tests.builds.forked_pip import AS_IT_IS, forked_pip
from tests.builds.wheel_server import WheelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def server() -> Iterator[WheelServer]:
    with WheelServer() as server:
        yield server


@pytest.fixture(autouse=True)
def _own_pip(monkeypatch: pytest.MonkeyPatch, server: WheelServer) -> None:
    """Let pip ask only this test's server, without a proxy, and spare it its imports."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.setenv(name, "*")
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"{server.url}/simple")
    monkeypatch.setenv("PIP_NO_CACHE_DIR", "1")
    monkeypatch.setattr(plan, "run_pip", forked_pip)
    monkeypatch.setattr(plan, "_PYPI_FILES", "127.0.0.1")


@pytest.fixture
def pip_as_it_is(_own_pip: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let pip be started as it is for a user."""
    monkeypatch.setattr(plan, "run_pip", AS_IT_IS)


@pytest.fixture
def wheel_table(server: WheelServer) -> WheelTable:
    tags = ("cpu", "cu126")
    builds = tuple(TorchBuild(tag, f"{server.url}/whl/{tag}", {}, {}) for tag in tags)
    return WheelTable("9.1.0", builds)
