"""What a person waits for in the Devices tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QCoreApplication, QEvent

from tests.driving.window import click, sees, wait_ready, wait_until

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Reading
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.devices.devices_tab import DevicesTab
    from tests.fakes.pc import SteadySensors


def start(studio: Studio, tab: DevicesTab) -> None:
    """Show the tab and start the program; unfold everything and wait until it stands there."""
    tab.show()
    studio.start()
    wait_ready(studio)
    click(tab, "devices.facts")
    settle(tab)
    if sees(tab, "devices.sensors.all"):  # a card that cannot be read has no sensors
        click(tab, "devices.sensors.all")
    settle(tab)


def settle(tab: DevicesTab) -> None:
    """Wait until the tab shows every change."""
    wait_until(lambda: tab.is_up_to_date)


def show_reading(studio: Studio, sensor_source: SteadySensors, taken: Reading) -> None:
    """Send a reading, and wait until the window has taken it."""
    taken_over: list[object] = []
    studio.sensors.reading_taken.connect(taken_over.append)
    sensor_source.send(taken)
    wait_until(lambda: taken_over)
    studio.sensors.reading_taken.disconnect(taken_over.append)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)


def found(studio: Studio, code: str) -> str:
    """Return the sentence of a finding, by its code."""
    return next(one.sentence for one in studio.doctor.findings if one.code == code)
