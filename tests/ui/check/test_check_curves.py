"""The curves of a check: where its stages began, by name."""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING

import pytest

from gpu_studio.core.check.check_chart import record_chart
from gpu_studio.ui.check.check_curves import LanePlot
from tests.fakes.check_records import check_record

if TYPE_CHECKING:
    from pytestqt.qtbot import QtBot

    from gpu_studio.ui.theme import Theme


@pytest.mark.parametrize("width", [500, 640, 900, 1300])
def test_no_name_of_a_stage_covers_another_one(qtbot: QtBot, theme: Theme, width: int) -> None:
    chart = record_chart(check_record())
    plot = LanePlot(theme, "°C")
    qtbot.addWidget(plot)
    plot.resize(width, plot.height())
    plot.show_lane(chart.lanes[0], chart)
    labels = [item.label for item in plot.lay_out().marker_items if hasattr(item, "label")]
    places = {label.format: label.mapRectToScene(label.boundingRect()) for label in labels}
    assert len(places) >= 4
    covered = [
        (one, other)
        for one, other in combinations(places, 2)
        if places[one].intersects(places[other])
    ]
    assert not covered
