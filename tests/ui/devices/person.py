"""What somebody does on the Devices tab, and reads from it."""

from __future__ import annotations

from PySide6.QtCore import QCoreApplication, QEvent
from PySide6.QtWidgets import QLabel, QWidget

from gpu_studio.ui.devices.fact_grid import FactGrid


def start(qtbot, studio, tab):
    tab.show()
    studio.start()
    qtbot.waitUntil(lambda: studio.session.state.is_idle and studio.sensors.inventory is not None)
    settle(qtbot, tab)


def settle(qtbot, tab):
    """Wait until the facts, which are built one group at a time, are all there."""
    qtbot.waitUntil(lambda: tab.findChild(FactGrid).is_built)


def show_reading(qtbot, studio, sensor_source, taken):
    with qtbot.waitSignal(studio.sensors.reading_taken):
        sensor_source.send(taken)
    QCoreApplication.sendPostedEvents(None, QEvent.Type.MetaCall.value)


def find(tab, kind, name):
    found = tab.findChild(kind, name)
    assert found is not None, name
    return found


def catch_up(tab):
    """Let the tab show what has changed, which it does in turns of the event loop of their own."""
    while not tab.is_up_to_date:
        QCoreApplication.processEvents()


def said(tab, name):
    catch_up(tab)
    return find(tab, QLabel, name).text().replace("\u202f", " ").replace("\u00a0", " ")


def is_shown(tab, name):
    catch_up(tab)
    found = tab.findChild(QWidget, name)
    return found is not None and found.isVisible()


def found(studio, code):
    """Return the sentence of a finding, by its code."""
    return next(one.sentence for one in studio.doctor.findings if one.code == code)
