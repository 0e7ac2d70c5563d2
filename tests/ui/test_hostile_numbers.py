"""Numbers from texts and drivers that no widget may hand on to Qt as they are.

An integer of more than 32 bits, or a float that is none, raises inside the method that Qt calls to
paint or to measure; with some versions of PySide the window's process ends there.
"""

from typing import Any

import msgspec
import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QTabWidget

from gpu_studio.core.devices.devices import GpuProcess, decode_sensor_event, encode_sensor_event
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.model.memory.fit_model import ERROR
from gpu_studio.model.memory.memory_model import MemoryModel
from gpu_studio.ui.main_window import MainWindow
from gpu_studio.ui.memory.fit_page import FitPage
from tests.driving.memory import shown
from tests.driving.window import find, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import reading, two_cards

_SENSORS = (2**64 - 1, 2**63, 2**31, -1, -(2**63), 0)
_LONG = "9" * 400


@pytest.fixture
def inventory():
    return two_cards()


def strange_reading(number: int, taken_at_s: float) -> Any:
    """Return a reading, as the reader's line has it, in which each number is this one."""
    values = {
        name: number if {"int", "ClockReason"} & set(str(kind).split()) else float(number)
        for name, kind in Telemetry.__annotations__.items()
        if "bool" not in kind
    }
    taken = reading(two_cards(), taken_at_s, **values)
    process = GpuProcess(pid=number, name="x" * 10_000, memory_bytes=number)
    cards = tuple(msgspec.structs.replace(card, processes=(process,)) for card in taken.cards)
    return decode_sensor_event(encode_sensor_event(msgspec.structs.replace(taken, cards=cards)))


def test_sensors_of_a_broken_driver_are_shown_in_every_tab(
    qtbot, studio, theme, engines, sensor_source
):
    engines.scripts[DescribeEngine] = [described_with_cuda(device_count=2)]
    window = MainWindow(studio, theme)
    qtbot.addWidget(window)
    window.show()
    qtbot.waitUntil(lambda: studio.session.description is not None)
    tabs = find(window, "tabs", QTabWidget)
    for second, number in enumerate(_SENSORS):
        for tab in range(tabs.count()):
            tabs.setCurrentIndex(tab)
            event = strange_reading(number, 10.0 * second + tab)
            with qtbot.waitSignal(studio.sensors.reading_taken):
                sensor_source.send(event)
            QCoreApplication.processEvents()
    window.close()


@pytest.mark.parametrize("number", [_LONG, f"{_LONG}.{_LONG}", "nan", "inf", "1e999", "-1", "0"])
def test_an_error_with_strange_numbers_is_read_or_refused(qtbot, theme, ready_studio, number):
    page = shown(qtbot, FitPage(MemoryModel(ready_studio, ready_studio), theme))
    page.model.choose(way=ERROR)
    before = text(page, "memory.fit.verdict")
    page.model.paste(
        f"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {number} GiB. GPU 0 has a "
        f"total capacity of {number} GiB of which {number} GiB is free. Of the allocated memory "
        f"{number} GiB is allocated by PyTorch, and {number} GiB is reserved by PyTorch."
    )
    qtbot.waitUntil(lambda: text(page, "memory.fit.verdict") != before)
    QCoreApplication.processEvents()
    assert text(page, "memory.fit.verdict")
