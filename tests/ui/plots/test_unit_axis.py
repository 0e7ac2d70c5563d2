from __future__ import annotations

import itertools

import numpy as np
import pytest
from PySide6.QtGui import QImage, QPainter


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
