"""The result in large type."""

from __future__ import annotations

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QHBoxLayout, QVBoxLayout, QWidget

from gpu_studio.core.benchmark.verdict import same_kind, verdict_of, verdict_text
from gpu_studio.core.notice import Action, Tone, action_label
from gpu_studio.model.benchmark.benchmark_hero import hero_of
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.icons import icon
from gpu_studio.ui.parts import GAP, Card, Role, Text, button, show_label
from gpu_studio.ui.result_bars import ResultBar, ResultBars
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Sequence

    from PySide6.QtGui import QResizeEvent

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.core.benchmark.verdict import BenchmarkVerdict
    from gpu_studio.core.messages.run_messages import RunFinished
    from gpu_studio.model.benchmark.benchmark import Benchmark
    from gpu_studio.model.benchmark.benchmark_hero import Hero
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.theme import Theme


_PADDING = (24, 16)
_MOST_THICK_BARS, _MOST_THICK_WHEN_EMPTY = 2, 4
_BARS_SHARE = 6  # of the width, between two spaces of 1
_USUAL_GAP, _WIDE_GAP = 6, 16
# A question or "Measuring…" is no result: smaller than a ratio.
_WORDS_ROLES: tuple[Role, ...] = ("hero_words", "headline", "title")
_RATIO_ROLES: tuple[Role, ...] = ("hero", *_WORDS_ROLES)


class HeroCard(Card):
    """Shows a `Hero`, and the verdict on all sizes below it.

    Signals:
        action_wanted(): the user pressed the result's button.

    Attributes:
        is_empty: whether it fills the page with its question, before the first run.
    """

    action_wanted = Signal()

    def __init__(
        self,
        theme: Theme,
        *,
        name: str,
        invitation: QWidget | None = None,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent, name=name)
        self._hero: Hero | None = None
        self.is_empty = False
        self._rows = 0
        self._headline = Text("", "hero", name=f"{name}.headline", wraps=True)
        self._theme = theme
        self._chip = TrustChip(theme, name="benchmark.trust")
        self._work = Text("", "muted", name=f"{name}.work", wraps=True)
        self._bars = ResultBars(theme, name=f"{name}.bars")
        self._bars.setAccessibleName("Time per call of each device")
        self._verdict = Text("", "lead", name="benchmark.verdict", wraps=True)
        self._action = button(
            action_label(Action.RUN_AGAIN), self.action_wanted.emit, name=f"{name}.action"
        )
        self._action.hide()
        # Around everything before the first run, when the card fills the page.
        self._spaces = tuple(QWidget() for _ in range(4))
        above, left, right, under = self._spaces
        self.column.addWidget(above, 2)
        line = QHBoxLayout()
        line.setSpacing(GAP)
        self.column.addLayout(line)
        line.addWidget(self._headline, 1)
        line.addWidget(self._chip, 0, Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        self.column.addWidget(self._work)
        beside = QHBoxLayout()
        beside.setSpacing(0)
        self.column.addLayout(beside)
        beside.addWidget(left, 1)
        beside.addWidget(self._bars, _BARS_SHARE)
        beside.addWidget(right, 1)
        if invitation is not None:
            self.column.addWidget(invitation)
        self.column.addWidget(under, 3)
        below = QHBoxLayout()
        below.setSpacing(GAP)
        self.column.addLayout(below)
        below.addWidget(self._verdict, 1)
        below.addWidget(self._action, 0, Qt.AlignmentFlag.AlignTop)
        self.column.setContentsMargins(*_PADDING, *_PADDING)
        self._arrange_empty()

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
                    self._theme.device_role(bar.device),
                    bar.median_s,
                    bar.text,
                    Qt.BrushStyle.SolidPattern if bar.is_final else Qt.BrushStyle.BDiagPattern,
                    tip=bar.tip,
                )
                for bar in hero.bars
            ]
        )
        self._bars.setVisible(bool(hero.bars))
        self._keep_rows()
        self.setAccessibleName(" · ".join(filter(None, (hero.headline, hero.work))))
        self.setAccessibleDescription(self._bars.accessibleDescription())
        self._fit()

    def show_verdict(self, words: str, *, is_doubted: bool) -> None:
        """Show the sentences about all sizes."""
        self._verdict.setText(words)
        self._verdict.set_tone(Tone.AMBER if is_doubted else Tone.PLAIN)
        self._verdict.setVisible(bool(words))

    def set_empty(self, is_empty: bool) -> None:
        """Fill the page with the question, before the first run."""
        if is_empty != self.is_empty:
            self.is_empty = is_empty
            self._arrange_empty()
            self._fit()

    def _keep_rows(self) -> None:
        """While it invites to a run, let fewer devices move no button below."""
        self._rows = max(self._rows, len(self._bars.bars)) if self.is_empty else 0
        self._bars.keep_rows(self._rows)

    def _arrange_empty(self) -> None:
        self._keep_rows()
        self.column.setSpacing(_WIDE_GAP if self.is_empty else _USUAL_GAP)
        for space in self._spaces:
            space.setVisible(self.is_empty)
        sides = Qt.AlignmentFlag.AlignHCenter if self.is_empty else Qt.AlignmentFlag.AlignLeft
        for words in (self._headline, self._work):
            words.setAlignment(sides | Qt.AlignmentFlag.AlignVCenter)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Keep the headline on one line by a smaller type."""
        super().resizeEvent(event)
        self._fit()

    def _fit(self) -> None:
        """Choose the largest type in which the headline fits beside the chip."""
        most = _MOST_THICK_WHEN_EMPTY if self.is_empty else _MOST_THICK_BARS
        self._bars.set_dense(len(self._bars.bars) > most)
        is_ratio = self.is_empty or (self._hero is not None and self._hero.is_ratio)
        roles = _RATIO_ROLES if is_ratio else _WORDS_ROLES
        margins = self.column.contentsMargins()
        room = self.width() - margins.left() - margins.right()
        if not self._chip.isHidden():
            room -= self._chip.sizeHint().width() + GAP
        self._headline.fit_role(roles, room)


class Invitation(FlowRow):
    """Two buttons.

    Signals:
        published_wanted(): the user wants to repeat a published experiment.
        recording_wanted(): the user wants to watch recorded runs.
    """

    published_wanted = Signal()
    recording_wanted = Signal()

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(centred=True, spacing=GAP, parent=parent)
        published = button(
            "Repeat a published experiment", self.published_wanted.emit,
            name="benchmark.view.published", tip="Compare this PC with the GT 1030 experiment",
        )  # fmt: skip
        recording = button(
            "Open a recording…", self.recording_wanted.emit,
            name="benchmark.view.recording", tip="Watch runs from another PC",
        )  # fmt: skip
        recording.setIcon(icon("file", theme))
        published.setIcon(icon("refresh", theme))
        self.set_widgets(recording, published)


class BenchmarkHead(QWidget):
    """The part above the plots.

    Signals:
        run_again_wanted(): the user wants the last plan once more.

    Attributes:
        invitation: what else leads to a result, before the first run.
    """

    run_again_wanted = Signal()

    def __init__(
        self,
        studio: Studio,
        benchmark: Benchmark,
        theme: Theme,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._studio, self._benchmark = studio, benchmark
        self._theme = theme
        self._is_wrong = False
        self._devices: tuple[str, ...] = ()
        self._chosen: Run | None = None
        self.invitation = Invitation(theme)
        self._is_known = False
        self._hero = HeroCard(theme, name="benchmark.hero", invitation=self.invitation)
        self._hero.action_wanted.connect(self.run_again_wanted)
        self._arrange()

    def _arrange(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(GAP)
        column.addWidget(self._hero)

    @property
    def controls(self) -> tuple[QWidget, ...]:
        """The controls in Tab order."""
        return self._hero.controls

    def show_result(self, is_shown: bool) -> None:
        """Show the result, or leave the page to what is not about it."""
        self._hero.setVisible(is_shown)

    def show_results(self) -> None:
        """Update the sentences: at the end of a run, not for each sample."""
        self._show_verdict()

    def set_empty(self, is_empty: bool) -> None:
        """Fill the page with the question and the ways to a result, before the first run."""
        self._hero.set_empty(is_empty)
        self._show_invitation()

    def show_devices(self, devices: Sequence[str], *, is_known: bool) -> None:
        """Show these devices' empty bars before the first run.

        Args:
            devices: those that Run would use.
            is_known: whether the engine has named them all; until then others may come, and would
                move what is below.
        """
        self._devices, self._is_known = tuple(devices), is_known
        self.show_hero()
        self._show_invitation()

    def _show_invitation(self) -> None:
        self.invitation.setVisible(self._hero.is_empty and self._is_known)

    def choose(self, run: Run | None) -> None:
        """Show the size of one run at the top; None shows the latest."""
        self._chosen = run
        self.show_hero()

    def show_hero(self) -> None:
        """Update the top: at every news of a run."""
        hero = self.hero
        self._hero.show_hero(hero)
        if hero.is_wrong != self._is_wrong:
            self._is_wrong = hero.is_wrong
            self._show_verdict()  # the sentence repeats nothing of the headline

    @property
    def hero(self) -> Hero:
        """What the top of the page shows."""
        return hero_of(
            self._benchmark,
            self._studio.board.rows,
            chosen=self._chosen,
            devices=self._devices,
            titles=self._benchmark.titles,
        )

    def portrait(self) -> HeroCard:
        """Return a new widget without a parent that shows the top of the page, untruncated."""
        shown = HeroCard(self._theme, name="benchmark.hero.picture")
        hero = self.hero.for_picture
        shown.show_hero(hero)
        verdict, titles = verdict_of(self._benchmark.results), self._benchmark.titles
        words = verdict_text(verdict, titles=titles, below_headline=hero.is_wrong)
        shown.show_verdict(words, is_doubted=_is_claim_doubted(verdict))
        return shown

    def _show_verdict(self) -> None:
        verdict, titles = verdict_of(self._benchmark.results), self._benchmark.titles
        words = verdict_text(
            verdict, titles=titles, below_headline=self._is_wrong,
            can_compare=len(self._studio.board.usable) > 1,
        )  # fmt: skip
        self._hero.show_verdict(words, is_doubted=_is_claim_doubted(verdict))

    def latest_kind(self) -> list[RunFinished]:
        """Return the latest result of each size, device and mode that the verdict is about."""
        results = self._benchmark.results
        latest = {
            (result.size, result.device, result.transfers): result
            for result in results
            if same_kind(result, results[-1])
        }
        return list(latest.values())


def _is_claim_doubted(verdict: BenchmarkVerdict | None) -> bool:
    """Return whether a sentence claims something doubtful; of a result alone, the chip says so."""
    if verdict is None or not (verdict.comparisons or verdict.wrong):
        return False
    return verdict.is_doubted
