"""Looking closer at a plot: by keys, by the wheel, and back to everything."""

from __future__ import annotations

import numpy as np
import pytest
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


def turn_wheel(plot, degrees, *, control=True):
    """Turn the wheel above the middle of a plot; return whether the plot took it."""
    viewport = plot.plot.viewport()
    middle = QPointF(viewport.rect().center())
    keys = Qt.KeyboardModifier.ControlModifier if control else Qt.KeyboardModifier.NoModifier
    turn = QWheelEvent(
        middle, viewport.mapToGlobal(middle), QPoint(), QPoint(0, degrees * 8),
        Qt.MouseButton.NoButton, keys, Qt.ScrollPhase.NoScrollPhase, False,
    )  # fmt: skip
    QApplication.sendEvent(viewport, turn)
    QApplication.processEvents()  # it is painted before the next one: that is where places are
    return turn.isAccepted()


def test_the_wheel_looks_closer_with_control(qtbot, shown):
    series = spiky(5000)
    plot = shown(steady=True, zoomable=True)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    (left, right), _ = plot.plot.viewRange()
    turn_wheel(plot, 60)
    closer = plot.plot.viewRange()[0]
    assert closer[1] - closer[0] < right - left
    assert plot.findChild(QPushButton, "plot.all").isVisible()
    series.append([1.0] * 20_000)
    plot.refresh()
    assert plot.plot.viewRange()[0] == closer


@pytest.mark.parametrize("zoomable", [True, False])
def test_the_wheel_alone_is_left_to_the_page(qtbot, shown, zoomable):
    series = spiky(5000)
    plot = shown(steady=True, zoomable=zoomable)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    before = plot.plot.viewRange()
    assert not turn_wheel(plot, 60, control=False)
    assert zoomable or not turn_wheel(plot, 60)
    assert zoomable or plot.plot.viewRange() == before


@pytest.mark.parametrize("steady", [True, False])
def test_nobody_gets_lost_outside_of_the_data(qtbot, shown, steady):
    series = spiky(5000)
    plot = shown(steady=steady, zoomable=True, x_unit="count")
    points = np.arange(1.0, 5001.0), series.values[:5000]
    plot.set_curve("a", Curve("A", "cpu", lambda: series if steady else points))
    QApplication.processEvents()
    plot.plot.plotItem.vb.updateAutoRange()
    everything = plot.plot.viewRange()
    show_all = plot.findChild(QPushButton, "plot.all")
    for _ in range(20):
        turn_wheel(plot, 120)
    (left, right), (low, high) = plot.plot.viewRange()
    assert right - left >= 2 - 1e-6
    assert high - low >= 1e-5 * (everything[1][1] - everything[1][0])
    assert show_all.isVisible()
    for _ in range(200):
        qtbot.keyClick(plot, Qt.Key.Key_Left)
    (left, right), _ = plot.plot.viewRange()
    assert right > everything[0][0]
    for _ in range(20):
        turn_wheel(plot, -120)
    for ends, whole in zip(plot.plot.viewRange(), everything, strict=True):
        assert np.allclose(ends, whole, atol=0.01 * (whole[1] - whole[0]))
    assert not show_all.isVisible()


def test_the_tab_key_leaves_a_plot_that_was_reached(qtbot, shown):
    plot = shown(zoomable=True)
    assert plot.focusPolicy() is Qt.FocusPolicy.StrongFocus
    assert not plot._zoom.eventFilter(
        plot, QKeyEvent(QKeyEvent.Type.KeyPress, Qt.Key.Key_Tab, Qt.KeyboardModifier.NoModifier)
    )
