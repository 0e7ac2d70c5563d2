import numpy as np
import pytest
from PySide6.QtCore import QPoint, QPointF, Qt
from PySide6.QtGui import QImage, QPainter, QWheelEvent
from PySide6.QtWidgets import QApplication, QPushButton

from gpu_studio.core.series import Series
from gpu_studio.ui.plots.live_plot import Curve


def test_labels_at_the_ends_have_room(qtbot, theme):
    from gpu_studio.ui.plots.live_plot import AxesStyle, Curve, LivePlot

    plot = LivePlot(theme, AxesStyle(y_unit="°C"), name="plot")
    plot.set_curve("a", Curve("", "cpu", lambda: ([0.0, 60.0], [0.0, 100.0])))
    plot.set_x_range(0.0, 60.0)
    plot.set_y_range(0.0, 100.0)
    qtbot.addWidget(plot)
    plot.setFixedSize(400, 110)
    plot.show()
    qtbot.waitUntil(lambda: plot.plot is not None)
    plot.plot.grab()
    sheet = QImage(10, 10, QImage.Format.Format_ARGB32)
    for side, texts in (("left", {"0", "50", "100"}), ("bottom", {"60"})):
        axis = plot.plot.getAxis(side)
        painter = QPainter(sheet)
        _, _, labels = axis.generateDrawSpecs(painter)
        painter.end()
        drawn = {text: rect for rect, _, text in labels}
        assert texts <= set(drawn)
        for text in texts:
            assert plot.plot.sceneRect().contains(axis.mapRectToScene(drawn[text])), text


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


def show_spikes(shown, count, **options):
    """Show a series on axes that stay."""
    series, plot = spiky(count), shown(**options)
    plot.set_curve("a", Curve("A", "cpu", lambda: series))
    plot.set_x_range(0.0, float(count))
    plot.set_y_range(0.0, 6.0)
    return series, plot


def test_looking_closer_shows_every_sample_there(qtbot, shown):
    series, plot = show_spikes(shown, 200_000, zoomable=True)
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
    _, plot = show_spikes(shown, 5000, zoomable=True)
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


@pytest.mark.parametrize("zoomable", [True, False])
def test_the_wheel_alone_is_left_to_the_page(qtbot, shown, zoomable):
    _, plot = show_spikes(shown, 5000, zoomable=zoomable)
    before = plot.plot.viewRange()
    assert not turn_wheel(plot, 60, control=False)
    assert zoomable or not turn_wheel(plot, 60)
    assert zoomable or plot.plot.viewRange() == before


def test_any_zoom_is_drawn_and_everything_comes_back(qtbot, shown):
    _, plot = show_spikes(shown, 5000, zoomable=True)
    everything = plot.plot.viewRange()
    for degrees in (120, -120):
        for _ in range(120):
            turn_wheel(plot, degrees)
    qtbot.keyClick(plot, Qt.Key.Key_Home)
    assert np.allclose(plot.plot.viewRange(), everything)


def drawn(plot, key):
    return plot._curves[key].item.getOriginalDataset()


def series_of(values):
    series = Series()
    series.append(values)
    return series


def spiky(count=200_000):
    values = np.random.default_rng(3).normal(1.0, 0.01, count)
    values[[9, count // 2, count - 1]] = 5.0
    return series_of(values)
