"""The window's menus: files, the look, PyTorch, and help."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QAction, QActionGroup, QDesktopServices, QKeySequence
from PySide6.QtWidgets import QMessageBox

from gpu_studio.core.packaged_parts import licenses_text, packaged_parts
from gpu_studio.model.pages import DIAGNOSTICS, QUICK_LOOK, SET_UP
from gpu_studio.model.settings import TEXT_SIZES, THEMES
from gpu_studio.ui.tabs import TABS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from PySide6.QtWidgets import QMainWindow, QMenu, QTabWidget, QWidget

    from gpu_studio.model.settings import Settings
    from gpu_studio.model.studio import Studio


def fill_menus(
    window: QMainWindow,
    studio: Studio,
    tabs: QTabWidget,
    open_file: Callable[[], None],
    present: Callable[[], None],
    code: QAction,
    log_path: Path | None,
) -> None:
    """Fill a window's menu bar.

    Args:
        window: the window of the menu bar.
        studio: has the settings and the engine.
        tabs: shows the tabs, in the order of their records.
        open_file: asks for a file and opens it.
        present: shows the page in front to an audience, or ends that.
        code: opens and closes the Code drawer.
        log_path: the log; None if there is none.
    """
    bar, keys = window.menuBar(), QKeySequence.StandardKey
    file = bar.addMenu("&File")
    file.addAction("&Open…", keys.Open, open_file).setObjectName("menu.open")
    file.addSeparator()
    _add_ending(file, studio.settings)
    file.addSeparator()
    file.addAction("&Quit", keys.Quit, window.close)
    view = bar.addMenu("&View")
    for index, tab in enumerate(TABS):
        view.addAction(tab.title, QKeySequence(tab.keys), partial(_show_tab, tabs, index))
    view.addSeparator()
    view.addAction(code)
    presenting = view.addAction("&Presentation", QKeySequence("F11"), present)
    window.addAction(presenting)  # its key ends the presentation, which hides the menu
    view.addSeparator()
    _add_text_sizes(view, window, studio.settings)
    view.addSeparator()
    _add_themes(view, studio.settings)
    pytorch = bar.addMenu("&PyTorch")
    pytorch.addAction("Start PyTorch &anew", studio.session.restart)
    if studio.builds is not None:
        set_up = pytorch.addAction("&Install or remove PyTorch…", partial(studio.go_to, SET_UP))
        set_up.setObjectName("menu.set_up")
    quick = pytorch.addAction("&Measure without PyTorch", partial(studio.go_to, QUICK_LOOK))
    quick.setObjectName("menu.quick")
    about = bar.addMenu("&Help")
    about.addAction("&Words and how a time is measured", partial(_show_words, window))
    about.addSeparator()
    log = about.addAction("Open the &log folder", partial(_open_folder, log_path))
    log.setEnabled(log_path is not None)
    diagnostics = about.addAction("Copy &diagnostics…", partial(studio.go_to, DIAGNOSTICS))
    diagnostics.setObjectName("menu.diagnostics")
    about.addAction("&About GPU Studio", partial(_show_about, window, log_path))


def _show_tab(tabs: QTabWidget, index: int) -> None:
    tabs.setCurrentIndex(index)
    tabs.tabBar().setFocus(Qt.FocusReason.ShortcutFocusReason)


def _add_text_sizes(menu: QMenu, window: QMainWindow, settings: Settings) -> None:
    keys = QKeySequence.StandardKey
    for text, key, step in (("&Larger text", keys.ZoomIn, 1), ("S&maller text", keys.ZoomOut, -1)):
        action = menu.addAction(text, partial(_change_text, settings, step))
        # A keyboard without a number pad gives Ctrl+= for Ctrl++.
        also = [QKeySequence("Ctrl+=")] if step > 0 else []
        action.setShortcuts([*QKeySequence.keyBindings(key), *also])
    usual = menu.addAction("&Usual text", partial(settings.change, text_size=100))
    usual.setShortcut("Ctrl+0")
    window.addActions(menu.actions()[-3:])


def _change_text(settings: Settings, step: int) -> None:
    """Take the next larger or smaller size of the text, if there is one."""
    now = settings.choices.text_size
    beyond = [size for size in TEXT_SIZES if (size - now) * step > 0]
    if beyond:
        settings.change(text_size=min(beyond) if step > 0 else max(beyond))


def _add_themes(menu: QMenu, settings: Settings) -> None:
    themes = QActionGroup(menu)
    for choice in THEMES:
        action = menu.addAction(f"{choice.capitalize()} colors")
        action.setCheckable(True)
        action.setChecked(choice == settings.choices.theme)
        action.triggered.connect(partial(settings.change, theme=choice))
        themes.addAction(action)


def _add_ending(menu: QMenu, settings: Settings) -> None:
    def allow(is_allowed: bool) -> None:
        settings.change(may_end_processes=is_allowed)

    ending = menu.addAction("Allow &ending processes on the Devices tab")
    ending.setObjectName("menu.may_end_processes")
    ending.setCheckable(True)
    ending.setChecked(settings.choices.may_end_processes)
    ending.toggled.connect(allow)


def _show_words(window: QWidget) -> None:
    from gpu_studio.ui.words_dialog import WordsDialog  # 5 ms

    dialog = WordsDialog(window)
    dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    dialog.open()


def _open_folder(log_path: Path | None) -> None:
    if log_path is not None:
        QDesktopServices.openUrl(QUrl.fromLocalFile(str(log_path.parent)))


def _show_about(window: QWidget, log_path: Path | None) -> None:
    box = QMessageBox(window)
    box.setWindowTitle("About GPU Studio")
    box.setTextFormat(Qt.TextFormat.PlainText)
    box.setText(
        "GPU Studio shows what your graphics card is, whether PyTorch can use it, how fast it is "
        "compared with your CPU, and where its memory goes."
    )
    box.setInformativeText(f"Log: {log_path or 'none, its folder is not writable'}")
    if licenses := licenses_text(packaged_parts()):
        box.setDetailedText(f"GPU Studio contains these parts:\n\n{licenses}")
    box.exec()
