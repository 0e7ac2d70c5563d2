"""What a person does on the Devices tab, and waits for."""

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QPushButton, QWidget

from gpu_studio.core.devices.devices import Reading
from gpu_studio.model.studio import Studio
from gpu_studio.ui.devices.devices_tab import DevicesTab
from gpu_studio.ui.devices.pc_part import DeviceButton
from tests.driving.window import find, wait_ready, wait_until
from tests.fakes.pc import SteadySensors


def more(root: QWidget) -> list[QAction]:
    """Return what the menu of More offers now."""
    menu = find(root, "devices.more", QPushButton).menu()
    menu.aboutToShow.emit()
    return [action for action in menu.actions() if not action.isSeparator()]


def choose_more(root: QWidget, words: str) -> None:
    """Choose what begins with these words from the menu of More."""
    action = next(one for one in more(root) if one.text().startswith(words))
    assert action.isEnabled(), words
    action.trigger()


def devices(root: QWidget, name: str = "devices.table") -> list[DeviceButton]:
    """Return the devices of this PC, or of another one by the name of its list."""
    return [one for one in find(root, name).findChildren(DeviceButton) if not one.isHidden()]


def device_names(root: QWidget) -> list[str]:
    """Return the names of this PC's devices."""
    return [one.device.name for one in devices(root) if one.device is not None]


def start(studio: Studio, tab: DevicesTab) -> None:
    """Show the tab and start the program; then show all facts and all sensors."""
    tab.show()
    studio.start()
    wait_ready(studio)
    choose_more(tab, "All facts")
    choose_more(tab, "All sensors")


def show_reading(studio: Studio, sensor_source: SteadySensors, taken: Reading) -> None:
    taken_over: list[object] = []
    studio.sensors.reading_taken.connect(taken_over.append)
    sensor_source.send(taken)
    wait_until(lambda: taken_over)
    studio.sensors.reading_taken.disconnect(taken_over.append)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)


def found(studio: Studio, code: str) -> str:
    """Return the sentence of a finding, by its code."""
    return next(one.sentence for one in studio.doctor.findings if one.code == code)
