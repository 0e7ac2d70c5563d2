import itertools

import numpy as np
import pytest
from PySide6.QtCore import QPointF
from PySide6.QtWidgets import QToolTip

from gpu_studio.ui.plots.live_plot import Curve, CurveName, Level, Marker
from tests.driving.window import move_mouse
from tests.ui.plots.test_axes import drawn


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
    plot, evil = shown(has_legend=True), "<img src=x> & co"
    plot.set_curve("a", Curve(evil, "cpu", lambda: ([0], [1])))
    ((_, label),) = plot.plot.plotItem.legend.items
    assert label.item.toPlainText() == evil


def test_a_level_and_a_marker_show_the_braces_of_a_name(shown):
    plot, evil = shown(), "NVIDIA {x} A100: {"
    plot.set_curve("a", Curve("A", "cpu", lambda: ([0, 1], [1, 2])))
    plot.set_levels([Level(1.0, evil, "gpu0")])
    plot.set_markers([Marker(0.5, evil, "gpu0")])
    plot.plot.grab()
    items = (*plot.plot.mark_items["levels"], *plot.plot.mark_items["markers"])
    assert [item.label.textItem.toPlainText() for item in items] == [evil, evil]


def test_the_theme_recolours_curves(shown, settings, theme):
    plot = shown()
    plot.set_curve("a", Curve("A", "gpu0", lambda: ([0, 1], [1, 2])))
    plot.set_levels([Level(1.5, "A", "gpu0")])
    light = plot._curves["a"].item.opts["pen"].color().name()
    settings.change(theme="dark" if not theme.is_dark else "light")
    dark = plot._curves["a"].item.opts["pen"].color().name()
    (level,) = plot.plot.mark_items["levels"]
    assert level.pen.color().name() == dark
    assert {light, dark} == {"#0072b2", "#56b4e9"}
    assert list(drawn(plot, "a")[1]) == [1, 2]


def test_a_middle_point_that_changed_is_drawn_where_points_are_few(qtbot, shown):
    values = [1.0, 2.0, 3.0]
    plot = shown()
    plot.set_curve("a", Curve("A", "cpu", lambda: (range(3), values), symbol="o"))
    values[1] = 5.0
    plot.refresh()
    assert list(drawn(plot, "a")[1]) == [1.0, 5.0, 3.0]


# ── a long series ─────────────────────────────────────────────────────────────────────────────


def label_places(plot):
    """Return where the names of lines are drawn."""
    return [
        item.label.mapRectToScene(item.label.boundingRect())
        for item in (*plot.plot.mark_items["levels"], *plot.plot.mark_items["markers"])
        if getattr(item, "label", None) is not None
    ]


@pytest.mark.parametrize("ys", [(1e-3, 1.02e-3), (1e-3, 1e-3, 1e-3, 1e-3), (3.0, 1.0, 2.0)])
def test_names_of_levels_do_not_cover_each_other(qtbot, shown, ys):
    plot = shown(logarithmic_y=True)
    plot.resize(700, 300)
    plot.set_curve("a", Curve("A", "cpu", lambda: ([1, 2], [min(ys), 10 * max(ys)])))
    plot.set_levels([Level(y, f"Card {at}: median 1.00 ms", "gpu0") for at, y in enumerate(ys)])
    places = []

    def drawn_apart():
        places[:] = label_places(plot)
        return all(not a.intersects(b) for a, b in itertools.combinations(places, 2))

    qtbot.waitUntil(drawn_apart)
    assert len(places) == len(ys)


def test_few_samples_are_points_and_many_are_a_line(shown):
    few, many = shown(), shown()
    for plot, count in ((few, 20), (many, 5_000)):
        values = np.linspace(1.0, 2.0, count)
        plot.set_curve("a", Curve("A", "cpu", lambda v=values: (np.arange(len(v)), v), dots="s"))
    assert few._curves["a"].item.opts["symbol"] == "s"
    assert many._curves["a"].item.opts["symbol"] is None


def test_the_mouse_reads_the_value_of_each_curve(qtbot, shown):
    plot = shown(x_label="sample", x_unit="count", y_unit="s", logarithmic_y=True)
    plot.set_curve("a", Curve("CPU", "cpu", lambda: ([1, 2, 3], [1e-3, 2e-3, 4e-3])))
    plot.set_curve("b", Curve("GT <1030>", "gpu0", lambda: ([1, 2, 3], [1e-6, 2e-6, 4e-6])))
    box = plot.plot.plotItem.vb

    def point_at_the_second_sample():  # again until the plot has its final size
        place = plot.plot.mapFromScene(box.mapViewToScene(QPointF(2.0, -4.0)))
        move_mouse(plot.plot.viewport(), place)
        assert "sample 2" in QToolTip.text()

    qtbot.waitUntil(point_at_the_second_sample)
    read = QToolTip.text()
    assert all(result in read for result in ("CPU: 2.00", "GT &lt;1030&gt;: 2.00"))


def test_names_stand_beside_their_curves_inside_the_plot(shown):
    plot = shown()
    plot.set_x_range(0, 10)
    plot.set_names(
        [CurveName(1.0, 5.0, "early", "cpu"), CurveName(9.0, 5.0, "late", "cpu", is_above=False)]
    )
    early, late = plot.plot.mark_items["names"]
    assert early.toPlainText() == "early"
    assert (early.anchor.x(), early.anchor.y()) == (0.0, 1.0)
    assert (late.anchor.x(), late.anchor.y()) == (1.0, 0.0)
    plot.set_names([])
    assert plot.plot.mark_items["names"] == []
