import pytest
from msgspec.structs import replace
from PySide6.QtCore import QEvent, QPoint
from PySide6.QtGui import QHelpEvent
from PySide6.QtWidgets import QApplication, QToolTip

from gpu_studio.model.page_model import Bar
from gpu_studio.ui.result_bars import ResultBars


def bar(name, role, value=None, text="", **changes):
    return Bar(name=name, role=role, value=value, text=text, **changes)


PAIR = (bar("CPU", "cpu", 8.0, "8 ms"), bar("GT 1030", "gpu0", 2.0, "2 ms"))


@pytest.fixture
def bars(qtbot, theme):
    def make(*shown, width=600, full=None):
        created = ResultBars(theme, name="bars", full=full)
        qtbot.addWidget(created)
        created.show_bars(shown)
        created.resize(width, created.heightForWidth(width))
        created.show()
        return created

    return make


def row_of(widget, number):
    """Return a height in the middle of a row, in pixels."""
    found = [y for y in range(widget.height()) if widget.bar_at(y) == widget.bars[number]]
    return (found[0] + found[-1]) // 2


def pixels(widget, theme, role, number):
    """Return the places of a role's color in a row."""
    picture = widget.grab().toImage()
    y = row_of(widget, number)
    colour = theme.colour(role).lower()
    return [x for x in range(picture.width()) if picture.pixelColor(x, y).name() == colour]


def differing(one, other):
    """Return the columns in which two pictures are not the same."""
    first, second = one.grab().toImage(), other.grab().toImage()
    assert first.size() == second.size()
    rows = range(first.height())
    return [
        x
        for x in range(first.width())
        if any(first.pixel(x, y) != second.pixel(x, y) for y in rows)
    ]


def test_the_longest_fills_its_track_and_the_others_are_to_scale(bars, theme):
    shown = bars(*PAIR)
    longest, other = pixels(shown, theme, "cpu", 0), pixels(shown, theme, "gpu0", 1)
    assert len(longest) == pytest.approx(4 * len(other), rel=0.03)
    assert not pixels(shown, theme, "track", 0)
    assert other[0] == longest[0]
    assert pixels(shown, theme, "track", 1)[-1] == pytest.approx(longest[-1], abs=1)


def test_each_name_and_value_fits_into_the_least_width(bars):
    long = bar("GeForce RTX 4070 Ti", "gpu0", 1.0, "18.1 ms")
    shown = bars(*PAIR, long)
    least, metrics = shown.minimumSizeHint().width(), shown.fontMetrics()
    assert least > metrics.horizontalAdvance(long.name) + metrics.horizontalAdvance(long.text)
    longer = bars(bar("a name without any end " * 20, "gpu0", 1.0, "18.1 ms"))
    assert longer.minimumSizeHint().width() < 30 * metrics.height()


def hover(widget, y):
    place = QPoint(5, y)
    event = QHelpEvent(QEvent.Type.ToolTip, place, widget.mapToGlobal(place))
    QApplication.sendEvent(widget, event)
    return QToolTip.text()


def test_the_mouse_reads_each_row(bars):
    shown = bars(PAIR[0], replace(PAIR[1], tip="GT 1030 <b>: 2 ms of 40 samples"))
    assert hover(shown, row_of(shown, 0)) == "CPU: 8 ms"
    assert "&lt;b&gt;: 2 ms of 40 samples" in hover(shown, row_of(shown, 1))


def test_an_interval_is_drawn_around_the_end_of_its_bar_and_a_verdict_is_spoken(bars, theme):
    sure = bar("this", "gpu0", 8.0, "8", verdict="this PC")
    wide = bar("other", "gpu1", 4.0, "4", interval=(2.0, 6.0), verdict="no difference")
    shown = bars(sure, wide)
    assert not pixels(shown, theme, "interval", 0)
    # Its lines are thin, so a font's height may smooth each of their pixels.
    marks = differing(shown, bars(sure, replace(wide, interval=None)))
    full = pixels(shown, theme, "gpu0", 0)
    assert (marks[-1] - marks[0]) == pytest.approx(len(full) / 2, rel=0.05)
    assert (marks[0] + marks[-1]) / 2 == pytest.approx(full[0] + len(full) / 2, rel=0.05)
    assert shown.accessibleDescription() == "this: 8, this PC; other: 4, no difference"


def test_parts_fill_their_share_and_differ_not_by_color_alone(bars, theme):
    whole = pixels(bars(bar("a", "cpu", 4.0)), theme, "cpu", 0)
    shown = bars(bar("a", "cpu", 4.0, parts=(("computing", 3.0), ("", 0.5), ("", 0.5))))
    work, others = (pixels(shown, theme, role, 0) for role in ("cpu", "other"))
    assert len([x for x in whole if x < others[0]]) == pytest.approx(3 * len(whole) / 4, rel=0.05)
    assert work[-1] < others[0]
    middle = 7 * len(whole) // 8 + whole[0]
    first, second = ({x for x in others if (x < middle) is early} for early in (True, False))
    assert first
    assert second
    assert len(first) != len(second), "each has its own hatch"


def test_a_share_is_of_the_whole_track(bars, theme):
    shown = bars(bar("a", "cpu", 0.25, "25 %"), full=1.0)
    filled, rest = (len(pixels(shown, theme, role, 0)) for role in ("cpu", "track"))
    assert filled == pytest.approx((filled + rest) / 4, rel=0.05)
    above = bars(bar("a", "cpu", 1.7, "cached"), full=1.0)  # in a cache: over its ceiling
    assert not pixels(above, theme, "track", 0)
