"""The Check tab: is this card sound? One result with its next step, five stages, live sensors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtWidgets import QVBoxLayout

from gpu_studio.core.check.check_file import RECORD_ENDINGS
from gpu_studio.core.check.check_run import CheckPlan
from gpu_studio.core.check.check_words import breakable, plan_text, record_title
from gpu_studio.core.check.stages import GLANCE_MINUTES
from gpu_studio.core.notice import Notice
from gpu_studio.core.parameter import parameters_of
from gpu_studio.model.check.card_check import CardCheck
from gpu_studio.ui.ask_adapters import ask_press, ask_words
from gpu_studio.ui.check.check_curves import CheckCurves, lanes_of
from gpu_studio.ui.check.record_document import save_record
from gpu_studio.ui.page import Box, Flow, Fold, Own, Page
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, More, Press, Rows, Words
from gpu_studio.ui.parts import GAP, MARGIN
from gpu_studio.ui.saving import ask_open_path
from gpu_studio.ui.tabs import TabContents
from gpu_studio.ui.trust_chip import TrustChip

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.pages import Destination
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_ENDINGS = " ".join(f"*{ending}" for ending in RECORD_ENDINGS)
_RECORDS = f"Records of a check ({_ENDINGS});;All files (*)"
_MOST_OFFERED = 20


class CheckPage(Page):
    """Choices and actions in a row, then the result, the stages and the curves; the rest folds."""

    model: CardCheck

    def parts(self) -> Sequence[Part]:
        """Return the parts from top to bottom."""
        m = self.model

        def is_free() -> bool:
            return not m.is_busy

        return (
            Flow(
                Pick(of="device", title="Device to check", name="device", least_letters=16,
                     items=lambda: m.device_items, enabled=is_free),
                *(Pick(of=one.field, title=one.title, name=one.field, items=one.items,
                       least_letters=9, enabled=is_free, tip=one.sentence)
                  for one in parameters_of(CheckPlan)),
                Press("Run check", m.start, name="run", primary=True, icon="shield", key="run",
                      enabled=lambda: m.can_run),
                Press("Stop check", m.stop, name="stop", icon="stop", key="stop",
                      enabled=lambda: m.can_stop, tip="Keep the results so far"),
                Press("Save record…", self._save, name="save", icon="export", key="save",
                      enabled=lambda: m.record is not None,
                      tip="As a picture with the record inside, to show to a buyer"),
                Press("Open record…", self._open, name="open", enabled=is_free,
                      tip="Open the record of a check from a picture or a JSON file"),
                ask_press(m),
                More("Earlier checks", self._earlier, name="records", keeps_room=True,
                     shown=lambda: m.kept and is_free()),
            ),
            Words(lambda: m.outcome, "muted", name="outcome", keeps_room=True),
            ask_words(m),
            Box(
                Words(lambda: m.hero.subject, "title", name="subject"),
                Words(lambda: m.hero.when, "muted", name="when"),
                Words(lambda: m.hero.origin, "amber", name="origin"),
                Flow(
                    Words(lambda: m.hero.errors, "hero_words", wraps=False, name="errors"),
                    Own(lambda: TrustChip(name="check.chip"),
                        lambda chip: chip.show_notice(m.hero.chip),
                        shown=lambda: m.hero.chip.sentence),
                ),
                Words(lambda: m.hero.planted, "failure", name="planted"),
                Words(lambda: m.hero.doing, "lead", name="doing"),
                Words(lambda: m.hero.next, name="next"),
                name="hero", tone=lambda: m.hero.errors.tone, presented=True,
            ),
            Rows("Stages of the check", ("Stage", "Result", "Time", "Tested"),
                 lambda: m.stage_rows, name="stages", wide=3),
            Own(lambda: CheckCurves(self.theme),
                lambda curves: curves.show_lanes(lanes_of(m.shown)),
                shown=lambda: lanes_of(m.shown), name="sensors", presented=True),
            Fold(
                Words(self._listed("findings"), name="findings"),
                Rows("What was checked", ("What", "Checked"),
                     lambda: [row[:2] for row in m.rows("facts")], name="facts",
                     shown=lambda: m.rows("facts")),
                label="Details", name="details", shown=lambda: m.rows("findings") or m.record,
            ),
            Fold(
                Words(self._listed("limits"), name="limits"),
                Heading("Can you rely on this record?"),
                Words(self._listed("trust"), name="trust"),
                label="What it cannot rule out", name="cannot", shown=lambda: m.record,
            ),
            Fold(
                Words(lambda: plan_text(m.address), name="plan"),
                label="What the stages test", name="tests",
            ),
        )  # fmt: skip

    def update_parts(self) -> None:
        """Show the present state, and the code for it."""
        super().update_parts()
        self.model.show_code()

    def _listed(self, part: str) -> Callable[[], str]:
        """Return what returns the rows of a part of the record, each with its details."""

        def lines() -> str:
            rows = self.model.rows(part)
            return breakable("\n".join(
                "\n      ".join((f"{row.title or '•'}  {row.words}", *row.details)) for row in rows
            ))  # fmt: skip

        return lines

    def _earlier(self) -> list[tuple[str, Callable[[], None]]]:
        kept = self.model.kept[:_MOST_OFFERED]
        show = self.model.show_record
        return [(record_title(record), partial(show, record)) for record in kept]

    def _open(self) -> None:
        if path := ask_open_path(self.window(), "Open record", _RECORDS):
            self.model.open_file(Path(path))

    def _save(self) -> None:
        if self.model.record is not None:
            self.model.note(save_record(self.window(), self.model.record))


class CheckTab(TabContents):
    """One page; its model is `check`."""

    def __init__(self, studio: Studio, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.check = CardCheck(studio, self)
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        self._page = CheckPage("check", self.check, theme)
        column.addWidget(self._page)

    def present(self, *, is_presented: bool) -> None:
        """Show only what an audience looks at, or all again."""
        self._page.present(is_presented=is_presented)

    def go_to(self, destination: Destination) -> None:
        """Choose a device, check it for a minute, or open the record of a check."""
        if destination.device and destination.starts:
            self.check.choose(device=destination.device, minutes=GLANCE_MINUTES)
            self.check.start()
        elif destination.device:
            self.check.choose(device=destination.device)
        if destination.path is not None:
            self.check.note(Notice())
            self.check.open_file(destination.path)
