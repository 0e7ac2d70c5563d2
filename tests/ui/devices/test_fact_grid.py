from __future__ import annotations

import pytest
from PySide6.QtWidgets import QLabel

from gpu_studio.core.devices.facts import Fact, FactGroup
from gpu_studio.ui.devices.fact_grid import FactGrid


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


def test_a_value_that_changes_stays_in_its_place(grid):
    grid.show_groups([group("a", 1), group("b", 1)])
    before = shown(grid, "b0")
    grid.show_groups([group("a", 1, "2"), group("b", 1, "2")])
    assert [shown(grid, key).text() for key in ("a0", "b0")] == ["2", "2"]
    assert shown(grid, "b0") is before


def test_other_groups_take_the_place_of_those_that_were_there(qtbot, grid):
    grid.show_groups([group("a", 1), group("b", 1)])
    grid.show_groups([group("c", 2)])
    qtbot.waitUntil(lambda: shown(grid, "a0") is None)
    assert shown(grid, "c1").isVisible()


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
    long = Fact(key="long", label="Long", value="x" * 500, reason="why")
    grid.show_groups([FactGroup(title="a", facts=(long,))])
    value = shown(grid, "long")
    assert value.text() == long.value
    assert value.toolTip() == f"{long.value}\nwhy"
    assert value.sizeHint().width() > 1000
    assert grid.minimumSizeHint().width() < 300
    assert not value.grab().isNull()


def test_the_tip_of_a_value_is_no_html(qtbot, grid):
    odd = Fact(key="odd", label="Odd", value="<b>590</b>", reason="why")
    grid.show_groups([FactGroup(title="a", facts=(odd,))])
    assert "&lt;b&gt;590&lt;/b&gt;<br>why" in shown(grid, "odd").toolTip()
