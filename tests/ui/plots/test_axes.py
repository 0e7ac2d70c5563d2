"""Looking closer at a plot: by keys, by the wheel, and back to everything.

Looking closer at a plot: by keys, by the wheel, and back to everything.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QKeyEvent, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication, QPushButton

from gpu_studio.ui.plots.live_plot import Curve
from tests.ui.plots.drawn import drawn, spiky


@pytest.fixture
def seconds_ago(qapp):
    from gpu_studio.ui.plots.plot_canvas import UnitAxis

    axis = UnitAxis("bottom", "ago")

    def labels(minimum, maximum, pixels):
        spacing, values = axis.tickValues(minimum, maximum, pixels)[0]
        strings = axis.tickStrings(values, 1.0, spacing)
        return dict(zip(strings, values, strict=True))

    return labels


def test_seconds_are_counted_back_from_the_end(seconds_ago):
    labels = seconds_ago(1040.5, 1100.5, 260)
    assert {text.replace("\u202f", " "): value for text, value in labels.items()} == {
        "now": 1100.5, "−15 s": 1085.5, "−30 s": 1070.5, "−45 s": 1055.5, "−60 s": 1040.5,
    }  # fmt: skip


@pytest.mark.parametrize(("pixels", "step_s"), [(130, 30.0), (200, 20.0), (400, 10.0), (800, 5.0)])
def test_a_wider_axis_has_finer_steps(seconds_ago, pixels, step_s):
    values = sorted(seconds_ago(0.0, 60.0, pixels).values())
    assert {b - a for a, b in itertools.pairwise(values)} == {step_s}


def test_the_grid_stands_still_while_the_clock_runs(seconds_ago):
    first, second = seconds_ago(0.0, 60.0, 260), seconds_ago(1.0, 61.0, 260)
    assert list(first) == list(second)


def test_labels_at_the_ends_have_room(qtbot, theme):
    from gpu_studio.ui.plots.live_plot import Curve, LivePlot

    plot = LivePlot(theme, name="plot", x_unit="ago", y_unit="%")
    plot.set_curve("a", Curve("", "cpu", lambda: ([0.0, 60.0], [0.0, 100.0])))
    plot.set_x_range(0.0, 60.0)
    plot.set_y_range(0.0, 100.0)
    qtbot.addWidget(plot)
    plot.setFixedSize(400, 110)
    plot.show()
    qtbot.waitUntil(lambda: plot.plot is not None)
    plot.plot.grab()
    sheet = QImage(10, 10, QImage.Format.Format_ARGB32)
    for side, texts in (("left", {"0", "50", "100"}), ("bottom", {"now"})):
        axis = plot.plot.getAxis(side)
        painter = QPainter(sheet)
        _, _, labels = axis.generateDrawSpecs(painter)
        painter.end()
        drawn = {text: rect for rect, _, text in labels}
        assert texts <= set(drawn)
        for text in texts:
            assert plot.plot.sceneRect().contains(axis.mapRectToScene(drawn[text])), text


def test_an_axis_that_no_step_divides_still_ends_now(seconds_ago):
    assert seconds_ago(0.0, 50.0, 130) == {"now": 50.0, "−30\u202fs": 20.0}


def test_longer_whiles_are_counted_in_minutes(qapp):
    from gpu_studio.ui.plots.plot_canvas import UnitAxis

    axis = UnitAxis("bottom", "ago")
    ((spacing, ticks),) = axis.tickValues(400.0, 4000.0, 300)
    labels = axis.tickStrings(ticks, 1.0, spacing)
    assert [label.replace("\u202f", " ") for label in labels] == [
        "now", "−15 min", "−30 min", "−45 min", "−60 min",
    ]  # fmt: skip


def test_rates_carry_their_unit(qapp):
    from gpu_studio.ui.plots.plot_canvas import UnitAxis

    axis = UnitAxis("left", "B/s")
    assert [label.replace("\u202f", " ") for label in axis.tickStrings([0.0, 2e9], 1.0, 2e9)] == [
        "0", "2 GB/s",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("unit", "logarithmic", "low", "high", "labels"),
    [
        ("s", True, -6, -3, ["1\u202fµs", "10\u202fµs", "100\u202fµs", "1\u202fms"]),
        ("size", True, np.log10(64), np.log10(512), ["64", "128", "256", "512"]),
        ("bytes", False, 0, 1 << 30, ["0", "256\u202fMiB", "512\u202fMiB", "768\u202fMiB",
                                      "1\u202fGiB"]),
        ("", False, 0, 2000, ["0", "500", "1000", "1500", "2000"]),
        ("s", False, 0, 4e-5, ["0", "10\u202fµs", "20\u202fµs", "30\u202fµs", "40\u202fµs"]),
    ],
)  # fmt: skip
def test_axes_write_numbers_as_people_read_them(qapp, unit, logarithmic, low, high, labels):
    from gpu_studio.ui.plots.plot_canvas import UnitAxis

    axis = UnitAxis("left", unit, logarithmic=logarithmic)
    ((spacing, values),) = axis.tickValues(low, high, 28 * 5)
    assert axis.tickStrings(values, 1.0, spacing) == labels


@pytest.mark.parametrize(
    ("unit", "top"), [("%", 100.0), ("bytes", 2.0**31), ("bytes", 32 * 2.0**30)]
)
def test_a_high_axis_has_no_more_labels_than_are_read_at_a_glance(qapp, unit, top):
    from gpu_studio.ui.plots.plot_canvas import UnitAxis

    axis = UnitAxis("left", unit)
    low, high = (len(axis.tickValues(0.0, top, pixels)[0][1]) for pixels in (110, 900))
    assert 2 <= low <= high <= 11


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
