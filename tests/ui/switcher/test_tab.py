"""What is so of all pages of the Switcher."""

from __future__ import annotations

import pytest
from PySide6.QtWidgets import (
    QCheckBox,
    QComboBox,
    QListWidget,
    QPlainTextEdit,
    QPushButton,
    QRadioButton,
    QTableView,
)

from gpu_studio.model.pages import AMP, CHOOSE, FEEDING, PITFALLS, PLACE, SWITCHER
from gpu_studio.ui.tabs import tab_of
from tests.driving.window import find
from tests.ui.switcher.answers import FIRST, SECOND

_CONTROLS = (
    QPushButton, QComboBox, QCheckBox, QListWidget, QPlainTextEdit, QRadioButton, QTableView,
)  # fmt: skip


def titles(tab):
    return [tab.pages.tabText(index) for index in range(tab.pages.count())]


def test_a_page_is_made_when_it_is_first_shown(tab):
    assert titles(tab) == list(tab_of(SWITCHER).parts.values())
    assert tab.findChild(QListWidget, "switcher.lab.list") is None
    tab.pages.go_to(PITFALLS)
    assert find(tab, "switcher.lab").isVisible()
    assert not find(tab, "switcher.cards").isVisible()


def test_tab_reaches_the_devices_before_what_is_done_with_them(tab):
    chain, at = [], tab.window()
    while (at := at.nextInFocusChain()) is not tab.window():
        chain.append(at.objectName())
    places = [
        chain.index(name)
        for name in (
            "switcher.pages", f"switcher.radio.{FIRST}", f"switcher.radio.{SECOND}",
            "switcher.activate", "switcher.visible_only", "switcher.target",
            "switcher.tensors.size", "switcher.model", "switcher.move", "switcher.placement",
        )
    ]  # fmt: skip
    assert places == sorted(places)


@pytest.mark.parametrize(
    "page", [CHOOSE, PLACE, PITFALLS, FEEDING, AMP], ids=lambda page: page.part
)
def test_every_control_of_a_page_has_a_name_and_fits(tab, page):
    tab.pages.go_to(page)
    for kind in _CONTROLS:
        for widget in tab.findChildren(kind):
            if not widget.objectName().startswith("qt_"):
                assert widget.objectName(), widget
                assert widget.accessibleName(), widget.objectName()
    assert tab.minimumSizeHint().width() <= 760
