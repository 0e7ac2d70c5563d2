"""The Check tab: is this card sound? Five stages, live sensors, one verdict, and a record."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.check.check_chart import record_chart, run_chart
from gpu_studio.core.check.check_code import check_code
from gpu_studio.core.device_name import address_there
from gpu_studio.core.notice import Notice
from gpu_studio.core.switcher.whole_snippet import complete
from gpu_studio.model.check import check_words
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.model.pages import CHECK
from gpu_studio.ui.check.check_cards import CutOffCard, PartCard
from gpu_studio.ui.check.check_curves import CheckCurves
from gpu_studio.ui.check.check_head import CheckHead, CheckHero
from gpu_studio.ui.check.stage_list import StageList
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, laid_out_once, letters
from gpu_studio.ui.tabs import TabContents

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent, QShowEvent

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme

_PARTS = ("plan", "findings", "facts", "limits", "trust")
_WIDE_LETTERS = 96
_WORDS_MS = 200  # words that change faster cannot be read


class CheckTab(TabContents):
    """Choices and actions on top, the stages at the left, the result at the right."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._studio = studio
        self.check = CardCheck(studio, self)
        self._head = CheckHead(self.check, theme)
        self._stages = StageList()
        self._hero = CheckHero(self.check, theme)
        self._cut_off = CutOffCard(self.check)
        self._curves = CheckCurves(theme)
        self._parts = {name: PartCard(f"check.{name}") for name in _PARTS}
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(_WORDS_MS)
        self._soon.timeout.connect(self._show_check)
        self._arrange()
        self.check.choices_changed.connect(self._show_choices)
        self.check.check_changed.connect(self._show_soon)
        self.check.notified.connect(self._head.outcome.show_notice)
        self._show_check()

    @property
    def is_up_to_date(self) -> bool:
        """Whether every change is shown."""
        return not self._soon.isActive()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the present state."""
        super().showEvent(event)
        self._show_check()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Put the stages beside the result if there is room, or above it."""
        super().resizeEvent(event)
        is_wide = self.width() >= letters(self, _WIDE_LETTERS)
        directions = QBoxLayout.Direction
        self._halves.setDirection(directions.LeftToRight if is_wide else directions.TopToBottom)

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._head)
        column.addWidget(self._head.outcome)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setSpacing(GAP)
        column.addLayout(self._halves, 1)
        side = Card(name="check.side")
        side.column.addWidget(Text("Stages", "title"))
        side.column.addWidget(self._stages)
        side.column.addStretch(1)
        self._halves.addWidget(side, 2)
        result = QVBoxLayout()
        result.setSpacing(GAP)
        self._halves.addLayout(result, 5)
        for card in (self._hero, self._cut_off, self._curves, *self._parts.values()):
            result.addWidget(card)
        result.addStretch(1)

    def _show_choices(self) -> None:
        """Show the choices at once, unless the tab is hidden: `showEvent` shows them then."""
        if self.isVisible():
            self._show_check()

    def _show_soon(self) -> None:
        """Show the changes of the next moment together."""
        if not self._soon.isActive():
            self._soon.start()

    def _show_check(self) -> None:
        self._soon.stop()
        check = self.check
        with laid_out_once(self):
            self._head.show_check()
            self._hero.show_check()
            self._cut_off.show_check()
            self._stages.show_stages(check_words.stage_rows(check), check_words.address(check))
            run, record = check_words.running(check), check.record
            chart = run_chart(run) if run is not None else record_chart(record) if record else None
            self._curves.show_chart(chart)
            parts = {part.name: part for part in check_words.parts(check)}
            for name, card in self._parts.items():
                card.show_part(parts.get(name))
        self._show_code()

    def _show_code(self) -> None:
        pc = self.check.pc
        inventory = pc.sensors.inventory
        code = complete(
            check_code(address_there(check_words.address(self.check))),
            device_count=len(inventory.cards) if inventory is not None else 0,
            visible_devices=pc.session.environment.visible_devices,
        )
        self._studio.snippets.show(code, CHECK)

    def go_to(self, destination: Destination) -> None:
        """Choose a device, or open the record of a check."""
        if destination.device:
            self.check.choose_device(destination.device)
        if destination.path is not None:
            self._head.outcome.show_notice(Notice())
            self.check.open_file(destination.path)
