"""The page that installs the engine: one progress bar, and the engines that are there."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtWidgets import (
    QFileDialog,
    QMessageBox,
    QProgressBar,
    QPushButton,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.record import FAMILIES
from gpu_studio.core.builds.trouble import format_size
from gpu_studio.core.builds.words import build_title, bytes_sentence, window_action
from gpu_studio.core.notice import Tone
from gpu_studio.core.wheel_table import CPU_TAG, download_size
from gpu_studio.model import setup_words as words
from gpu_studio.ui.eliding import ComboBox, show_items
from gpu_studio.ui.flow_row import FlowRow
from gpu_studio.ui.parts import GAP, MARGIN, Card, Text, button, section, set_property

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.model.builds import Builds

_STEPS = 1000
_INSTALL, _USE = "Install this one", "Use this one"
_FOLDER = "Use a folder of wheels instead…"
_FOLDER_TIP = "For a PC without internet: download the wheels on another PC and choose their folder"


class _Row(NamedTuple):
    box: QWidget
    state: Text
    use: QPushButton
    repair: QPushButton
    remove: QPushButton


class BuildList(Card):
    """One row for each installed build, and the space that they take.

    Args:
        builds: the builds.
    """

    def __init__(self, builds: Builds) -> None:
        super().__init__(name="setup.builds")
        self._builds = builds
        self._rows: dict[str, _Row] = {}
        self.column.setSpacing(GAP)
        self.column.addWidget(section("Installed engines"))
        self._disk = Text("", "muted", name="setup.disk", wraps=True)
        self.column.addWidget(self._disk)
        builds.changed.connect(self.update_all)
        self.update_all()

    def update_all(self) -> None:
        """Show the present builds."""
        builds = self._builds
        records = {one.family: one for one in builds.installed.records}
        for family in {*records, *builds.recommended.offered} - self._rows.keys():
            self._add_row(family)
        for family, row in self._rows.items():
            record = records.get(family)
            row.box.setVisible(record is not None)
            if record is None:
                continue
            row.state.setText(words.record_sentence(record, builds))
            is_usable = builds.installed.is_loadable(record)
            row.use.setVisible(family != builds.engine.in_use and is_usable)
            row.repair.setVisible(is_usable or not record.is_ready)
            row.use.setEnabled(not builds.engine.taking_over and family != builds.removing)
            for pressed in (row.repair, row.remove):
                pressed.setEnabled(builds.can_change(family))
        # The present download grows: its size is not known.
        unfinished = 0 if builds.is_at_work else builds.installed.unfinished_bytes
        self._disk.setText(words.disk_sentence(builds, unfinished))

    def _add_row(self, family: str) -> None:
        """Add the row of a build, in the order of all builds."""
        self._rows[family] = row = self._new_row(family)
        shown = [one for one in FAMILIES if one in self._rows]
        self.column.insertWidget(1 + shown.index(family), row.box)  # below the title

    def _new_row(self, family: str) -> _Row:
        name = f"setup.build.{family}"
        box = QWidget()
        box.setObjectName(name)
        title = Text(build_title(family), "value")
        state = Text("", "muted", name=f"{name}.state", wraps=True)
        use = button("Use", partial(self._builds.use, family), name=f"{name}.use")
        repair = button(
            "Repair", partial(self._builds.repair, family), name=f"{name}.repair",
            tip="Looks at every file, and installs again what is damaged",
        )  # fmt: skip
        remove = button("Remove…", partial(self._remove, family), name=f"{name}.remove")
        for pressed in (use, repair, remove):
            pressed.setAccessibleName(f"{pressed.text()} {build_title(family)}")
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(title)
        column.addWidget(state)
        column.addWidget(FlowRow(use, repair, remove, spacing=GAP))
        return _Row(box, state, use, repair, remove)

    def _remove(self, family: str) -> None:
        """Ask once: the next use needs the whole download again."""
        record = next((one for one in self._builds.installed.records if one.family == family), None)
        if record is None:
            return
        _ask(
            self,
            "setup.remove",
            "Remove engine",
            f"Remove the {build_title(family)}?",
            f"This frees {format_size(record.size_bytes)}. Your results stay. To use it again, you "
            "have to download it again.",
            "Remove",
            partial(self._builds.remove, family),
        )


_START, _LOOK_AROUND = "Start using GPU Studio", "Look around without the engine"


class SetupPage(QWidget):
    """Stands in the place of the tabs.

    Args:
        builds: the builds.
        close: shows the tabs again.
    """

    def __init__(self, builds: Builds, close: Callable[[], object]) -> None:
        super().__init__()
        self.setObjectName("setup.page")
        self.setAccessibleName("Set up PyTorch")
        self._builds = builds
        self._hero = SetupHero(builds)
        self._list = BuildList(builds)
        self._close = button("", close, name="setup.close")
        column = QVBoxLayout(self)
        column.setContentsMargins(MARGIN, GAP, MARGIN, MARGIN)
        column.setSpacing(GAP)
        column.addWidget(self._hero)
        column.addWidget(self._list)
        column.addStretch(1)
        # On top: below, it moved with every stage of the installation. Tab still comes to it last.
        gap = QWidget()
        gap.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        column.insertWidget(0, FlowRow(gap, self._close, fills=gap, spacing=GAP))
        widths = []
        for label in (_START, _LOOK_AROUND):
            self._close.setText(label)
            widths.append(self._close.sizeHint().width())
        self._close.setMinimumWidth(max(widths))
        builds.changed.connect(self._update)
        self._update()

    def _update(self) -> None:
        self._list.setVisible(bool(self._builds.installed.records))
        has_engine = self._builds.has_engine
        text = _START if has_engine else _LOOK_AROUND
        self._close.setText(text)
        self._close.setAccessibleName(text)
        # While another engine is offered, paused or failed, its own button is the next step.
        goes_well = self._builds.is_at_work or self._builds.progress.stage is InstallStage.READY
        set_property(self._close, "primary", has_engine and goes_well)


class SetupHero(Card):
    """Shows the installation in work, or offers the first one.

    Args:
        builds: the builds.
    """

    def __init__(self, builds: Builds) -> None:
        super().__init__(name="setup.hero")
        self._builds = builds
        self._next_focus: QWidget | None = None
        self._title = Text("", "headline", name="setup.title", wraps=True)
        self._figure = Text("", "hero", name="setup.figure")
        self._bar = QProgressBar()
        self._bar.setObjectName("setup.progress")
        self._bar.setAccessibleName("Progress of the installation")
        self._bar.setTextVisible(False)
        self._bar.setRange(0, _STEPS)
        self._bytes = Text("", "lead", name="setup.bytes", wraps=True)
        self._offer = Text("", "lead", name="setup.offer", wraps=True)
        self._action = Text("", name="setup.action", wraps=True)
        self._next = Text("", "muted", name="setup.next", wraps=True)
        self._why_text = Text("", "muted", name="setup.why_text", wraps=True)
        self._make_buttons()
        self._choice = FlowRow(self._choose, self._install_chosen, spacing=GAP)
        self.column.setContentsMargins(2 * MARGIN, 2 * MARGIN, 2 * MARGIN, 2 * MARGIN)
        self.column.setSpacing(GAP)
        for part in (
            self._title, self._figure, self._bar, self._bytes, self._offer, self._action,
            self._presses, self._next, self._why_text, self._choice,
        ):  # fmt: skip
            self.column.addWidget(part)
        builds.changed.connect(self.update_all)
        self.update_all()

    def update_all(self) -> None:
        """Show the present state."""
        builds, progress = self._builds, self._builds.progress
        stage = progress.stage
        is_busy = builds.is_at_work or builds.is_discarding
        is_offer = stage is InstallStage.WAITING and not is_busy
        is_failed = stage is InstallStage.FAILED
        self._title.setText(words.stage_sentence(builds))
        self._title.set_tone(Tone.FAILURE if is_failed else Tone.PLAIN)
        self._figure.setText(words.figure(builds))
        self._figure.setVisible(bool(self._figure.text()))
        self._bar.setVisible(words.has_share(progress))
        self._bar.setValue(round(_STEPS * progress.fraction))
        sentence = bytes_sentence(progress) or words.kept_sentence(builds)
        self._bar.setAccessibleDescription(f"{self._title.text()} {sentence}")
        self._show_text(self._bytes, "" if is_offer or stage is InstallStage.READY else sentence)
        is_offered = is_offer or words.is_update_offered(builds)
        self._show_text(self._offer, words.offer_sentence(builds) if is_offered else "")
        self._show_text(self._action, self._what_to_do())
        self._show_text(self._next, words.next_sentence(builds))
        self._show_buttons(is_offer=is_offer, is_failed=is_failed)
        self._show_why()

    def _what_to_do(self) -> str:
        builds = self._builds
        if builds.trouble is not None:
            return window_action(builds.trouble)
        if builds.progress.stage is InstallStage.READY:
            return builds.progress.result
        if builds.wheels is not None:
            return f"From the folder {builds.wheels}"
        return ""

    def _show_text(self, text: Text, sentence: str) -> None:
        text.setText(sentence)
        text.setVisible(bool(sentence))

    def _make_buttons(self) -> None:
        self._begin = button("", self._install_planned, name="setup.begin", primary=True)
        self._cpu_only = button(
            "CPU engine only", self._install_cpu, name="setup.cpu_only",
            tip="The graphics card's engine can follow at any time",
        )  # fmt: skip
        self._not_now = button(
            "Not now", self._builds.decline_updates, name="setup.not_now",
            tip="The update stays on this page, and no line on the other pages offers it",
        )  # fmt: skip
        self._pause = button("Pause", self._builds.pause, name="setup.pause")
        self._go_on = button("Continue", self._builds.go_on, name="setup.go_on", primary=True)
        self._again = button("Try again", self._builds.go_on, name="setup.again", primary=True)
        self._open = button("Open the download page", self._open_page, name="setup.open")
        self._give_up = button("Give up…", self._ask_to_give_up, name="setup.give_up")
        self._copy = button("Copy details", self._copy_details, name="setup.copy")
        self._folder = button(_FOLDER, self._choose_folder, name="setup.folder", tip=_FOLDER_TIP)
        self._download = button(
            "Download instead", self._builds.download_instead, name="setup.download"
        )
        self._why = button("Why this one?", self._toggle_why, name="setup.why")
        self._why.setCheckable(True)
        self._presses = FlowRow(
            self._begin, self._not_now, self._go_on, self._again, self._open, self._pause,
            self._cpu_only, self._copy, self._folder, self._download, self._give_up, self._why,
            spacing=GAP,
        )  # fmt: skip
        self._choose = ComboBox()
        self._choose.setObjectName("setup.choose")
        self._choose.setAccessibleName("Engine to install")
        self._fill_choice()
        self._choose.currentIndexChanged.connect(self._show_choice)
        self._install_chosen = button(_INSTALL, self._install_choice, name="setup.install_chosen")

    def _show_buttons(self, *, is_offer: bool, is_failed: bool) -> None:
        builds = self._builds
        label, is_update = words.begin_label(builds), words.is_update_offered(builds)
        is_paused = builds.progress.stage is InstallStage.PAUSED
        is_rest = not builds.is_at_work
        is_free = is_rest and not builds.is_discarding
        is_done = builds.progress.stage is InstallStage.READY and is_rest
        self._begin.setText(label)
        self._begin.setAccessibleName(label)
        shown = {
            self._begin: (is_offer or is_done) and bool(label),
            self._cpu_only: is_offer and len(builds.planned) > 1 and CPU_TAG in builds.planned,
            self._not_now: is_update and builds.has_engine and not builds.has_declined,
            self._go_on: is_paused and is_rest,
            self._again: is_failed and is_rest,
            self._copy: is_failed,
            self._open: builds.trouble is not None and bool(builds.trouble.link),
            self._give_up: builds.can_give_up,
            self._pause: builds.is_at_work,
            self._folder: is_free and (bool(label) or is_paused or is_failed),
            self._download: is_rest and builds.wheels is not None,
        }
        main = (self._begin, self._go_on, self._again, self._pause)
        focused = self.window().focusWidget()
        if focused in main:
            self._next_focus = None
        had_focus = focused is not None and (focused in main or focused is self._next_focus)
        for pressed, is_shown in shown.items():
            pressed.setVisible(is_shown)
        self._pause.setEnabled(not builds.is_pausing)
        if had_focus:
            self._keep_focus(main)
        self._show_choice()

    def _keep_focus(self, main: tuple[QPushButton, ...]) -> None:
        """Give the focus of a button that is gone to the one in its place, as soon as it is there.

        Qt gives it to any other one.
        """
        place = next((one for one in main if one.isVisibleTo(self) and one.isEnabled()), None)
        if place is not None:
            place.setFocus()
        self._next_focus = self.window().focusWidget() if place is None else None

    def _fill_choice(self) -> None:
        """List the builds that this PC can use; another card changes them."""
        items = [
            (f"{build_title(one)} ({download_size(one)})", one)
            for one in self._builds.recommended.offered
        ]
        show_items(self._choose, items)

    def _show_choice(self) -> None:
        """Say what the button beside the list does: an installed engine is not downloaded again."""
        self._fill_choice()
        builds, family = self._builds, self._choose.currentData()
        is_there = builds.installed.has(family)
        self._install_chosen.setText(_USE if is_there else _INSTALL)
        self._install_chosen.setAccessibleName(self._install_chosen.text())
        is_used = is_there and family == builds.engine.in_use
        self._install_chosen.setEnabled(not builds.is_at_work and not is_used)

    def _toggle_why(self) -> None:
        if self._why.isChecked():
            self._choose.setCurrentIndex(self._choose.findData(self._builds.recommended.family))
        self._show_why()

    def _show_why(self) -> None:
        is_open = self._why.isChecked()
        self._why_text.setText(self._builds.recommended.why)
        self._why_text.setVisible(is_open)
        self._choice.setVisible(is_open)

    def _install_planned(self) -> None:
        self._builds.begin(*self._builds.planned)

    def _install_cpu(self) -> None:
        self._builds.begin(CPU_TAG)

    def _install_choice(self) -> None:
        family = self._choose.currentData()
        if self._builds.installed.has(family):
            self._builds.use(family)
        else:
            self._builds.begin(family)

    def _choose_folder(self) -> None:
        chosen = QFileDialog.getExistingDirectory(self, "Folder of wheels")
        if not chosen:
            return
        waiting = self._builds.next_builds
        self._builds.begin_from(Path(chosen), *(waiting or self._builds.planned))

    def _open_page(self) -> None:
        trouble = self._builds.trouble
        if trouble is not None and not QDesktopServices.openUrl(QUrl(trouble.link)):
            QGuiApplication.clipboard().setText(trouble.link)
            self._show_text(
                self._action, f"No browser opened. The address is copied: {trouble.link}"
            )

    def _ask_to_give_up(self) -> None:
        """Ask once: what was downloaded has to be downloaded again."""
        unfinished = self._builds.installed.unfinished_bytes
        frees = f"This frees {format_size(unfinished)}. " if unfinished else ""
        _ask(
            self,
            "setup.give_up.question",
            "Give up the installation",
            "Give up the installation?",
            f"{frees}To install the engine later, you begin the download again.",
            "Give up",
            self._builds.give_up,
        )

    def _copy_details(self) -> None:
        QGuiApplication.clipboard().setText(words.details_text(self._builds))


def _ask(
    parent: QWidget, name: str, title: str, question: str, details: str, answer: str,
    do: Callable[[], object],
) -> None:  # fmt: skip
    """Ask in a dialog of the window, and do it if the answer is yes.

    Args:
        parent: the part of the window that asks.
        name: the dialog's object name; the button's is the same with ".sure".
        title: the dialog's title.
        question: what is asked.
        details: what it means.
        answer: the text of the button that does it.
        do: does it.
    """
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setWindowTitle(title)
    box.setText(question)
    box.setInformativeText(details)
    box.setStandardButtons(QMessageBox.StandardButton.Cancel)
    sure = box.addButton(answer, QMessageBox.ButtonRole.AcceptRole)
    sure.setObjectName(f"{name}.sure")
    sure.clicked.connect(do)
    box.setDefaultButton(QMessageBox.StandardButton.Cancel)
    box.open()
