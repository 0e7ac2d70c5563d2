"""The Devices tab: what is in this PC, whether PyTorch can use it, and what to press."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QPushButton, QVBoxLayout, QWidget

from gpu_studio.model.benchmark.quick_comparison import QuickComparison
from gpu_studio.model.benchmark.standard_measurement import StandardMeasurement
from gpu_studio.model.devices.devices import DevicesModel
from gpu_studio.ui.devices.device_hero import DeviceHero
from gpu_studio.ui.devices.device_verdict import ToneSign
from gpu_studio.ui.devices.standard_panel import StandardPanel
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Text, button, laid_out_once, show_label
from gpu_studio.ui.scroll_page import LazyPage
from gpu_studio.ui.tabs import TabContents

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QHideEvent, QShowEvent

    from gpu_studio.model.headline import Headline
    from gpu_studio.model.pc import RemotePc
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.devices.device_details import DeviceDetails
    from gpu_studio.ui.devices.pc_group import PcGroup, PcHeading
    from gpu_studio.ui.theme import Theme


class FindingLine(QWidget):
    """Shows a headline.

    Attributes:
        headline: the shown one; None at first.

    Signals:
        action_requested(Headline): the button of this headline was pressed.
    """

    action_requested = Signal(object)

    def __init__(self, theme: Theme, *, name: str) -> None:
        super().__init__()
        self.setObjectName(name)
        self.headline: Headline | None = None
        self._sign = ToneSign(theme)
        self._sentence = Text(name=f"{name}.sentence", wraps=True)
        self._action = button("", self._act, name=f"{name}.action")
        self._more = button("Details", self._unfold, name=f"{name}.more")
        self._more.setCheckable(True)
        self._details = Text("", "muted", name=f"{name}.details", wraps=True)
        column = QVBoxLayout(self)
        column.setContentsMargins(GAP, 0, GAP, 0)
        row = QHBoxLayout()
        column.addLayout(row)
        row.setSpacing(GAP)
        row.addWidget(self._sign)
        row.addWidget(self._sentence, 1, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._action)
        row.addWidget(self._more)
        column.addWidget(self._details)
        self._details.hide()

    def show_headline(self, headline: Headline) -> None:
        """Show a headline; a command is copied by the button and told in the details."""
        if headline == self.headline:
            return
        self.headline = headline
        self._sentence.setText(headline.sentence)
        action = headline.action_label or ("Copy command" if headline.command else "")
        show_label(self._action, action)
        details = "\n".join(filter(None, (headline.detail, headline.command)))
        self._details.setText(details)
        self._more.setVisible(bool(details))
        self._more.setChecked(False)
        self._details.hide()
        self.setAccessibleName(headline.sentence)
        self._sign.show_tone(headline.tone)

    def _unfold(self) -> None:
        self._details.setVisible(self._more.isChecked())

    def _act(self) -> None:
        assert self.headline is not None
        if self.headline.action:
            self.action_requested.emit(self.headline)
        else:
            QGuiApplication.clipboard().setText(self.headline.command)


def _fold(text: str, *, name: str) -> QPushButton:
    """Return a button that shows more as long as it is down."""
    shown = QPushButton(text)
    shown.setObjectName(name)
    shown.setAccessibleName(text)
    shown.setCheckable(True)
    return shown


_ADD_TIP = "Use the devices of another PC that you reach with SSH"
_DETAILS = "gpu_studio.ui.devices.device_details:DeviceDetails"
# The verdicts that say why the card cannot be read.
_EXPLAIN_TROUBLE = frozenset(
    {"card_asleep", "card_lost", "card_unreadable", "driver_library_mismatch"}
)


class DevicesTab(TabContents):
    """The answers about this PC and the findings, and below its sensors, programs and facts.

    The sensors, programs and facts are for `later`. Their controls are above all that grows.
    """

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._theme = theme
        self._model = DevicesModel(studio, self)
        self._comparison = QuickComparison(studio, self)
        self._all_sensors = _fold("All sensors", name="devices.sensors.all")
        self._all_facts = _fold("All facts", name="devices.facts")
        self._all_facts.setText("Hide facts (100)")
        self._all_facts.setMinimumWidth(self._all_facts.sizeHint().width())  # with any count
        self._all_facts.setText("All facts")
        self._pcs = studio.pcs
        self._add_pc = button("Add a PC…", self._ask_for_pc, name="devices.add_pc", tip=_ADD_TIP)
        self._add_pc.setVisible(self._pcs.is_supported)
        self._tools = FlowRow(self._all_sensors, self._all_facts, self._add_pc)
        self._measurement = StandardMeasurement(studio, self)
        here = self._model.list_of(self._pcs.here)
        self._hero = DeviceHero(studio, here, self._comparison, self._measurement, theme)
        self._heading: PcHeading | None = None
        self._groups: dict[RemotePc, PcGroup] = {}
        self._standard = StandardPanel(studio, self._measurement, theme)
        self._details: DeviceDetails | None = None
        # Its import takes 22 ms, as long as that of all that stands above it.
        details = LazyPage(
            _DETAILS, self._model, studio.settings, theme,
            self._all_sensors, self._all_facts, parent=self,
        )  # fmt: skip
        details.created.connect(self._add_details)
        self.later = (details,)
        self._act = studio.headlines.act
        self._findings = QWidget()
        self._findings.setObjectName("devices.findings")
        self._findings.setAccessibleName("Findings about this device")
        self._lines = QVBoxLayout(self._findings)
        self._lines.setContentsMargins(0, 0, 0, 0)
        self._lines.setSpacing(2)
        self._also_found: list[FindingLine] = []
        self._checked = Text("", "muted", name="devices.checked", wraps=True)
        self._trouble = Text("", "amber", name="devices.trouble", wraps=True)
        self._column = self._laid_out()
        self._hero.list.device_selected.connect(self._select)
        for pc in self._pcs.others:
            self._add_group(pc)
        self._pcs.added.connect(self._add_group)
        self._pcs.removed.connect(self._remove_group)
        # One inventory changes many parts of the model: the page follows them once.
        self._are_facts_due = False
        self._soon = QTimer(self)
        self._soon.setSingleShot(True)
        self._soon.setInterval(0)
        self._soon.timeout.connect(self._update_due)
        self._comparison.changed.connect(self._update_soon)
        self._measurement.changed.connect(self._update_soon)
        self._model.selection_changed.connect(self._update_soon)
        self._model.selection_changed.connect(self._update_sensors_soon)
        self._model.facts_changed.connect(self._update_soon)
        self._model.readings_changed.connect(self._update_sensors_soon)
        self._model.runs.marks_changed.connect(self._update_sensors_soon)
        self._update()

    @property
    def is_up_to_date(self) -> bool:
        """Whether all parts are made and show every change."""
        return self._details is not None and not self._soon.isActive()

    def showEvent(self, event: QShowEvent) -> None:
        """Show the current facts, and keep asking while visible."""
        super().showEvent(event)
        self._model.watch(True)
        self._update()
        self._update_sensors_soon()

    def hideEvent(self, event: QHideEvent) -> None:
        """Ask for nothing while hidden."""
        super().hideEvent(event)
        self._model.watch(False)

    def _laid_out(self) -> QVBoxLayout:
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        for widget in (
            self._tools,
            self._hero,
            self._standard,
            self._findings,
            self._checked,
            self._trouble,
        ):
            column.addWidget(widget)
        column.addStretch(1)
        self._checked.hide()
        self._trouble.hide()
        return column

    def _add_details(self, details: DeviceDetails) -> None:
        self._details = details
        self._tools.set_widgets(
            self._all_sensors,
            self._all_facts,
            self._add_pc,
            *details.tools,
        )
        self._details.readings_wanted.connect(self._update_sensors_soon)
        # The plots of the sensors fill the page, and the space that stood for them goes.
        self._column.takeAt(self._column.count() - 1)
        self._column.addWidget(self._details, 1)
        self._update_soon()
        self._update_sensors_soon()

    def _select(self, identity: str) -> None:
        """Show at once what the user asked for."""
        self._model.select(identity)
        self._update()
        self._update_sensors()

    def _update_soon(self) -> None:
        self._are_facts_due = True
        self._update_sensors_soon()

    def _update_sensors_soon(self) -> None:
        if self.isVisible():  # otherwise `showEvent` shows them
            self._soon.start()

    def _update_due(self) -> None:
        """Show what has changed: the facts first, as the sensors are those of the shown device."""
        if self._are_facts_due:
            self._update()
        self._update_sensors()

    def _update(self) -> None:
        self._are_facts_due = False
        with laid_out_once(self):
            device = self._model.device
            verdict = self._model.verdict
            self._hero.show_verdict(verdict, in_brief=self._model.is_shown_above(verdict))
            self._hero.show_presses(self._model.has_cards, self._model.row)
            self._standard.update_all()
            self._show_also_found(self._model.also_found)
            checked = self._model.pc.doctor.sentence
            self._checked.setText(checked)
            self._checked.setVisible(bool(checked))
            self._show_answers()
            if not self.isVisible():
                return
            if self._details is not None:
                self._details.show_device()
            if device is None:
                return
            row = self._model.row
            if row is not None:
                self._hero.list.follow(row.identity)
                for group in self._groups.values():
                    group.list.follow(row.identity)
            trouble = self._model.trouble
            self._trouble.setText(trouble)
            self._trouble.setVisible(bool(trouble) and verdict.code not in _EXPLAIN_TROUBLE)

    def _ask_for_pc(self) -> None:
        from gpu_studio.ui.devices.add_pc_dialog import AddPcDialog  # at the press

        dialog = AddPcDialog(self._pcs, self.window())
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def _add_group(self, pc: RemotePc) -> None:
        from gpu_studio.ui.devices.pc_group import PcGroup, PcHeading  # with another PC

        if self._heading is None:
            self._heading = PcHeading(self._theme, "This PC", "", name="devices.pc")
            self._hero.set_heading(self._heading)
        group = PcGroup(pc, self._pcs, self._model.list_of(pc), self._theme)
        group.list.device_selected.connect(self._select)
        self._groups[pc] = group
        self._hero.add_group(group)
        self._show_answers()

    def _remove_group(self, pc: RemotePc) -> None:
        group = self._groups.pop(pc)
        group.hide()
        group.deleteLater()
        self._update_soon()

    def _show_answers(self) -> None:
        """Show the answer about each PC, if there are several."""
        if self._heading is not None:
            self._heading.setVisible(bool(self._groups))
            self._heading.show_answer(self._model.answer_of(self._pcs.here))
        for pc, group in self._groups.items():
            group.show_answer(self._model.answer_of(pc))
        self._add_pc.setEnabled(self._pcs.can_add)

    def _show_also_found(self, headlines: Sequence[Headline]) -> None:
        """Show the other findings below the answers, each in a line; new ones are at the end."""
        before = [line.headline for line in self._also_found]
        known = [one for one in before if one is not None and one in headlines]
        headlines = [*known, *(one for one in headlines if one not in known)]
        for number in range(len(self._also_found), len(headlines)):
            line = FindingLine(self._theme, name=f"devices.finding.{number}")
            line.action_requested.connect(self._act)
            self._lines.addWidget(line)
            self._also_found.append(line)
        for line, headline in zip(self._also_found, headlines, strict=False):
            line.show_headline(headline)
        for number, line in enumerate(self._also_found):
            line.setVisible(number < len(headlines))
        self._findings.setVisible(bool(headlines))

    def _update_sensors(self) -> None:
        if self._details is not None and self.isVisible():
            self._details.show_readings()
