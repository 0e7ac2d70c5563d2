"""How the card of this PC stands among others of its kind, on Devices."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.benchmark import public_runs
from gpu_studio.core.benchmark.standard_folder import FOLDER_NAME, StandardFolder
from gpu_studio.core.benchmark.standard_record import encode_standard
from gpu_studio.ui.devices.devices_tab import DevicesTab
from tests.core.benchmark.standard_runs import CARD_NAME, paced_device, standard_run
from tests.driving.window import sees, text, wait_until
from tests.fakes.pc import two_cards

if TYPE_CHECKING:
    from pathlib import Path

    from pytestqt.qtbot import QtBot

    from gpu_studio.core.devices.devices import Inventory
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


@pytest.fixture
def inventory() -> Inventory:
    return two_cards()


@pytest.mark.parametrize("count", [0, 9])
def test_devices_says_how_your_card_compares_once_there_are_others(
    qtbot: QtBot,
    ready_studio: Studio,
    theme: Theme,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    count: int,
) -> None:
    files = []
    for number in range(count):
        files.append(tmp_path / f"{number}.json")
        run = standard_run(paced_device(CARD_NAME, 1.0 + number / 100))
        files[-1].write_bytes(encode_standard(run))
    monkeypatch.setattr(public_runs, "resource_files", lambda *_: tuple(files))
    StandardFolder(tmp_path / FOLDER_NAME).keep(standard_run(paced_device(CARD_NAME, 0.5)))
    ready_studio.data_folder = tmp_path
    tab = DevicesTab(ready_studio, theme)
    for part in tab.later:
        part.make()
    qtbot.addWidget(tab)
    tab.show()
    qtbot.waitUntil(lambda: not tab._standing._files.is_busy)
    if not count:
        assert not sees(tab, "devices.public")
        return
    wait_until(lambda: "PCs with your card: 9, yours is 52 % below" in text(tab, "devices.public"))
