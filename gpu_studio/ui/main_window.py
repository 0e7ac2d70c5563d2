"""The window: six tabs, the Code drawer over them, a banner and a status bar below."""

from __future__ import annotations

import base64
import binascii
from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import QByteArray, QEvent, Qt, Signal, Slot
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import (
    QApplication,
    QDialog,
    QMainWindow,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)

from gpu_studio.core.notice import Action
from gpu_studio.model import pages
from gpu_studio.model.pages import Destination
from gpu_studio.ui.banner import Banner
from gpu_studio.ui.code_drawer import CodeDrawer
from gpu_studio.ui.eliding import ElidedText
from gpu_studio.ui.icons import icon
from gpu_studio.ui.menus import fill_menus
from gpu_studio.ui.parts import MARGIN, SCROLL_BAR, resize_on_screen
from gpu_studio.ui.scroll_page import LazyPage, TabScroll, idle_work
from gpu_studio.ui.status import StatusLine
from gpu_studio.ui.tabs import TABS, TabContents, tab_of
from gpu_studio.ui.window_files import WindowFiles

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtGui import (
        QCloseEvent,
        QDragEnterEvent,
        QDropEvent,
        QHideEvent,
        QKeyEvent,
        QPaintEvent,
        QShowEvent,
    )

    from gpu_studio.core.messages.run_messages import OwnCode
    from gpu_studio.model.pages import PageId
    from gpu_studio.model.quick_look import QuickLook
    from gpu_studio.model.studio import Studio
    from gpu_studio.ui.setup.setup_line import SetupLine  # 13 ms
    from gpu_studio.ui.theme import Theme

_BAD_END = "GPU Studio did not close properly last time."
_NOTHING_LOST = "Your kept results are still there."
_SMALLEST = (840, 440)  # on a projector of 1280 × 720 at 150 %
_FIRST_SIZE = (1280, 800)


class MainWindow(QMainWindow):
    """Shows the studio, starts it after the first paint, and ends it with the window.

    Signals:
        painted(): for the first time; what the first paint does not need can be done now.
        completed(): all its pages are made.

    Args:
        studio: the shown state; the window owns it from now on.
        theme: the look; the window owns it as well.
        log_path: the log for the Help menu.
        tabs_after_paint: create only the first visible tab now, and the others one at a time after
            the first paint: the window appears sooner.
        bad_end: the end of the log if the last start ended badly; otherwise None.
    """

    painted = Signal()
    completed = Signal()

    def __init__(
        self,
        studio: Studio,
        theme: Theme,
        log_path: Path | None = None,
        *,
        tabs_after_paint: bool = False,
        bad_end: str | None = None,
    ) -> None:
        super().__init__()
        self._bad_end, self._log_path = bad_end, log_path
        self._studio, self._theme = studio, theme
        self._is_painted = self._has_started = self._is_closed = False
        self._tabs_after_paint = tabs_after_paint
        studio.setParent(self)
        theme.setParent(self)
        studio.board.changed.connect(self._show_cards)  # before any page hears of it
        self.setObjectName("window")
        self.setWindowTitle("GPU Studio")
        self.banner = Banner(theme)
        studio.headlines.headline_changed.connect(self._show_headline)
        studio.doctor.findings_changed.connect(self._show_headline)  # another card may be usable
        self.banner.action_requested.connect(studio.headlines.act)
        self.banner.other_action_requested.connect(studio.headlines.act_otherwise)
        self.banner.dismissed.connect(studio.headlines.dismiss)
        self.tabs = QTabWidget()
        self._pages = [LazyPage(tab.contents, studio, theme, parent=self) for tab in TABS]
        self._fill_tabs()
        self.setCentralWidget(self._page())
        self._code = CodeDrawer(studio.snippets, theme, self.tabs)
        self._code.setVisible(studio.settings.choices.code_drawer)
        self._code.opened_or_closed.connect(self._keep_code_drawer)
        self._code.own_code_entered.connect(self._time_own_code)
        # After the drawer: its button is before the pages in Tab order.
        self._pages[self._last_tab()].make()
        while not tabs_after_paint and (page := self._unmade()) is not None:
            page.make()
        self._status = StatusLine(studio)
        self.statusBar().addWidget(self._status)  # at the left on every tab
        effect = ElidedText("", "muted", name="status.effect")
        effect.setAlignment(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        effect.setContentsMargins(0, 0, MARGIN + SCROLL_BAR, 0)
        studio.runs.effect_changed.connect(effect.setText)
        self.statusBar().addPermanentWidget(effect, 1)
        self.statusBar().setSizeGripEnabled(False)
        self._files = files = WindowFiles(self, studio, self._front)
        files.destination_found.connect(self._go_to)
        files.delayed.connect(self._status.show_opening)
        self.setAcceptDrops(True)
        self._is_presented = False
        fill_menus(
            self, studio, self.tabs, files.ask, self.turn_presentation, self._code.action, log_path
        )  # fmt: skip
        studio.destination_wanted.connect(self._go_to)
        if bad_end is not None:
            studio.headlines.notify(
                _BAD_END, studio.settings.trouble or _NOTHING_LOST, Action.SHOW_LOG
            )
        self._show_headline()  # set before this window was connected
        self.setMinimumSize(*_SMALLEST)
        self._restore()
        self._setup_page: QWidget | None = None
        self._quick_page: QWidget | None = None
        self._quick_look: QuickLook
        self.tabs.currentChanged.connect(self._turn_to)
        self._turn_to()
        if studio.builds is not None and not studio.builds.has_engine:
            self.show_setup()  # before the first paint: the first screen is the final one

    def _show_cards(self) -> None:
        self._theme.show_cards(self._studio.board.colors)

    def note_system_end(self) -> None:
        """Note that the system ends the program: a check can continue at the next start."""
        self._studio.is_ended_by_system = True

    @Slot()
    def end_with_system(self) -> None:
        """Close because the system ends the program."""
        self.note_system_end()
        self.close()

    def show_problem(self, sentence: str) -> None:
        """Show a sentence about the program itself in the banner."""
        self._studio.headlines.notify(
            sentence, "The details are in the log. If it happens again, report it.", Action.SHOW_LOG
        )

    def show_diagnostics(self) -> None:
        """Show the diagnostics; after a bad end, with the log of the last start."""
        from gpu_studio.ui.diagnostics_dialog import DiagnosticsDialog  # 22 ms

        bad_end, self._bad_end = self._bad_end, None
        dialog = DiagnosticsDialog(self._studio, self._log_path, bad_end, self)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.open()

    def paintEvent(self, event: QPaintEvent) -> None:
        """Make what is missing, and start the engine and the sensors, after the first paint."""
        super().paintEvent(event)
        if not self._is_painted:
            self._is_painted = True
            idle_work().add(self, self.painted.emit, self._go_on)

    def showEvent(self, event: QShowEvent) -> None:
        """Poll the sensors while the window is visible."""
        super().showEvent(event)
        if self._is_painted:
            self._studio.sensors.set_watched(True)

    def hideEvent(self, event: QHideEvent) -> None:
        """Stop polling while hidden."""
        super().hideEvent(event)
        self._studio.sensors.set_watched(False)

    def changeEvent(self, event: QEvent) -> None:
        """Stop polling while minimized."""
        super().changeEvent(event)
        if event.type() is QEvent.Type.WindowStateChange and self._is_painted:
            self._studio.sensors.set_watched(not self.isMinimized())

    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """Accept files and addresses."""
        if event.mimeData().hasUrls():
            event.acceptProposedAction()

    def dropEvent(self, event: QDropEvent) -> None:
        """Open them."""
        event.acceptProposedAction()
        self._files.drop(event.mimeData())

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Let Esc leave the full screen, or else close the code."""
        if event.key() != Qt.Key.Key_Escape:
            super().keyPressEvent(event)
        elif self.tabs.isHidden():
            self._stand_in(None)
        elif self._is_presented:
            self.present(is_presented=False)
        elif not self._code.isHidden():
            self._code.hide()

    def turn_presentation(self) -> None:
        """Show the page in front to an audience, or end that."""
        self.present(is_presented=not self._is_presented)

    def present(self, *, is_presented: bool) -> None:
        """Fill the screen with the answer and the picture of the page in front, or end that.

        The status bar stays as the foot: it names the devices. A tab with a stage of its own opens
        that instead.
        """
        contents = self._contents()
        if is_presented and contents is not None and contents.open_stage():
            return
        self._is_presented = is_presented
        for part in (self.menuBar(), self.tabs.tabBar()):
            part.setVisible(not is_presented)
        self._code.handle.setVisible(not is_presented)
        self._theme.show_to_audience(is_shown=is_presented)
        self._show_presented()
        # The other states, such as maximized, stay for the way back.
        full, state = Qt.WindowState.WindowFullScreen, self.windowState()
        self.setWindowState(state | full if is_presented else state & ~full)

    def _contents(self) -> TabContents | None:
        """Return what the tab in front shows."""
        page = self._pages[self.tabs.currentIndex()].page
        return page if isinstance(page, TabContents) else None

    def _show_presented(self) -> None:
        for page in self._pages:
            if isinstance(page.page, TabContents):
                is_front = page.page is self._contents()
                page.page.present(is_presented=self._is_presented and is_front)

    def focusNextPrevChild(self, is_next: bool) -> bool:
        """Let Tab go through the page first, also through what was made later."""
        self._order_keys()
        return super().focusNextPrevChild(is_next)

    def _order_keys(self) -> None:
        """Let Tab reach what is below the pages and beside them after all pages."""
        none, direct = Qt.FocusPolicy.NoFocus, Qt.FindChildOption.FindDirectChildrenOnly
        for place in (self.banner, self._code):
            for widget in place.findChildren(QWidget, options=direct):
                last = self.previousInFocusChain()
                while last is not None and last.focusPolicy() is none:
                    last = last.previousInFocusChain()
                # Qt puts nothing beside a widget that does not accept focus.
                if last is not None and last is not widget and widget.focusPolicy() is not none:
                    self.setTabOrder(last, widget)

    def closeEvent(self, event: QCloseEvent) -> None:
        """End all work and processes: nothing outlives the window."""
        self._is_closed = True
        if self._is_presented:
            self.present(is_presented=False)  # the next start has the usual window
        # A signal or a logoff also closes the window behind a dialog, which would stay open.
        for dialog in self.findChildren(QDialog):
            dialog.done(QDialog.DialogCode.Rejected)  # also one that stops its work first
        geometry = base64.b64encode(self.saveGeometry().data()).decode("ascii")
        self._studio.settings.change(window_geometry=geometry, tab=self._front().tab)
        self._studio.close()
        super().closeEvent(event)

    def _fill_tabs(self) -> None:
        self.tabs.setObjectName("tabs")
        self.tabs.setDocumentMode(True)
        self.tabs.tabBar().setDrawBase(False)
        self.tabs.setAccessibleName("Tabs")
        self.tabs.tabBar().setAccessibleName("Tabs")
        for tab, page in zip(TABS, self._pages, strict=True):
            place = TabScroll()
            page.created.connect(place.show_page)
            page.created.connect(self._on_created)
            index = self.tabs.addTab(
                place, icon(tab.icon, self._theme, "muted", "accent"), tab.title
            )
            keys = QKeySequence(tab.keys).toString(QKeySequence.SequenceFormat.NativeText)
            self.tabs.setTabToolTip(index, keys)

    def _on_created(self, page: QWidget) -> None:
        if isinstance(page, TabContents):
            page.presentation_wanted.connect(self.turn_presentation)

    def _front(self) -> PageId:
        return TABS[self.tabs.currentIndex()].page

    def _page(self) -> QWidget:
        """Return the tabs with the banner below: above them, it would push them away."""
        page = QWidget()
        column = QVBoxLayout(page)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.tabs, 1)
        banner_place = QWidget()
        banner_column = QVBoxLayout(banner_place)
        banner_column.setContentsMargins(MARGIN, 0, MARGIN + SCROLL_BAR, 0)  # under the cards
        banner_column.addWidget(self.banner)
        column.addWidget(banner_place)
        self._line: SetupLine | None = None
        if self._studio.builds is not None:
            from gpu_studio.ui.setup.setup_line import SetupLine

            self._line = SetupLine(self._studio.builds, self.show_setup)
            banner_column.addWidget(self._line)
        return page

    def show_setup(self) -> None:
        """Show the page that installs the engine in the place of the tabs."""
        if self._studio.builds is None:
            return
        if self._setup_page is None:
            from gpu_studio.ui.setup.setup_page import SetupPage  # 15 ms

            page = SetupPage(self._studio, self._theme, partial(self._stand_in, None))
            self._setup_page = self._added(page)
        self._stand_in(self._setup_page)

    def show_quick_look(self) -> None:
        """Measure without PyTorch, on a page in the place of the tabs."""
        if self._quick_page is None:
            from gpu_studio.model.quick_look import QuickLook
            from gpu_studio.ui.setup.quick_page import QuickPage

            model = QuickLook(self._studio.adapters, self._studio)
            page = QuickPage(
                model, self._studio.builds, self._theme, self._close_quick_look, self.show_setup,
                lambda page, device: self._studio.go_to(page, device=device, starts=True),
            )  # fmt: skip
            self._quick_page = self._added(page)
            self._quick_look = model
        self._stand_in(self._quick_page)
        self._quick_look.measure()

    def _close_quick_look(self) -> None:
        """Lead back to where the measurement was asked for."""
        self._quick_look.stop()
        builds = self._studio.builds
        if builds is not None and not builds.has_engine:
            self.show_setup()
        else:
            self._stand_in(None)

    def _added(self, page: QWidget) -> QWidget:
        """Return a page that can stand in the place of the tabs, with its scroll bar."""
        scrolling = TabScroll(page)
        place = self.tabs.parentWidget()
        column = place.layout() if place is not None else None
        assert isinstance(column, QVBoxLayout)
        column.insertWidget(0, scrolling, 1)
        return scrolling

    def _stand_in(self, page: QWidget | None) -> None:
        """Show a page in the place of the tabs; None shows the tabs."""
        for one in (self._setup_page, self._quick_page):
            if one is not None:
                one.setVisible(one is page)
        self.tabs.setVisible(page is None)
        if self._line is not None:
            self._line.set_wanted(page is None)
        (page or self.tabs).setFocus()

    def _turn_to(self) -> None:
        """Follow the tab in front with the code and the headline.

        The sensors are polled behind every tab: their curves would have a gap otherwise.
        """
        self._studio.snippets.turn_to(self._front())
        if self._is_presented:
            self._show_presented()
        self._show_headline()

    def _go_to(self, destination: Destination) -> None:
        """Bring a page to the front, and open or start there what was asked for."""
        beside = {
            pages.SET_UP: self.show_setup,
            pages.QUICK_LOOK: self.show_quick_look,
            pages.DIAGNOSTICS: self.show_diagnostics,
        }
        if destination.page in beside:
            beside[destination.page]()
            return
        if self.tabs.isHidden():
            self._stand_in(None)
        index = TABS.index(tab_of(destination.page))
        self.tabs.setCurrentIndex(index)
        self._pages[index].make().go_to(destination)

    def _show_headline(self) -> None:
        """Show what stops the tab in front, but not what that tab says itself."""
        headline = self._studio.headlines.headline
        is_shown_below = headline is not None and (
            (self._studio.headlines.is_about_pc and self._front() == pages.DEVICES)
            or (headline.action is Action.SHOW_CHECK and self._front() == pages.CHECK)
        )
        if headline is None or is_shown_below or not self._studio.headlines.blocks_work:
            self.banner.hide()
            return
        self.banner.show_headline(headline)

    def _go_on(self) -> None:
        """Make one more tab, or start, or prepare a plot or a page: one of them in each turn."""
        if self._is_closed:
            return
        if (tab := self._unmade()) is not None:
            tab.make_next()
        elif not self._has_started:
            self._has_started = True
            self._order_keys()
            self._studio.start()
        elif self._tabs_after_paint and (waiting := _plot_imports()):
            waiting[0]()
        elif self._tabs_after_paint and (page := self._unmade_page()) is not None:
            page.make_next()
        else:
            self.completed.emit()
            return
        idle_work().add(self, self._go_on)

    def _unmade(self) -> LazyPage | None:
        """Return the first tab that is not yet made."""
        return next((page for page in self._pages if page.page is None), None)

    def _unmade_page(self) -> LazyPage | None:
        """Return the first page behind the first one of a tab that is not yet made."""
        tabs = [tab.page for tab in self._pages if isinstance(tab.page, TabContents)]
        return next((page for tab in tabs for page in tab.pages_later if page.page is None), None)

    def _restore(self) -> None:
        resize_on_screen(self, _FIRST_SIZE)
        self.tabs.setCurrentIndex(self._last_tab())
        last = self._studio.settings.choices.window_geometry
        try:
            geometry = base64.b64decode(last, validate=True)
        except (binascii.Error, ValueError):
            return
        if geometry:
            self.restoreGeometry(QByteArray(geometry))

    def _last_tab(self) -> int:
        """Return the place of the tab that was in front last time, or the first place."""
        last = self._studio.settings.choices.tab
        return next((place for place, tab in enumerate(TABS) if tab.page.tab == last), 0)

    def _time_own_code(self, code: OwnCode) -> None:
        self._go_to(Destination(page=pages.RUN, code=code))

    def _keep_code_drawer(self, is_open: bool) -> None:
        self._studio.settings.change(code_drawer=is_open)


def show_unexpected(sentence: str) -> None:
    """Report an unexpected event in the banner of the open window."""
    for widget in QApplication.topLevelWidgets():
        if isinstance(widget, MainWindow):
            widget.show_problem(sentence)


def _plot_imports() -> list[Callable[[], object]]:
    from gpu_studio.ui.plots.live_plot import imports  # with the tabs that have plots

    return imports()
