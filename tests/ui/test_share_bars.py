from __future__ import annotations

import pytest
from PySide6.QtCore import Qt

from gpu_studio.ui.share_bars import Bar, BarPart, ShareBars


@pytest.fixture
def bars(qtbot, theme):
    def make(*shown, full=None):
        created = ShareBars(theme, name="bars", full=full)
        qtbot.addWidget(created)
        created.show_bars(shown)
        created.resize(600, created.sizeHint().height())
        created.show()
        return created

    return make


def widths(widget, theme, role, row):
    """Return how many pixels of a row have a role's colour."""
    picture = widget.grab().toImage()
    y = int((row + 0.5) * picture.height() / max(len(widget.bars), 1))
    colour = theme.colour(role).lower()
    return sum(picture.pixelColor(x, y).name() == colour for x in range(picture.width()))


def bar(label, *parts):
    return Bar(label, parts, f"{sum(part.value for part in parts):g}")


def test_bars_have_one_scale(bars, theme):
    shown = bars(bar("long", BarPart("", 4.0, "cpu")), bar("short", BarPart("", 1.0, "gpu0")))
    assert widths(shown, theme, "cpu", 0) == pytest.approx(
        4 * widths(shown, theme, "gpu0", 1), rel=0.05
    )


def test_parts_fill_their_share(bars, theme):
    shown = bars(bar("a", BarPart("", 3.0, "cpu"), BarPart("", 1.0, "context")))
    assert widths(shown, theme, "cpu", 0) == pytest.approx(
        3 * widths(shown, theme, "context", 0), rel=0.05
    )


def test_a_share_is_of_the_whole_row(bars, theme):
    shown = bars(bar("a", BarPart("", 0.25, "cpu")), full=1.0)
    filled, rest = (widths(shown, theme, role, 0) for role in ("cpu", "grid"))
    assert filled == pytest.approx((filled + rest) / 4, rel=0.05)
    above = bars(bar("a", BarPart("", 1.7, "cpu")), full=1.0)  # in a cache: over its ceiling
    assert widths(above, theme, "grid", 0) == 0


def test_a_hatched_part_differs_from_a_plain_one_of_its_colour(bars, theme):
    plain = bars(bar("a", BarPart("", 1.0, "other")))
    hatched = bars(bar("a", BarPart("", 1.0, "other", Qt.BrushStyle.BDiagPattern)))
    assert widths(hatched, theme, "other", 0) < widths(plain, theme, "other", 0)


def test_what_is_painted_is_reported_as_well(bars):
    shown = bars(
        bar("CPU", BarPart("compute", 2.0, "cpu")), bar("GPU", BarPart("launch", 1.0, "gpu0"))
    )
    assert shown.accessibleDescription() == "CPU: 2; GPU: 1"
    assert shown.sizeHint().height() > bars(bar("a")).sizeHint().height()


def test_nothing_and_zero_are_painted_without_a_complaint(bars):
    assert not bars().grab().isNull()
    assert not bars(bar("a"), bar("b", BarPart("x", 0.0, "cpu"))).grab().isNull()


def test_the_theme_changes_what_is_painted(bars, theme, settings):
    shown = bars(bar("a", BarPart("", 0.5, "cpu")), full=1.0)
    before = widths(shown, theme, "grid", 0)
    settings.change(theme="dark" if not theme.is_dark else "light")
    assert widths(shown, theme, "grid", 0) == before > 0
