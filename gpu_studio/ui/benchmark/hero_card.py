"""The result at the top of the Benchmark tab, in large type with thick bars."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout

from gpu_studio.core.notice import Action, Tone, action_label
from gpu_studio.model.tool_tip import rich_tip
from gpu_studio.ui.parts import GAP, Card, Role, Text, button, show_label
from gpu_studio.ui.result_bars import ResultBar, ResultBars
from gpu_studio.ui.theme import device_role
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from PySide6.QtGui import QResizeEvent
    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.benchmark.benchmark_hero import Hero
    from gpu_studio.ui.theme import Theme

_PADDING, _DENSE_PADDING = (24, 16), (16, 8)
_MOST_THICK_BARS = 2
# A question or "Measuring…" is no result: smaller than a ratio.
_WORDS_ROLES: tuple[Role, ...] = ("hero_words", "headline", "title")
_RATIO_ROLES: tuple[Role, ...] = ("hero", *_WORDS_ROLES)


class HeroCard(Card):
    """Shows a `Hero`, and the verdict on all sizes below it.

    Signals:
        action_wanted(): the user pressed the result's button.
    """

    action_wanted = Signal()

    def __init__(self, theme: Theme, *, name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent, name=name)
        self._hero: Hero | None = None
        self._is_dense = False
        self._headline = Text("", "hero", name=f"{name}.headline", wraps=True)
        self._chip = TrustChip(theme, name="benchmark.trust")
        self._work = Text("", "muted", name=f"{name}.work", wraps=True)
        self._bars = ResultBars(theme, name=f"{name}.bars")
        self._bars.setAccessibleName("Time per call of each device")
        self._verdict = Text("", "lead", name="benchmark.verdict", wraps=True)
        self._action = button(
            action_label(Action.RUN_AGAIN), self.action_wanted.emit, name=f"{name}.action"
        )
        self._action.hide()
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._headline, 1)
        line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.column.addWidget(self._work)
        self.column.addWidget(self._bars)
        below = QHBoxLayout()
        below.setSpacing(GAP)
        self.column.addLayout(below)
        below.addWidget(self._verdict, 1)
        below.addWidget(self._action, 0, Qt.AlignmentFlag.AlignTop)
        self._set_margins()

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The controls in Tab order."""
        return (self._chip, self._action)

    def show_hero(self, hero: Hero) -> None:
        """Show a result, a run in progress, a failure, or a question."""
        if hero == self._hero:
            return
        self._hero = hero
        self._headline.setText(hero.headline)
        self._headline.setVisible(bool(hero.headline))
        self._headline.set_tone(Tone.PLAIN if hero.is_final else Tone.QUIET)
        self._work.setText(hero.work)
        self._work.set_tone(Tone.FAILURE if hero.has_failed else Tone.PLAIN)
        self._chip.show_notice(hero.chip)
        show_label(self._action, action_label(hero.action))
        self._bars.show_bars(
            [
                ResultBar(
                    bar.name,
                    device_role(bar.device),
                    bar.median_s,
                    bar.text,
                    is_final=bar.is_final,
                    tip=bar.tip,
                )
                for bar in hero.bars
            ]
        )
        self._bars.setVisible(bool(hero.bars))
        self.setAccessibleName(" · ".join(filter(None, (hero.headline, hero.work))))
        self.setAccessibleDescription(self._bars.accessibleDescription())
        self._fit()

    def show_verdict(self, whole: str, brief: str, *, is_doubted: bool) -> None:
        """Show the sentences about all sizes; in a low window, the first with the rest in a tip."""
        is_cut = brief != whole
        self._verdict.setText(brief)
        self._verdict.setToolTip(rich_tip([whole]) if is_cut else "")
        self._verdict.setAccessibleName(whole)
        self._verdict.set_tone(Tone.AMBER if is_doubted else Tone.PLAIN)
        self._verdict.setVisible(bool(whole))

    def set_dense(self, is_dense: bool) -> None:
        """Use less height, in a low window."""
        if is_dense != self._is_dense:
            self._is_dense = is_dense
            self._set_margins()
            self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the headline on one line by a smaller type."""
        super().resizeEvent(event)
        self._fit()

    def _set_margins(self) -> None:
        aside, above = _DENSE_PADDING if self._is_dense else _PADDING
        self.column.setContentsMargins(aside, above, aside, above)

    def _fit(self) -> None:
        """Choose the largest type in which the headline fits beside the chip."""
        self._bars.set_dense(self._is_dense or len(self._bars.bars) > _MOST_THICK_BARS)
        is_ratio = self._hero is not None and self._hero.is_ratio
        roles = _RATIO_ROLES if is_ratio and not self._is_dense else _WORDS_ROLES
        margins = self.column.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        if not self._chip.isHidden():
            room -= self._chip.sizeHint().width() + GAP
        self._headline.fit_role(roles, room)
