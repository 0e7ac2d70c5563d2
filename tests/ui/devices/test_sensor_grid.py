from __future__ import annotations

import pytest
from PySide6.QtCore import QEvent, QObject, QPoint, QPointF, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QComboBox, QLabel, QPushButton, QTableView, QWidget

from gpu_studio.core.devices.run_effect import RunMark
from gpu_studio.core.devices.sensor_history import SensorTrack
from gpu_studio.ui.devices.sensor_grid import SensorCard, SensorGrid
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import letters
from gpu_studio.ui.plots.live_plot import LivePlot
from tests.driving.window import click, find, move_mouse, sees
from tests.fakes.pc import gt_1030, reading


@pytest.fixture
def track():
    found = gt_1030()
    track = SensorTrack(found.cards[0])
    for second in range(100):
        track.append(reading(found, float(second), temperature_c=20.0 + second % 50, power_w=None))
    return track


@pytest.fixture
def grid(qtbot, theme, track):
    more = QPushButton("All sensors")
    more.setObjectName("devices.sensors.all")
    more.setCheckable(True)
    created = SensorGrid(theme, more)
    qtbot.addWidget(created)
    created.layout().insertWidget(0, FlowRow(more, *created.tools))
    created.resize(900, 500)
    created.show_spans(track.spans(60.0), "gpu0")
    created.show()
    click(created, "devices.sensors.all")
    created.show_spans(track.spans(60.0), "gpu0")
    qtbot.waitUntil(lambda: all(plot.plot is not None for plot in plots(created)))
    created.show_spans(track.spans(60.0), "gpu0")
    return created


def plots(grid):
    return [plot for plot in grid.findChildren(LivePlot) if plot.isVisible()]


def label_text(grid, name):
    return grid.findChild(QLabel, f"devices.sensor{name}").text().replace("\u202f", " ")


def lines_at(grid, x):
    """In how many plots the crosshair stands at x."""
    import pyqtgraph as pg

    items = [item for plot in plots(grid) for item in plot.plot.plotItem.items]
    lines = [item for item in items if isinstance(item, pg.InfiniteLine) and item.isVisible()]
    return sum(line.value() == pytest.approx(x) for line in lines)


def hover(grid, time_s):
    live = grid.findChild(LivePlot, "devices.sensor.temperature.plot")
    place = live.plot.plotItem.vb.mapViewToScene(QPointF(time_s, 40.0))
    viewport = live.plot.viewport()
    move_mouse(viewport, live.plot.mapFromScene(place) + QPoint(1, 0))
    move_mouse(viewport, live.plot.mapFromScene(place))


def test_a_narrower_page_has_fewer_plots_side_by_side(qtbot, grid):
    def columns():
        return len({plot.mapTo(grid, QPoint()).x() for plot in plots(grid)})

    before, asked = columns(), []
    grid.readings_wanted.connect(lambda: asked.append(True))
    grid.resize(grid.width() // 2, grid.height())
    qtbot.waitUntil(lambda: columns() < before)
    assert asked, "another plot needs its readings"
    grid.resize(2 * grid.width(), grid.height())
    qtbot.waitUntil(lambda: columns() == before)


def test_the_mouse_reads_all_sensors_at_one_time(qtbot, grid):
    assert label_text(grid, ".temperature.value") == "69 °C"
    hover(grid, 60.0)
    qtbot.waitUntil(lambda: label_text(grid, ".temperature.value") != "69 °C")
    x = grid._crosshair.x
    assert x == pytest.approx(60.0, abs=5)
    assert label_text(grid, ".temperature.value") == f"{20 + round(x) % 50} °C"
    assert label_text(grid, ".utilization.value") == "4 %"
    assert f"{round(99 - x)} s" in label_text(grid, "s.cursor")
    assert lines_at(grid, x) == len(plots(grid)) == 7


def test_the_arrow_keys_read_them_too_and_escape_goes_back(qtbot, grid):
    place = grid.findChild(QWidget, "devices.sensors.plots")
    for _ in range(3):
        QTest.keyClick(place, Qt.Key.Key_Left)
    assert label_text(grid, ".temperature.value") == "67 °C"
    assert "2\u202fs" in place.accessibleDescription()
    assert "GPU temperature 67\u202f°C" in place.accessibleDescription()
    QTest.keyClick(place, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert label_text(grid, ".temperature.value") == "57 °C"
    QTest.keyClick(place, Qt.Key.Key_Right)
    assert label_text(grid, ".temperature.value") == "58 °C"
    QTest.keyClick(place, Qt.Key.Key_Escape)
    assert label_text(grid, ".temperature.value") == "69 °C"
    assert label_text(grid, "s.cursor") == ""


def test_a_longer_while_can_be_chosen(qtbot, grid, track):
    choice = grid.findChild(QComboBox, "devices.sensors.span")
    with qtbot.waitSignal(grid.readings_wanted):
        choice.setCurrentIndex(1)
        choice.activated.emit(1)
    assert grid.span_s == 300.0
    grid.show_spans(track.spans(grid.span_s), "gpu0")
    live = grid.findChild(LivePlot, "devices.sensor.temperature.plot")
    low, high = live.plot.plotItem.vb.viewRange()[0]
    assert (low, high) == pytest.approx((-201.0, 99.0))


def test_a_thousand_runs_are_as_many_marks_as_can_be_told_apart(grid, track):
    marks = [RunMark("matmul", "cuda:0", at / 20, at / 20 + 0.01) for at in range(1000)]
    grid.show_spans(track.spans(60.0), "gpu0", marks)
    assert all(10 < len(plot.plot.marker_items) <= 61 for plot in plots(grid))


def test_runs_are_marked_in_every_plot(grid, track):
    marks = [RunMark("matmul", "cuda:0", 50.0, 70.0), RunMark("matmul", "cuda:0", 10.0, 20.0)]
    grid.show_spans(track.spans(60.0), "gpu0", marks)
    assert lines_at(grid, 50.0) == lines_at(grid, 70.0) == len(plots(grid))
    assert lines_at(grid, 20.0) == 0  # before the time that is shown
    assert label_text(grid, "s.cursor").startswith("Dotted lines")


def test_nothing_is_reported_of_lines_where_there_are_none(grid, track):
    marks = [RunMark("matmul", "cuda:0", 50.0, 70.0)]
    grid.show_spans(track.spans(60.0), "gpu0", marks)
    grid._crosshair.move_to(60.0)
    toggle = grid.findChild(QPushButton, "devices.sensors.toggle")
    toggle.click()
    assert grid._crosshair.x is None
    assert label_text(grid, "s.cursor") == ""
    grid.show_spans(track.spans(60.0), "gpu0", marks)
    assert label_text(grid, "s.cursor") == ""
    toggle.click()
    assert label_text(grid, "s.cursor").startswith("Dotted lines")


def test_a_sensor_that_is_refused_has_no_plot_and_is_reported_in_the_table(grid):
    assert not sees(grid, "devices.sensor.power")
    click(grid, "devices.sensors.toggle")
    rows = find(grid, "devices.sensors.table", QTableView).model()
    values = {
        rows.index(row, 0).data(): rows.index(row, 1).data() for row in range(rows.rowCount())
    }
    assert values["Power"] == "n/a"
    assert values["Fan"] == "35\u202f%"


@pytest.fixture
def pc():
    track = SensorTrack(gt_1030().cpu)
    for second in range(100):
        track.append(reading(gt_1030(), float(second)))
    return [span for span in track.spans(60.0) if not span.is_refused]


@pytest.mark.parametrize(("letters_wide", "tiles"), [(140, 5), (88, 4), (60, 2)])
def test_the_main_sensors_are_one_row_of_tiles(grid, track, pc, letters_wide, tiles):
    click(grid, "devices.sensors.all")
    grid.resize(letters(grid, letters_wide), 300)
    grid.show_spans(track.spans(60.0), "gpu0", beside=pc)
    shown = [card for card in grid.findChildren(SensorCard) if card.isVisible()]
    assert len({card.y() for card in shown}) == 1
    order = ["utilization", "memory", "temperature", "pc_utilization", "pc_memory"]
    names = [card.objectName() for card in sorted(shown, key=lambda card: card.x())]
    assert names == [f"devices.sensor.{key}" for key in order[:tiles]]
    if tiles == 5:
        assert label_text(grid, ".pc_memory.value") == "8 GiB of 32 GiB"
        roles = {card.objectName(): card.plot._curves["device"].role for card in shown}
        assert roles["devices.sensor.memory"] == "gpu0"
        assert roles["devices.sensor.pc_memory"] == "cpu"


def test_the_next_sensor_takes_the_place_of_one_that_is_not_reported(grid, pc):
    track = SensorTrack(gt_1030().cards[0])
    for second in range(3):
        track.append(reading(gt_1030(), float(second), temperature_c=None, hotspot_c=None))
    click(grid, "devices.sensors.all")
    grid.resize(letters(grid, 140), 300)
    grid.show_spans(track.spans(60.0), "gpu0", beside=pc)
    assert not sees(grid, "devices.sensor.temperature")
    assert sees(grid, "devices.sensor.power")
    assert sees(grid, "devices.sensor.pc_memory")


def test_what_is_reported_of_marks_takes_no_room_from_a_narrow_window(grid, track):
    narrowest = grid.minimumSizeHint().width()
    grid.show_spans(track.spans(60.0), "gpu0", [RunMark("matmul", "cuda:0", 50.0, 70.0)])
    assert label_text(grid, "s.cursor")
    grid.layout().activate()
    assert grid.minimumSizeHint().width() <= narrowest


class Appearances(QObject):
    """Counts how often the widgets that it watches are hidden or shown."""

    count = 0

    def eventFilter(self, _watched, event):
        self.count += event.type() in (QEvent.Type.ShowToParent, QEvent.Type.HideToParent)
        return False


def test_a_tile_that_stays_is_not_hidden_meanwhile(grid):
    """Each widget that appears lays out the whole page."""
    cards = [card for card in grid.findChildren(SensorCard) if card.isVisible()]
    appearances = Appearances()
    for card in cards:
        card.installEventFilter(appearances)
    click(grid, "devices.sensors.all")
    staying = [card for card in cards if card.isVisible()]
    assert 0 < len(staying) < len(cards)
    assert appearances.count == len(cards) - len(staying)
    click(grid, "devices.sensors.all")
    assert appearances.count == 2 * (len(cards) - len(staying))
