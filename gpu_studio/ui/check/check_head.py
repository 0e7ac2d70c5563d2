"""The top of the Check tab: the result in large words, what is checked, and the actions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QSignalBlocker, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import (
    QBoxLayout,
    QCheckBox,
    QComboBox,
    QGridLayout,
    QHBoxLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.check.check_record import RECORD_ENDINGS
from gpu_studio.core.check.check_verdict import CheckEnd, end_of
from gpu_studio.core.check.plants import PLANTED_FAULTS
from gpu_studio.core.check.record_words import breakable, length_text
from gpu_studio.core.check.stages import GLANCE_MINUTES, NORMAL_MINUTES, OVERNIGHT_MINUTES
from gpu_studio.core.device_name import CPU, is_cpu
from gpu_studio.core.notice import Tone
from gpu_studio.model.check import check_words
from gpu_studio.model.check.check_words import device_title, record_title
from gpu_studio.model.run_queue import WorkState
from gpu_studio.ui.combo_box import ComboBox, narrow_combo, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page_keys import runs, saves, stops
from gpu_studio.ui.parts import (
    GAP,
    MARGIN,
    Card,
    Text,
    button,
    keep_room,
    letters,
    set_property,
)
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.check.check_record import CheckRecord
    from gpu_studio.core.notice import Notice
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.model.headline import Headline
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.parts import Role
    from gpu_studio.ui.theme import Theme

_LENGTHS = (
    ("1 minute: a glance", GLANCE_MINUTES),
    ("6 minutes: normal", NORMAL_MINUTES),
    ("Overnight: 8 hours", OVERNIGHT_MINUTES),
)
_ENDINGS = " ".join(f"*{ending}" for ending in RECORD_ENDINGS)
_RECORDS = f"Records of a check ({_ENDINGS});;All files (*)"
_KEPT = "Earlier checks"
_LETTERS = 16  # of a device, whichever they are: what is beside it stays
_FAULT_LETTERS = 12  # with all that stands beside it, in one line of a usual window
_KEPT_LETTERS = 10  # wide ones, as the box counts: its words are narrower
_TIP = Qt.ItemDataRole.ToolTipRole
_HEADS: tuple[Role, ...] = ("hero", "hero_words", "headline", "title")
_WIDE_LETTERS = 70
_FAILED = (CheckEnd.ERRORS, CheckEnd.LOST)


class CheckHead(FlowRow):
    """One line in a wide window, more in a narrow one."""

    def __init__(self, check: CardCheck, theme: Theme, parent: QWidget | None = None) -> None:
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        super().__init__(fills=gap, parent=parent)
        self._check = check
        self._device = narrow_combo("check.device", "Device to check", _LETTERS)
        self._device.activated.connect(self._choose_device)
        self._minutes = _combo("check.minutes", "Length of the check")
        for title, minutes in _LENGTHS:
            self._minutes.addItem(title, minutes)
        self._minutes.activated.connect(self._choose_minutes)
        self._expert = QCheckBox("Show me what a broken card looks like")
        self._expert.setObjectName("check.expert")
        self._expert.setAccessibleName(self._expert.text())
        self._expert.setToolTip("Make a fault on purpose, and see the check find it")
        self._expert.toggled.connect(self._choose_plant)
        self._plant = narrow_combo("check.plant", "Fault to make on purpose", _FAULT_LETTERS)
        for fault in PLANTED_FAULTS:
            self._plant.addItem(fault.title, fault.kind)
            self._plant.setItemData(self._plant.count() - 1, fault.does, _TIP)
        self._plant.activated.connect(self._choose_plant)
        self._records = narrow_combo("check.records", _KEPT, _KEPT_LETTERS)
        self._records.activated.connect(self._show_record)
        self._open = button(
            "Open record…", self._choose_file, name="check.open",
            tip="Open the record of a check from a picture or a JSON file",
        )  # fmt: skip
        self.run = button("Run check", check.start, name="check.run", primary=True)
        self._signs = {
            is_first: icon("shield", theme, role)
            for is_first, role in ((True, "on_accent"), (False, "text"))
        }
        runs(self.run)
        self.stop = button(
            "Stop check", check.stop, name="check.stop", tip="Keep the results so far"
        )
        self.stop.setIcon(icon("stop", theme))
        stops(self.stop)
        for widget in (
            self._device, self._minutes, self.run, self.stop, self._expert, self._plant, gap,
            self._records, self._open,
        ):  # fmt: skip
            self.add(widget)
        widest = max(self.run.sizeHint().width(), self.stop.sizeHint().width())
        for pressed in (self.run, self.stop):  # one takes the place of the other
            pressed.setMinimumWidth(widest)
        self.show_check()

    def show_check(self, *, is_primary: bool = True) -> None:
        """Show the choices, and what can be pressed now.

        Args:
            is_primary: whether to run a check is the most important button of the page.
        """
        check = self._check
        is_busy = check.phase.is_busy
        self._show_devices()
        with QSignalBlocker(self._minutes):
            self._minutes.setCurrentIndex(self._minutes.findData(check.minutes))
        with QSignalBlocker(self._expert):
            self._expert.setChecked(check.plant is not None)
        self._plant.setVisible(check.plant is not None and not is_busy)
        if check.plant is not None:
            self._plant.setCurrentIndex(self._plant.findData(check.plant))
        self._show_records()
        for choice in (self._device, self._minutes, self._expert, self._plant, self._open):
            choice.setEnabled(not is_busy)
        for rest in (self._expert, self._open):  # the curves need the room
            rest.setVisible(not is_busy)
        had_focus = self.run.hasFocus() or self.stop.hasFocus()
        set_property(self.run, "primary", is_primary)
        self.run.setIcon(self._signs[is_primary])
        self.run.setVisible(not is_busy)
        self.run.setEnabled(check.can_run)
        self.stop.setVisible(is_busy)
        self.stop.setEnabled(check.phase is WorkState.RUNNING)
        if had_focus:  # a hidden button loses the focus
            (self.stop if is_busy else self.run).setFocus()

    def _show_devices(self) -> None:
        devices = self._check.devices
        show_items(self._device, [(device_title(one), one.identity) for one in devices])
        with QSignalBlocker(self._device):
            for place, device in enumerate(devices):
                self._device.setItemData(place, device.reason, _TIP)
            self._device.setCurrentIndex(self._device.findData(self._check.device.identity))

    def _show_records(self) -> None:
        titles = [record_title(record) for record in self._check.kept]
        with QSignalBlocker(self._records):
            show_items(self._records, [(_KEPT, ""), *((title, title) for title in titles)])
            self._records.setCurrentIndex(0)
        self._records.setVisible(bool(titles) and not self._check.phase.is_busy)

    def _choose_device(self) -> None:
        self._check.choose_device(self._device.currentData())

    def _choose_minutes(self) -> None:
        self._check.choose_minutes(self._minutes.currentData())

    def _choose_plant(self) -> None:
        is_wanted = self._expert.isChecked()
        self._check.choose_plant(self._plant.currentData() if is_wanted else None)

    def _show_record(self, place: int) -> None:
        self._check.show_record(place - 1)

    def _choose_file(self) -> None:
        path = ask_open_path(self.window(), "Open record", _RECORDS)
        if path:
            self._check.open_file(Path(path))


def _combo(name: str, accessible_name: str) -> QComboBox:
    box = ComboBox()
    box.setObjectName(name)
    box.setAccessibleName(accessible_name)
    box.setSizeAdjustPolicy(QComboBox.SizeAdjustPolicy.AdjustToContents)
    return box


class CheckHero(Card):
    """Empty, it asks the question of the page.

    Signals:
        save_wanted(): the user wants the record as a file.
        share_wanted(): the user wants a PDF and a picture of the record for a buyer.
    """

    save_wanted = Signal()
    share_wanted = Signal()

    def __init__(self, studio: Studio, check: CardCheck, theme: Theme) -> None:
        super().__init__(name="check.hero")
        self._studio, self._check = studio, check
        self._remedy: Headline | None = None
        self._is_wide = True
        self._device = Text("", "title", name="check.subject", wraps=True)
        self._when = Text("", "muted", name="check.when", wraps=True)
        self._origin = Text("", name="check.origin", wraps=True)
        self._origin.set_tone(Tone.AMBER)
        self._errors = Text("", "hero", name="check.errors", wraps=True)
        self._chip = TrustChip(theme, name="check.chip")
        self._planted = Text("", "failure", name="check.planted", wraps=True)
        self._sentence = Text("", "lead", name="check.doing", wraps=True)
        self._next = Text("", name="check.next", wraps=True)
        self._outcome = Text("", "muted", name="check.outcome", wraps=True)
        self._outcome.hide()
        self._fix = button("", self._fix_it, name="check.fix", primary=True)
        self._again = button("Check again", check.start, name="check.again", primary=True)
        self._again.setIcon(icon("shield", theme, "on_accent"))
        self._share = button(
            "Show it to the buyer", self.share_wanted.emit, name="check.share",
            tip="Save a PDF and a picture of the record, and open the PDF",
        )  # fmt: skip
        self._caption = Text("", "muted", name="check.caption", wraps=True)
        self._instead = button(
            "Check CPU and RAM instead", self._choose_cpu, name="check.instead",
            tip="No card needed",
        )  # fmt: skip
        self._save = button(
            "Save record…", self.save_wanted.emit, name="check.save",
            tip="As a picture or a PDF, to attach when the card is sold",
        )  # fmt: skip
        self._save.setIcon(icon("export", theme))
        saves(self._save)
        self._identify = QCheckBox("Add UUID and serial number")
        self._identify.setObjectName("check.identify")
        self._identify.setAccessibleName(self._identify.text())
        self._identify.setToolTip("They identify this one copy of the card")
        # Two in one place are never shown together.
        self._places = (
            (self._again, self._fix), (self._share, self._instead), (self._save,), (self._identify,)
        )  # fmt: skip
        self._presses = (self._again, self._fix, self._share, self._instead, self._save)
        self._arrange()

    def _arrange(self) -> None:
        self.column.setContentsMargins(2 * MARGIN, MARGIN, 2 * MARGIN, MARGIN)
        self._halves = QBoxLayout(QBoxLayout.Direction.LeftToRight)
        self._halves.setSpacing(2 * MARGIN)
        self.column.addLayout(self._halves)
        words = QVBoxLayout()
        words.setSpacing(4)
        self._halves.addLayout(words, 1)
        words.addWidget(self._device)
        words.addWidget(self._when)
        words.addWidget(self._origin)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        words.addLayout(line)
        line.addWidget(self._errors, 1)
        line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for widget in (self._planted, self._sentence, self._next):
            words.addWidget(widget)
        words.addStretch(1)
        self._side = QWidget()
        side = QVBoxLayout(self._side)
        side.setContentsMargins(0, 0, 0, 0)
        side.setSpacing(6)
        self._grid = QGridLayout()
        self._grid.setSpacing(6)
        side.addLayout(self._grid)
        for place in self._places:
            keep_room(*place)
        self._put_presses()
        side.addWidget(self._caption)
        side.addStretch(1)
        widest = max(one.sizeHint().width() for place in self._places for one in place)
        self._side.setMinimumWidth(widest)
        self._halves.addWidget(self._side)
        self.column.addWidget(self._outcome)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose the type in which the words fit, and put the buttons beside or above them."""
        super().resizeEvent(event)
        is_wide = self.width() >= letters(self, _WIDE_LETTERS)
        if is_wide != self._is_wide:
            self._is_wide = is_wide
            self._put_presses()
        self._fit()

    def _put_presses(self) -> None:
        """Put the buttons beside the words, or above them: below, they would move with these."""
        directions = QBoxLayout.Direction
        self._halves.setDirection(
            directions.LeftToRight if self._is_wide else directions.BottomToTop
        )
        columns = 1 if self._is_wide else 2
        for number, place in enumerate(self._places[:-1]):
            for control in place:
                self._grid.addWidget(control, *divmod(number, columns))
        # Its words are the longest: it has a line of its own.
        self._grid.addWidget(self._identify, len(self._places) - 1, 0, 1, columns)

    @property
    def record(self) -> CheckRecord | None:
        """The record to save, with the card's own numbers only if you asked for them."""
        record = self._check.record
        if record is None or not self._identify.isChecked():
            return record
        return self._check.named(record)

    def show_check(self) -> None:
        """Show the present state of the check, or the shown record."""
        check = self._check
        words = check_words.hero(check)
        self._device.setText(breakable(words.device))
        self._show(self._when, words.when)
        self._show(self._origin, check_words.origin(check))
        self._errors.setText(words.words)
        self._errors.set_tone(words.tone)
        self.set_tone(words.tone)
        self._chip.show_notice(check_words.chip(check))
        self._show(self._planted, check_words.planted(check))
        self._show(self._sentence, words.sentence)
        self._show(self._next, words.next_step)
        self._show_presses()
        self._fit()

    def show_outcome(self, notice: Notice) -> None:
        """Show what became of a file."""
        self._outcome.show_notice(notice)

    @property
    def has_primary(self) -> bool:
        """Whether one of its buttons is the page's primary one."""
        return any(not one.isHidden() and one.property("primary") for one in self._presses)

    def _show_presses(self) -> None:
        check, record = self._check, self._check.record
        is_busy = check.phase.is_busy
        end = end_of(record) if record is not None else None
        is_own = record is not None and not record.origin
        self._remedy = None if is_busy else check.remedy
        fix = ""
        if self._remedy is not None:
            fix = self._remedy.action_label or ("Copy command" if self._remedy.command else "")
        is_planted = record is not None and record.planted is not None
        is_failed = end in _FAILED or (end is CheckEnd.NOTHING_TESTED and not fix)
        is_failed = is_failed and not is_planted
        is_shown = {
            self._fix: bool(fix),
            self._again: is_own and is_failed,
            self._share: is_own and end is not CheckEnd.NOTHING_TESTED and not is_planted,
            self._instead: not is_busy and self._remedy is not None and not check.device.is_cpu,
            self._save: record is not None,
        }  # fmt: skip
        for press, shown in is_shown.items():
            press.setVisible(bool(shown))
        self._fix.setText(fix)
        self._fix.setAccessibleName(fix)
        self._again.setEnabled(check.can_run)
        self._save.setEnabled(record is not None)
        set_property(self._share, "primary", not (fix or (is_own and is_failed)))
        self._show(self._caption, self._captions(is_own and is_failed and end in _FAILED))
        # The numbers of a card in somebody's file are not known here.
        is_card = record is not None and not is_cpu(record.device.address)
        is_named = is_own and is_card and end is not CheckEnd.NOTHING_TESTED
        self._identify.setVisible(bool(is_named))
        self._side.setVisible(any(is_shown.values()))

    def _captions(self, is_again: bool) -> str:
        if is_again and self._check.can_run:
            return f"Check again after a restart, {length_text(self._check.minutes)}"
        return ""

    def _fix_it(self) -> None:
        remedy = self._remedy
        if remedy is None:
            return
        if remedy.action is not None:
            self._studio.headlines.act(remedy)
        else:
            QGuiApplication.clipboard().setText(remedy.command)

    def _choose_cpu(self) -> None:
        self._check.choose_device(CPU)

    def _fit(self) -> None:
        chip = self._chip.sizeHint().width() + GAP if not self._chip.isHidden() else 0
        margins = self.column.contentsMargins()
        room = self.width() - margins.left() - margins.right() - chip
        is_beside = self._halves.direction() is QBoxLayout.Direction.LeftToRight
        if is_beside and not self._side.isHidden():
            room -= self._side.sizeHint().width() + 2 * MARGIN
        is_question = self._check.record is None and not self._check.phase.is_busy
        self._errors.fit_role(_HEADS[is_question:], room)

    def _show(self, label: Text, text: str) -> None:
        label.setText(breakable(text))
        label.setVisible(bool(text))
