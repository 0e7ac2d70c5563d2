from __future__ import annotations

import numpy as np
import pytest

from gpu_studio.ui.live_plot import Curve, LivePlot


@pytest.fixture
def shown(qtbot, theme):
    """Show a plot, wait for its pyqtgraph part."""

    def show(**options):
        plot = LivePlot(theme, name="plot", **options)
        qtbot.addWidget(plot)
        plot.resize(400, 300)
        assert plot.plot is None
        plot.show()
        qtbot.waitUntil(lambda: plot.plot is not None)
        return plot

    return show


def drawn(plot, key):
    return plot._curves[key].item.getOriginalDataset()


def test_a_curve_given_before_the_plot_is_built_is_drawn(qtbot, theme):
    plot = LivePlot(theme, name="plot")
    qtbot.addWidget(plot)
    plot.set_curve("a", Curve("A", "cpu", lambda: ([0, 1], [5, 6])))
    plot.show()
    qtbot.waitUntil(lambda: plot.plot is not None)
    assert list(drawn(plot, "a")[1]) == [5, 6]


def test_a_curve_that_grew_is_drawn_at_the_next_frame(qtbot, shown):
    values = [1.0]
    plot = shown()
    plot.set_curve("a", Curve("A", "cpu", lambda: (range(len(values)), values)))
    assert list(drawn(plot, "a")[1]) == [1.0]
    values.append(2.0)
    qtbot.waitUntil(lambda: list(drawn(plot, "a")[1]) == [1.0, 2.0])


def test_a_hidden_plot_draws_nothing(qtbot, shown):
    asked = []
    plot = shown()

    def source():
        asked.append(1)
        return [0], [1]

    plot.set_curve("a", Curve("A", "cpu", source))
    plot.hide()
    count = len(asked)
    assert not plot._frames.isActive()
    plot.show()
    qtbot.waitUntil(lambda: len(asked) > count)


def test_many_points_are_drawn_by_their_extremes_and_no_spike_is_lost(shown):
    values = np.zeros(100_001)
    values[[777, 54_321, 100_000]] = 9.0
    values[12_345] = -9.0
    plot = shown()
    plot.set_curve("a", Curve("A", "cpu", lambda: (np.arange(len(values)), values)))
    xs, ys = drawn(plot, "a")
    assert len(ys) < 10_000
    assert set(xs[ys == 9.0]) == {777, 54_321, 100_000}
    assert set(xs[ys == -9.0]) == {12_345}
    assert (np.diff(xs) >= 0).all()


def test_a_label_from_outside_is_not_read_as_html(shown):
    plot = shown()
    plot.set_curve("a", Curve("<img src=x> & co", "cpu", lambda: ([0], [1])))
    ((_, label),) = plot.plot.plotItem.legend.items
    assert label.item.toPlainText() == "<img src=x> & co"


def test_the_theme_recolours_curves(shown, settings, theme):
    plot = shown()
    plot.set_curve("a", Curve("A", "gpu0", lambda: ([0, 1], [1, 2])))
    light = plot._curves["a"].item.opts["pen"].color().name()
    settings.change(theme="dark" if not theme.is_dark else "light")
    dark = plot._curves["a"].item.opts["pen"].color().name()
    assert {light, dark} == {"#0072b2", "#56b4e9"}
    assert list(drawn(plot, "a")[1]) == [1, 2]


def test_markers_come_and_go(shown):
    plot = shown()
    plot.set_markers([(1.0, "run", "muted"), (2.0, "out of memory", "failure")])
    assert [item.value() for item in plot._marker_items] == [1.0, 2.0]
    plot.clear()
    assert plot._marker_items == []


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
    from gpu_studio.ui.axes import UnitAxis

    axis = UnitAxis("left", unit, logarithmic=logarithmic)
    ((spacing, values),) = axis.tickValues(low, high, 28 * 5)
    assert axis.tickStrings(values, 1.0, spacing) == labels


def test_steady_axes_hold_the_data_and_move_in_steps(qtbot, shown):
    values = [1.0, 1.2, 0.9]
    plot = shown(steady=True)
    plot.set_curve("a", Curve("A", "cpu", lambda: (range(len(values)), values)))
    plot.refresh()
    before = plot.plot.viewRange()
    assert before[0][0] <= 0 < 2 <= before[0][1]
    assert before[1][0] <= 0.9 < 1.2 <= before[1][1]
    values[2:] = [1.1, 1.0]
    values.pop()
    plot.refresh()
    assert plot.plot.viewRange() == before
    values += [1.0] * 20 + [9.0]
    plot.refresh()
    (_, right), (_, top) = plot.plot.viewRange()
    assert right >= len(values) - 1
    assert top >= 9.0


def test_a_middle_point_that_changed_is_drawn_where_points_are_few(qtbot, shown):
    values = [1.0, 2.0, 3.0]
    plot = shown()
    plot.set_curve("a", Curve("A", "cpu", lambda: (range(3), values), symbol="o"))
    values[1] = 5.0
    plot.refresh()
    assert list(drawn(plot, "a")[1]) == [1.0, 5.0, 3.0]
