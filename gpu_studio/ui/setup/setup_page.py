"""The page that installs PyTorch: your card, one installation, and the builds that are there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import QFileDialog, QLabel, QMessageBox, QPushButton

from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import build_title
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.wheel_table import CPU_TAG, download_size
from gpu_studio.model import setup_words as words
from gpu_studio.model.pages import QUICK_LOOK
from gpu_studio.model.setup_words import SetupModel
from gpu_studio.ui.icons import icon
from gpu_studio.ui.page import Box, Columns, Flow, Fold, Own, Page, Stack
from gpu_studio.ui.page_controls import Pick
from gpu_studio.ui.page_parts import Heading, Press, ProgressBar, Words
from gpu_studio.ui.parts import GAP, MARGIN

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from PySide6.QtWidgets import QWidget

    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.page import Part
    from gpu_studio.ui.theme import Theme

_FOLDER_TIP = "For a PC without internet: download the files on another PC and choose their folder"
_START, _LOOK_AROUND = "Start using GPU Studio", "Look around first"
_MAIN = ("begin", "go_on", "again", "pause")  # one of them is the next step


class SetupPage(Page):
    """Stands in the place of the tabs.

    Args:
        studio: has the builds and the devices.
        theme: for icons.
        close: shows the tabs again.
    """

    model: SetupModel

    def __init__(self, studio: Studio, theme: Theme, close: Callable[[], object]) -> None:
        assert studio.builds is not None
        self._studio, self._builds, self._close = studio, studio.builds, close
        model = SetupModel(studio.builds, studio.sensors)
        super().__init__("setup", model, theme)
        model.setParent(self)
        self._next_focus: QWidget | None = None
        self.setObjectName("setup.page")
        self.setAccessibleName("Install PyTorch")
        layout = self.layout()
        assert layout is not None
        layout.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)

    def parts(self) -> Sequence[Part]:
        """Return the card with the way out, the installation, and what is installed."""
        m, builds = self.model, self._builds
        return (
            Columns(
                Own(QLabel, self._show_sign),
                Stack(
                    Words(lambda: m.device_name, "headline", name="device"),
                    Words(lambda: m.device_line, "muted", name="device.line"),
                    stretch=1,
                ),
                Press(lambda: _START if builds.has_engine else _LOOK_AROUND, self._close,
                      name="close", primary=lambda: m.goes_well,
                      link=lambda: not builds.has_engine),
            ),
            Box(*self._installation(), name="hero"),
            Box(
                Heading("Installed builds of PyTorch"),
                *(self._build(family) for family in FAMILIES),
                Words(lambda: m.disk, "muted", name="disk"),
                name="builds", shown=lambda: m.records,
            ),
        )  # fmt: skip

    def _installation(self) -> Sequence[Part]:
        m, builds = self.model, self._builds
        return (
            Words(self._title, "headline", name="title"),
            Words(lambda: words.figure(builds), "hero", name="figure"),
            ProgressBar("Progress of the installation", lambda: builds.progress.fraction,
                        name="progress", shown=lambda: words.has_share(builds.progress)),
            Words(lambda: m.bytes, "lead", name="bytes"),
            Words(lambda: m.offer, "lead", name="offer"),
            Words(lambda: m.action, name="action"),
            Flow(*self._presses()),
            Words(lambda: words.next_sentence(builds), "muted", name="next"),
            Fold(
                Words(lambda: builds.recommended.why, "muted", name="why_text"),
                Flow(
                    Pick(of="family", title="Build to install", name="choose", least_letters=20,
                         items=self._offered),
                    Press(lambda: "Use this one" if m.is_chosen_there else "Install this one",
                          m.take, name="install_chosen", enabled=lambda: m.can_take),
                ),
                label="Why this one?", name="why",
            ),
        )  # fmt: skip

    def _presses(self) -> Sequence[Part]:
        """Return the buttons; which of them is there follows from the state."""
        m, builds = self.model, self._builds

        def can_begin() -> bool:
            return (m.is_offer or m.is_done) and bool(words.begin_label(builds))

        def has_link() -> bool:
            return builds.trouble is not None and bool(builds.trouble.link)

        return (
            Press(self._measure_label, partial(self._studio.go_to, QUICK_LOOK), primary=True,
                  name="measure", tip="Without PyTorch and without a download",
                  shown=lambda: not builds.has_engine and m.is_offer),
            Press(lambda: words.begin_label(builds), lambda: builds.begin(*builds.planned),
                  primary=lambda: builds.has_engine or not m.is_offer, name="begin",
                  shown=can_begin),
            Press("Not now", builds.decline_updates, name="not_now",
                  tip="The update stays on this page, and no line on the other pages offers it",
                  shown=lambda: words.is_update_offered(builds) and builds.has_engine
                  and not builds.has_declined),
            Press("Continue", builds.go_on, primary=True, name="go_on",
                  shown=lambda: m.is_paused and not builds.is_at_work),
            Press("Try again", builds.go_on, primary=True, name="again",
                  shown=lambda: m.is_failed and not builds.is_at_work),
            Press("Open the download page", self._open_page, name="open", shown=has_link),
            Press("Pause", builds.pause, name="pause", shown=lambda: builds.is_at_work,
                  enabled=lambda: not builds.is_pausing),
            Press(f"Only for the CPU ({download_size(CPU_TAG)})", lambda: builds.begin(CPU_TAG),
                  link=True, name="cpu_only", tip="The card's build can follow at any time",
                  shown=lambda: m.is_offer and len(builds.planned) > 1
                  and CPU_TAG in builds.planned),
            Press("Copy details", lambda: _copy(words.details_text(builds)), name="copy",
                  shown=lambda: m.is_failed),
            Press("Use a folder of files instead…", self._choose_folder, link=True, name="folder",
                  tip=_FOLDER_TIP, shown=lambda: m.is_at_rest
                  and (can_begin() or m.is_paused or m.is_failed)),
            Press("Download instead", builds.download_instead, link=True, name="download",
                  shown=lambda: not builds.is_at_work and builds.wheels is not None),
            Press("Give up…", self._ask_to_give_up, link=True, name="give_up",
                  shown=lambda: builds.can_give_up),
        )  # fmt: skip

    def _measure_label(self) -> str:
        device = self.model.device
        return "Measure this PC now" if device is None or device.is_cpu else "Measure my card now"

    def _build(self, family: str) -> Part:
        """Return the row of an installed build."""
        m, builds, title = self.model, self._builds, build_title(family)

        def is_usable() -> bool:
            record = m.records.get(family)
            return record is not None and builds.installed.is_loadable(record)

        def can_change() -> bool:
            return builds.can_change(family)

        return Stack(
            Words(title, "value"),
            Words(lambda: words.record_sentence(m.records[family], builds)
                  if family in m.records else "", "muted", name=f"build.{family}.state"),
            Flow(
                Press("Use", partial(builds.use, family), name=f"build.{family}.use",
                      tip=f"Use the {title}",
                      shown=lambda: family != builds.engine.in_use and is_usable(),
                      enabled=lambda: not builds.engine.taking_over and family != builds.removing),
                Press("Repair", partial(builds.repair, family), name=f"build.{family}.repair",
                      tip=f"Looks at every file of the {title}, and installs what is damaged",
                      enabled=can_change, shown=lambda: is_usable()
                      or (family in m.records and not m.records[family].is_ready)),
                Press("Remove…", partial(self._ask_to_remove, family), enabled=can_change,
                      name=f"build.{family}.remove", tip=f"Removes the {title}"),
            ),
            name=f"build.{family}", shown=lambda: family in m.records,
        )  # fmt: skip

    def update_parts(self) -> None:
        """Show the present state; the focus of a button that is gone goes to that in its place.

        Qt gives it to any other one.
        """
        main = [button for name in _MAIN if (button := self._button(name)) is not None]
        focused = self.window().focusWidget()
        if focused in main:
            self._next_focus = None
        had_focus = focused is not None and (focused in main or focused is self._next_focus)
        super().update_parts()
        if had_focus:
            place = next((one for one in main if one.isVisible() and one.isEnabled()), None)
            if place is not None:
                place.setFocus()
            self._next_focus = self.window().focusWidget() if place is None else None

    def _button(self, name: str) -> QPushButton | None:
        return self.findChild(QPushButton, f"setup.{name}")

    def _title(self) -> Notice:
        tone = Tone.FAILURE if self.model.is_failed else Tone.PLAIN
        return Notice(words.stage_sentence(self._builds), tone)

    def _offered(self) -> list[tuple[str, str]]:
        """Return the builds that this PC can use, the recommended one first."""
        recommended = self._builds.recommended
        families = dict.fromkeys((recommended.family, *recommended.offered))
        return [(f"{build_title(one)} ({download_size(one)})", one) for one in families]

    def _show_sign(self, sign: QLabel) -> None:
        device = self.model.device
        side = 3 * self.fontMetrics().height()
        picture = icon("cpu" if device is not None and device.is_cpu else "card", self.theme)
        sign.setPixmap(picture.pixmap(side, side))

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of files")
        if chosen:
            builds = self._builds
            builds.begin_from(Path(chosen), *(builds.next_builds or builds.planned))

    def _open_page(self) -> None:
        trouble = self._builds.trouble
        if trouble is not None and not QDesktopServices.openUrl(QUrl(trouble.link)):
            _copy(trouble.link)
            self.model.copied = trouble.link
            self.update_parts()

    def _ask_to_give_up(self) -> None:
        """Ask once: what was downloaded has to be downloaded again."""
        unfinished = self._builds.installed.unfinished_bytes
        frees = f"This frees {format_size(unfinished)}. " if unfinished else ""
        _ask(
            self, "setup.give_up.question", "Give up the installation?",
            f"{frees}To install PyTorch later, you begin the download again.",
            "Give up", self._builds.give_up,
        )  # fmt: skip

    def _ask_to_remove(self, family: str) -> None:
        """Ask once: the next use needs the whole download again."""
        record = self.model.records.get(family)
        if record is not None:
            _ask(
                self, "setup.remove", f"Remove the {build_title(family)}?",
                f"This frees {format_size(record.size_bytes)}. Your results stay. To use it again, "
                "you have to download it again.",
                "Remove", partial(self._builds.remove, family),
            )  # fmt: skip


def _copy(text: str) -> None:
    QGuiApplication.clipboard().setText(text)


def _ask(
    parent: QWidget, name: str, question: str, details: str, answer: str, do: Callable[[], object]
) -> None:
    """Ask in a dialog of the window, and do it if the answer is yes.

    Args:
        parent: the part of the window that asks.
        name: the dialog's object name; the button's is the same with ".sure".
        question: what is asked.
        details: what it means.
        answer: the text of the button that does it.
        do: does it.
    """
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setWindowTitle(question.rstrip("?"))
    box.setText(question)
    box.setInformativeText(details)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    sure = box.addButton(answer, QMessageBox.ButtonRole.AcceptRole)
    sure.setObjectName(f"{name}.sure")
    sure.clicked.connect(do)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.open()
