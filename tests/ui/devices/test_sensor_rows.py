"""The sensors in rows: curves over one time axis, read all at one time."""

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QLabel

from gpu_studio.core.devices.facts import Fact, FactGroup
from gpu_studio.core.devices.sensor_history import SensorTrack
from gpu_studio.model.devices.devices import SensorLine
from gpu_studio.model.run_marks import RunMark
from gpu_studio.ui.devices.fact_grid import FactGrid
from gpu_studio.ui.devices.sensor_rows import SensorRows, Sparkline
from gpu_studio.ui.theme import COLOURS
from tests.driving.window import find, move_mouse, plain, sees, text
from tests.fakes.pc import gt_1030, reading


def lines_of(track, device="cuda:0", span_s=60.0):
    spans = [span for span in track.spans(span_s) if not span.is_refused]
    return [SensorLine(span.kind.key, span.kind, device, span) for span in spans]


@pytest.fixture
def track():
    found = gt_1030()
    track = SensorTrack(found.cards[0])
    for second in range(100):
        track.append(reading(found, float(second), temperature_c=20.0 + second % 50, power_w=None))
    return track


@pytest.fixture
def rows(qtbot, theme, track):
    created = SensorRows(theme)
    qtbot.addWidget(created)
    created.resize(900, 500)
    created.show_lines(lines_of(track), (), 60.0, "Last minute")
    created.show()
    return created


def value(rows, key):
    return text(rows, f"devices.sensor.{key}.value")


def drawn(rows, key):
    """Return the parts of a curve in pixels: x and y of each point."""
    line = find(rows, f"devices.sensor.{key}", Sparkline)
    return [[(point.x(), point.y()) for point in part] for part in line.curves()]


def colors(rows, key):
    image = find(rows, f"devices.sensor.{key}").grab().toImage()
    places = [(x, y) for x in range(0, image.width(), 2) for y in range(image.height())]
    return {image.pixelColor(x, y).name().upper() for x, y in places}


def test_a_curve_is_as_long_as_its_time_and_ends_now(rows, track):
    (curve,) = drawn(rows, "temperature")
    width = find(rows, "devices.sensor.temperature").width()
    assert (curve[0][0], curve[-1][0]) == (pytest.approx(0, abs=1), pytest.approx(width, abs=2))
    assert len(curve) == 61
    heights = [y for _, y in curve]
    coldest = heights.index(max(heights))  # y goes down
    assert curve[coldest][0] == pytest.approx(width * 11 / 60, abs=2)  # 20 °C at second 50
    rows.show_lines(lines_of(track, span_s=300.0), (), 300.0, "Last 5 minutes")
    (curve,) = drawn(rows, "temperature")
    assert curve[0][0] == pytest.approx(width * 2 / 3, abs=3), "nothing is known before"
    assert text(rows, "devices.sensors.title") == "Last 5 minutes"


def test_a_gap_in_the_readings_is_a_gap_in_the_curve(rows, track):
    track.append(reading(gt_1030(), 130.0, temperature_c=30.0))
    rows.show_lines(lines_of(track), (), 60.0, "Last minute")
    assert len(drawn(rows, "temperature")) == 2


def test_a_curve_has_the_color_of_its_device(rows, track, theme):
    ink = COLOURS["gpu0_ink"][theme.is_dark]
    assert ink in colors(rows, "temperature")
    rows.show_lines(lines_of(track, "cpu"), (), 60.0, "Last minute")
    assert ink not in colors(rows, "temperature")
    assert COLOURS["cpu_ink"][theme.is_dark] in colors(rows, "temperature")


def test_a_sensor_that_is_gone_leaves_no_row(rows, track):
    assert not sees(rows, "devices.sensor.power"), "it is not reported"
    rows.show_lines(lines_of(track)[:2], (), 60.0, "Last minute")
    assert not sees(rows, "devices.sensor.temperature")
    rows.show_lines(lines_of(track), (), 60.0, "Last minute")
    assert sees(rows, "devices.sensor.temperature")


def test_the_mouse_reads_all_sensors_at_one_time(rows):
    assert value(rows, "temperature") == "69 °C"
    line = find(rows, "devices.sensor.utilization")
    move_mouse(line, QPoint(line.width() // 2, 5))
    assert value(rows, "temperature") == "39 °C"  # at second 69, 30 s ago
    assert text(rows, "devices.sensors.cursor") == "30 s ago"
    line.leaveEvent(None)
    assert value(rows, "temperature") == "69 °C"
    assert text(rows, "devices.sensors.cursor") == ""


def test_the_mouse_may_be_on_a_sensor_as_others_come(qtbot, theme, track, monkeypatch):
    """It leaves what hides, as Qt says, and that reads all rows while some are not there yet."""
    left = []
    monkeypatch.setattr(Sparkline, "hideEvent", lambda line, _: left.append(line.leaveEvent(None)))
    rows = SensorRows(theme)
    qtbot.addWidget(rows)
    rows.show_lines(lines_of(track)[:1], (), 60.0, "Last minute")
    rows.show()
    rows.show_lines(lines_of(track), (), 60.0, "Last minute")
    assert left
    assert sees(rows, "devices.sensor.temperature")


def test_the_arrow_keys_read_them_too_and_escape_goes_back(rows):
    for _ in range(3):
        QTest.keyClick(rows, Qt.Key.Key_Left)
    assert value(rows, "temperature") == "66 °C"
    assert "3 s" in plain(rows.accessibleDescription())
    assert "GPU temperature 66 °C" in plain(rows.accessibleDescription())
    QTest.keyClick(rows, Qt.Key.Key_Left, Qt.KeyboardModifier.ControlModifier)
    assert value(rows, "temperature") == "56 °C"
    QTest.keyClick(rows, Qt.Key.Key_Right)
    assert value(rows, "temperature") == "57 °C"
    QTest.keyClick(rows, Qt.Key.Key_Escape)
    assert value(rows, "temperature") == "69 °C"


def test_runs_are_marked_on_the_curves_of_their_device(rows, track, theme):
    lines = lines_of(track)
    pc = SensorLine("pc_memory", lines[1].kind, "cpu", lines[1].span)
    accent = COLOURS["accent"][theme.is_dark]
    key = "utilization"  # its curve is far below the first pixels

    def marked(name):
        image = find(rows, f"devices.sensor.{name}").grab().toImage()
        return [
            x
            for x in range(image.width())
            if any(image.pixelColor(x, y).name().upper() == accent for y in range(5))
        ]

    rows.show_lines([*lines, pc], (), 60.0, "Last minute")
    assert marked(key) == []
    marks = [RunMark("matmul", "cuda:0", 50.0, 70.0), RunMark("matmul", "cuda:0", 10.0, 20.0)]
    rows.show_lines([*lines, pc], marks, 60.0, "Last minute")
    width = find(rows, f"devices.sensor.{key}").width()
    assert [round(60 * x / width) for x in marked(key)] == [11, 31], "one was before that time"
    assert marked("pc_memory") == []
    assert text(rows, "devices.sensors.cursor").startswith("Dotted lines")


@pytest.fixture
def grid(qtbot, theme):
    created = FactGrid(name="facts")
    qtbot.addWidget(created)
    created.resize(1400, 400)
    created.show()
    return created


def group(title, count, value="1"):
    facts = (Fact(key=f"{title}{i}", label=f"{title} {i}", value=value) for i in range(count))
    return FactGroup(title=title, facts=tuple(facts))


def shown(grid, key):
    return grid.findChild(QLabel, f"facts.{key}")


def place(grid, key):
    return shown(grid, key).mapTo(grid, shown(grid, key).rect().topLeft())


def test_groups_fill_the_columns_that_there_is_room_for(qtbot, grid):
    groups = [group(title, count) for title, count in (("a", 6), ("b", 2), ("c", 2), ("d", 4))]
    grid.show_groups(groups)

    def lefts():
        return [place(grid, key).x() for key in ("a0", "b0", "c0", "d0")]

    qtbot.waitUntil(lambda: len(set(lefts())) == 4)
    grid.resize(700, 800)
    qtbot.waitUntil(lambda: len(set(lefts())) == 2)
    a, b, c, d = lefts()
    assert (a < b, b == c, d == a) == (True, True, True)
    grid.resize(330, 1200)
    qtbot.waitUntil(lambda: len(set(lefts())) == 1)
    tops = [place(grid, key).y() for key in ("a0", "b0", "c0", "d0")]
    assert tops == sorted(tops)


def test_a_long_value_ends_in_an_ellipsis_and_is_whole_in_the_tip(qtbot, grid):
    long = Fact(key="long", label="Long", value="<b>" + "x" * 500, reason="why")
    grid.show_groups([FactGroup(title="a", facts=(long,))])
    value = shown(grid, "long")
    assert value.text() == long.value
    assert value.toolTip().startswith("<qt>&lt;b&gt;xxx"), "it is no HTML"
    assert value.sizeHint().width() > 1000
    assert grid.minimumSizeHint().width() < 300
    assert not value.grab().isNull()
