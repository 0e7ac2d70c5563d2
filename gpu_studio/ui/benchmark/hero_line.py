"""The line over the curves: who is faster, in large type, and how far to trust it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget

from gpu_studio.core.notice import Tone, action_label
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.parts import GAP, Role, Text, button, show_label
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.model.benchmark.benchmark_hero import Hero
    from gpu_studio.ui.theme import Theme

_ROLES: tuple[Role, ...] = ("hero_words", "headline", "title")
_HEADLINE_SHARE = 0.6  # of the width, at most


class HeroLine(QWidget):
    """Shows a `Hero`, always as high.

    Args:
        theme: gives the colors.
        name: begins the names of its parts.
        act: does what the button says; None: there is none, on a picture.
    """

    def __init__(self, theme: Theme, *, name: str, act: Callable[[], None] | None = None) -> None:
        super().__init__()
        self.setObjectName(name)
        self._headline = Text("", "hero_words", name=f"{name}.headline")
        self._work = ElidedText("", "muted", name=f"{name}.work")
        # The chip has its words on one line first, and the work what is left.
        self._work.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Preferred)
        self._chip = TrustChip(name="benchmark.trust")
        line = QHBoxLayout(self)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(GAP)
        line.addWidget(self._headline)
        line.addWidget(self._work, 1)
        line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignVCenter)
        self._action = button("", act, name=f"{name}.action") if act is not None else None
        if self._action is not None:
            line.addWidget(self._action)
        self.setMinimumHeight(self._headline.room_for(_ROLES))

    def show_hero(self, hero: Hero) -> None:
        """Show a result, a run in progress, a failure, or a question."""
        self._headline.setText(hero.headline)
        self._headline.setVisible(bool(hero.headline))
        self._headline.set_tone(Tone.PLAIN if hero.is_final else Tone.QUIET)
        self._work.setText(hero.work)
        self._work.setWordWrap(hero.has_failed)
        self._work.set_tone(Tone.FAILURE if hero.has_failed else Tone.PLAIN)
        self._chip.show_notice(hero.chip)
        if self._action is not None:
            show_label(self._action, action_label(hero.action))
        self.setAccessibleName(" · ".join(filter(None, (hero.headline, hero.work))))
        self._fit()

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the headline on one line by a smaller type."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        self._headline.fit_role(_ROLES, round(_HEADLINE_SHARE * self.width()))
