"""Looking closer at a plot: by keys, by the wheel, and back to everything."""

from __future__ import annotations

import numpy as np
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QWheelEvent
from PySide6.QtWidgets import QApplication, QPushButton

from gpu_studio.ui.plots.live_plot import Curve
from tests.ui.plots.drawn import drawn, spiky


def test_looking_closer_shows_every_sample_there(qtbot, shown):
    series = spiky()
    plot = shown(steady=True, zoomable=True)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    plot.setFocus()
    for _ in range(11):
        qtbot.keyClick(plot, Qt.Key.Key_Plus)
    (left, right), _ = plot.plot.viewRange()
    assert 20 < right - left < 200
    xs, ys = drawn(plot, "a")
    inside = (xs >= left) & (xs <= right)
    assert xs[inside].tolist() == list(range(int(np.ceil(left)), int(np.floor(right)) + 1))
    assert (ys == series.values[xs.astype(int) - 1]).all()
    # What grows elsewhere does not move what somebody looks at.
    series.append([9.0] * 100_000)
    plot.refresh()
    assert plot.plot.viewRange()[0] == [left, right]


def test_the_keys_move_and_show_everything_again(qtbot, shown):
    series = spiky(5000)
    plot = shown(steady=True, zoomable=True)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    everything = plot.plot.viewRange()
    show_all = plot.findChild(QPushButton, "plot.all")
    assert not show_all.isVisible()
    qtbot.keyClick(plot, Qt.Key.Key_Plus)
    closer = plot.plot.viewRange()
    assert show_all.isVisible()
    qtbot.keyClick(plot, Qt.Key.Key_Right)
    assert plot.plot.viewRange()[0][0] > closer[0][0]
    qtbot.keyClick(plot, Qt.Key.Key_Left)
    qtbot.keyClick(plot, Qt.Key.Key_Up)
    assert plot.plot.viewRange()[1][0] > closer[1][0]
    qtbot.keyClick(plot, Qt.Key.Key_Down)
    qtbot.keyClick(plot, Qt.Key.Key_Minus)
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    assert np.allclose(plot.plot.viewRange(), everything)
    assert not show_all.isVisible()
    qtbot.keyClick(plot, Qt.Key.Key_Plus)
    qtbot.mouseClick(show_all, Qt.MouseButton.LeftButton)
    assert np.allclose(plot.plot.viewRange(), everything)


def test_the_wheel_looks_closer_as_well(qtbot, shown):
    series = spiky(5000)
    plot = shown(steady=True, zoomable=True)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    (left, right), _ = plot.plot.viewRange()
    viewport = plot.plot.viewport()
    middle = QPointF(viewport.rect().center())
    turn = QWheelEvent(
        middle, viewport.mapToGlobal(middle), QPoint(), QPoint(0, 480), Qt.MouseButton.NoButton,
        Qt.KeyboardModifier.NoModifier, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewport, turn)
    closer = plot.plot.viewRange()[0]
    assert closer[1] - closer[0] < right - left
    assert plot.findChild(QPushButton, "plot.all").isVisible()
    series.append([1.0] * 20_000)
    plot.refresh()
    assert plot.plot.viewRange()[0] == closer


def test_the_tab_key_leaves_a_plot_that_was_reached(qtbot, shown):
    plot = shown(zoomable=True)
    assert plot.focusPolicy() is Qt.FocusPolicy.StrongFocus
    assert not plot._zoom.eventFilter(
        plot, QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier)
    )
