"""The setup downloads PyTorch as the window does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from studio_setup.console import SetupError
from studio_setup.torch_download import download_torch

from gpu_studio.core.builds.trouble import TroubleError, TroubleKind
from gpu_studio.core.wheel_table import TorchBuild, WheelTable
from gpu_studio.core.wheels import choice_of_tag
from tests.builds.indexes import TORCH, put_torch
from tests.builds.wheel_server import WheelServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CPU = choice_of_tag("cpu", system="Linux")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelServer]:
    monkeypatch.setenv("no_proxy", "*")
    with WheelServer() as server:
        yield server


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


def downloaded(server: WheelServer, folder: Path, console: Any) -> Path:
    table = WheelTable("9.1.0", (TorchBuild("cpu", f"{server.url}/whl/cpu", {}, {}, 0),))
    return download_torch(CPU, folder, console, Clock(), table)


def test_the_wheel_arrives_with_its_progress(
    server: WheelServer, tmp_path: Path, console: Any
) -> None:
    served = put_torch(server)
    path = downloaded(server, tmp_path / "downloads", console)
    assert path.name == TORCH
    assert path.read_bytes() == served.content
    assert console.details[-1][1] == 1.0


def test_a_stop_keeps_the_part_for_the_next_start(
    server: WheelServer, tmp_path: Path, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = put_torch(server, ballast=bytes(range(256)) * 40_000)
    served.breaks_after = [1000]
    detail = console.detail

    def stopping(text: str, fraction: float | None) -> None:
        detail(text, fraction)
        if fraction:
            console.stop()

    monkeypatch.setattr(console, "detail", stopping)
    with pytest.raises(SetupError, match="continues"):
        downloaded(server, tmp_path, console)
    monkeypatch.undo()
    monkeypatch.setenv("no_proxy", "*")
    assert downloaded(server, tmp_path, console).read_bytes() == served.content
    assert server.ranges_of(f"/whl/cpu/{TORCH}")[-1].startswith("bytes=")


def test_what_is_not_there_is_told(server: WheelServer, tmp_path: Path, console: Any) -> None:
    with pytest.raises(TroubleError) as raised:
        downloaded(server, tmp_path, console)
    assert raised.value.trouble.kind is TroubleKind.SERVER
