"""The errors found so far, what is running now, and how much memory is covered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QProgressBar

from gpu_studio.core.check.check_verdict import sentence_finding
from gpu_studio.core.check.record_words import coverage_share, coverage_text
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.units import format_percent
from gpu_studio.model.check import check_words
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.messages.check_messages import CheckFinding, MemoryCoverage
    from gpu_studio.model.check.card_check import CardCheck
    from gpu_studio.ui.parts import Role
    from gpu_studio.ui.theme import Theme

_HEADS: tuple[Role, ...] = ("hero", "hero_words", "headline", "title")
_STEPS = 1000


class CheckHero(Card):
    """Empty, it asks the question of the page."""

    def __init__(self, check: CardCheck, theme: Theme) -> None:
        super().__init__(name="check.hero")
        self._check = check
        self._errors = Text("", "hero", name="check.errors")
        self._chip = TrustChip(theme, name="check.chip")
        self._planted = Text("", "failure", name="check.planted", wraps=True)
        self._sentence = Text("", "lead", name="check.doing", wraps=True)
        self._detail = Text("", "muted", name="check.tested", wraps=True)
        self._findings = Text("", "muted", name="check.findings", wraps=True)
        self._covered = Text("Memory tested", "muted")
        self._coverage = Text("", "value", name="check.coverage")
        self._bar = QProgressBar()
        self._bar.setObjectName("check.coverage.bar")
        self._bar.setAccessibleName("Share of the free memory that was tested")
        self._bar.setRange(0, _STEPS)
        self._bar.setTextVisible(False)
        self.column.setContentsMargins(2 * MARGIN, MARGIN, 2 * MARGIN, MARGIN)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._errors, 1)
        line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        for widget in (self._planted, self._sentence, self._detail, self._findings):
            self.column.addWidget(widget)
        self._coverage_line = FlowRow(self._covered, self._coverage, fills=self._covered)
        self.column.addWidget(self._coverage_line)
        self.column.addWidget(self._bar)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Choose the type in which the hero fits."""
        super().resizeEvent(event)
        self._fit()

    def show_check(self) -> None:
        """Show the present state of the check, or the shown record."""
        check = self._check
        notice = check_words.hero(check)
        self._errors.setText(notice.sentence)
        self._errors.set_tone(notice.tone)
        self._chip.show_notice(check_words.chip(check))
        planted = check_words.planted(check)
        self._show(self._planted, planted)
        self._show(self._sentence, notice.detail)
        self._show(self._detail, notice.next_step)
        source = check.record or (check.run if check.phase.is_busy else None)
        findings = source.findings if source is not None else ()
        quoted = None
        if check.record is not None:
            record = check.record
            quoted = sentence_finding(record.verdict, record.findings, record.interruptions)
        self._show_findings([one for one in findings if one is not quoted])
        is_card = not is_cpu(check.checked_address)  # of the RAM, a check tests a modest share
        self._show_coverage(source.coverage if source is not None and is_card else None)
        self._fit()

    def _show_findings(self, findings: Sequence[CheckFinding]) -> None:
        self._show(self._findings, check_words.findings_text(findings))
        self._findings.set_tone(check_words.findings_tone(findings))

    def _show_coverage(self, coverage: MemoryCoverage | None) -> None:
        self._coverage_line.setVisible(coverage is not None)
        self._bar.setVisible(coverage is not None)
        if coverage is None:
            return
        share = coverage_share(coverage)
        self._coverage.setText(f"{coverage_text(coverage)}, {format_percent(share)}")
        self._bar.setValue(round(_STEPS * share))

    def _fit(self) -> None:
        chip = self._chip.sizeHint().width() + GAP if not self._chip.isHidden() else 0
        margins = self.column.contentsMargins()
        room = self.width() - margins.left() - margins.right() - chip
        is_question = self._check.record is None and not self._check.phase.is_busy
        self._errors.fit_role(_HEADS[is_question:], room)

    def _show(self, label: Text, text: str) -> None:
        label.setText(text)
        label.setVisible(bool(text))
