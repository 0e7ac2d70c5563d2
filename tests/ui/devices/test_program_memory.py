"""The bars of the programs that use a card's memory."""

from __future__ import annotations

import pytest

from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.ui.devices.device_details import ProgramMemory
from gpu_studio.ui.result_bars import ResultBars
from tests.driving.window import find, numbers, plain, sees, text

MIB = 1 << 20


@pytest.fixture
def card(qtbot, theme):
    created = ProgramMemory(theme)
    qtbot.addWidget(created)
    return created


def bars(card) -> list[tuple[str, str]]:
    return [(bar.name, plain(bar.text)) for bar in find(card, "devices.programs", ResultBars).bars]


def test_the_largest_comes_first_and_a_program_is_named_once(card):
    card.show_programs(
        [
            GpuProcess(pid=1, name="/usr/lib/xorg/Xorg", memory_bytes=96 * MIB),
            GpuProcess(pid=2, name="firefox", memory_bytes=88 * MIB),
            GpuProcess(pid=3, name=r"C:\Program Files\firefox", memory_bytes=100 * MIB),
            GpuProcess(pid=4, name="hidden"),
        ],
        "444 MiB of 2 GiB",
        "gpu0",
    )
    assert bars(card) == [("firefox", "188 MiB"), ("Xorg", "96 MiB")]
    assert numbers(text(card, "devices.programs.total")) == ["444", "2"]


def test_a_driver_that_reports_no_memory_gets_no_bars(card):
    card.show_programs([GpuProcess(pid=1, name="Xorg")], "", "gpu0")
    assert not sees(card, "devices.programs")
    assert card.isHidden()
