"""The look of the program: the palette, the one style sheet, and the plots' options.

Widgets set no colors or styles; they name a role. On white, the two device colors are too pale for
lines and text (2.2 : 1), so the light theme draws those in a darker ink of the same hue (over
4 : 1) and keeps the pure color for areas.
"""

from __future__ import annotations

import logging
import re
from types import MappingProxyType
from typing import TYPE_CHECKING

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from gpu_studio.core.device_name import DeviceName, is_cpu
from gpu_studio.core.devices.devices import COLOR_COUNT
from gpu_studio.core.resources import MissingResourceError, resource_path

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from gpu_studio.core.benchmark.run import Run
    from gpu_studio.model.settings import Settings

_log = logging.getLogger(__name__)

# The first one on this PC: each system's own, then those of Linux desktops.
_FAMILIES = ("Segoe UI Variable Text", "Segoe UI", "Inter", "Cantarell", "Noto Sans", "Ubuntu")
_POINT_SIZE = 9.5
_AUDIENCE = 2.2  # times as large: 28 pixels on a projector of 96 dots per inch
# Desktops use 9 to 11 points; a user with a larger font needs it.
_USUAL_POINTS = 11.0

_CLASSES_WITH_FONTS = ("QMenu", "QMenuBar", "QAbstractItemView", "QTipLabel", "QMessageBox")
_EM = re.compile(r"@([\d.]+)em@")  # a size in the style sheet, as a multiple of the font's size

# role: (light, dark). Device and memory colors: Okabe and Ito's color-blind safe set.
COLOURS = {
    "window": ("#F3F5F7", "#13171C"),
    "card": ("#FFFFFF", "#1D2229"),
    "field": ("#FFFFFF", "#171B21"),
    "border": ("#D5DBE1", "#313943"),
    "grid": ("#E7EBEF", "#2A313A"),
    "hover": ("#EAEFF4", "#28303A"),
    "text": ("#1A2027", "#E9EDF1"),
    "muted": ("#56626F", "#9DA9B5"),
    "disabled": ("#9AA4AE", "#5F6A75"),
    "accent": ("#0072B2", "#56B4E9"),
    "on_accent": ("#FFFFFF", "#0B1116"),
    "accent_hover": ("#005F96", "#7CC5EF"),
    "selection": ("#D7E9F5", "#22384A"),
    "amber": ("#9A6200", "#E69F00"),
    "cpu": ("#E69F00", "#E69F00"),
    "cpu_ink": ("#A36B00", "#E69F00"),
    "gpu0": ("#56B4E9", "#56B4E9"),
    "gpu0_ink": ("#0072B2", "#56B4E9"),
    "gpu1": ("#CC79A7", "#CC79A7"),
    "gpu1_ink": ("#A9487F", "#CC79A7"),
    "gpu2": ("#F0E442", "#F0E442"),
    "gpu2_ink": ("#7D7400", "#F0E442"),
    "allocated": ("#009E73", "#009E73"),
    "allocated_ink": ("#007A59", "#19B98C"),
    "failure": ("#D55E00", "#D55E00"),
    "failure_ink": ("#B64F00", "#F0812F"),
    "good": ("#007A59", "#19B98C"),
    "other": ("#8C96A3", "#7C8794"),
    "on_device": ("#10161C", "#10161C"),
    "interval": ("#10161C", "#FFFFFF"),
    "around_interval": ("#FFFFFF", "#10161C"),
    "compared": ("#6F5BB5", "#8F7BD6"),
    "context": ("#6B7686", "#A3AFBD"),
    "track": ("#EDF0F3", "#2A313A"),
    "good_soft": ("#E2F3EC", "#16352D"),
    "amber_soft": ("#FCF1DC", "#3A2E14"),
    "failure_soft": ("#FDEEE6", "#43251A"),
}


HERO_SIZES = {
    "hero": (3.7, 700),
    "hero_words": (2.1, 600),
    "headline": (1.34, 600),
    "title": (1.18, 600),
}
"""The size in em and the weight of the largest roles, so that a widget can choose what fits."""


def numbered_role(address: str) -> str:
    """Return the color role of a device of which only its name in its engine is known."""
    if is_cpu(address):
        return "cpu"
    try:
        number = DeviceName.parse(address).index
    except ValueError:  # a card's permanent name
        return "other"
    return _card_role(number or 0)


def _card_role(color: int) -> str:
    return f"gpu{min(color, COLOR_COUNT - 1)}"


def side_role(role: str, index: int, roles: Sequence[str]) -> str:
    """Return the color role of a contestant; two of the same device must not look alike."""
    return "other" if role in roles[:index] else role


def application_font(system: QFont, factor: float = 1.0) -> QFont:
    """Return the font of the window.

    Args:
        system: the desktop's font. Its size is used if it is larger than usual.
        factor: how much larger the text is than usual.
    """
    font = QFont(system)
    font.setFamilies([*_FAMILIES, system.family()])
    is_large = system.pointSizeF() > _USUAL_POINTS
    font.setPointSizeF(factor * (system.pointSizeF() if is_large else _POINT_SIZE))
    return font


def _application() -> QApplication:
    application = QApplication.instance()
    assert isinstance(application, QApplication)
    return application


def _keep_to_one_font(application: QApplication) -> None:
    """Take away the fonts that the desktop has for menus, tables and tips.

    Windows and some Linux desktops have such fonts, and Qt brings them back with each style sheet.
    """
    font = application.font()
    # PySide takes a class's name as str, and its stubs say bytes.
    of_classes = [application.font(name) for name in _CLASSES_WITH_FONTS]  # type: ignore[call-overload]
    if any(one != font for one in of_classes):
        application.setFont(font)  # without a class, so the classes lose theirs


def styled_application(arguments: Sequence[str]) -> QApplication:
    """Return the application with the style that the style sheet is for, on every system.

    It is an argument: `QApplication.setStyle` returns the style, for which PySide builds QStyle
    with all its enums (5 ms), and comes after the system's own style was loaded.

    Args:
        arguments: the program's name and its arguments.
    """
    return QApplication([*arguments, "-style=fusion"])


class Theme(QObject):
    """The current look.

    Signals:
        changed(): the colors or the size of the text changed; custom-painted widgets repaint.

    Attributes:
        is_dark: whether the dark colors are in use.
        factor: how much larger the text is than usual.
    """

    changed = Signal()

    def __init__(self, settings: Settings, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._settings = settings
        self._cards: Mapping[str, int] = MappingProxyType({})
        self.is_dark = False
        self.factor = 1.0
        self._is_for_audience = False
        settings.choices_changed.connect(self._update)
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._update)

    def colour(self, role: str) -> str:
        """Return the ``#RRGGBB`` of a role."""
        return COLOURS[role][self.is_dark]

    def show_cards(self, colors: Mapping[str, int]) -> None:
        """Give each card its own color.

        Args:
            colors: the number of each card's color, by its permanent name and by its number.
        """
        self._cards = colors

    def device_role(self, device: str) -> str:
        """Return the color role of a device: ``cpu``, ``gpu0``, ``gpu1``, ``gpu2``.

        Args:
            device: its permanent name, ``cpu``, or its number in this engine: ``cuda:0``.
        """
        color = self._cards.get(device)
        return numbered_role(device) if color is None else _card_role(color)

    def run_role(self, run: Run) -> str:
        """Return the color role of a run's device: that of its card, also if that is out.

        A recording names cards of another PC by their numbers there.
        """
        device = run.request.device
        if is_cpu(device) or not run.card or not self._cards:
            return self.device_role(device)
        color = self._cards.get(run.card)
        return "other" if color is None else _card_role(color)

    def apply(self) -> None:
        """Put font, palette and style sheet on the application."""
        application = _application()
        self.is_dark, self.factor = self._wants_dark(), self._wanted_factor()
        system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont)
        application.setFont(application_font(system, self.factor))
        application.setPalette(self._palette())
        application.setStyleSheet(self._style_sheet(application.font().pointSizeF()))
        _keep_to_one_font(application)

    def show_to_audience(self, *, is_shown: bool) -> None:
        """Make all text as large as people at the back of a room need it, or as it was."""
        self._is_for_audience = is_shown
        self._update()

    def _update(self) -> None:
        """Change the look.

        The old sheet goes first: if one replaces another, Qt lays it over each widget once for each
        of its parents, which takes four times as long.
        """
        if (self._wants_dark(), self._wanted_factor()) != (self.is_dark, self.factor):
            _application().setStyleSheet("")
            self.apply()
            self.changed.emit()

    def _wanted_factor(self) -> float:
        return _AUDIENCE if self._is_for_audience else self._settings.choices.text_size / 100

    def _wants_dark(self) -> bool:
        choice = self._settings.choices.theme
        if choice != "system":
            return choice == "dark"
        return QGuiApplication.styleHints().colorScheme() is Qt.ColorScheme.Dark

    def _palette(self) -> QPalette:
        palette = QPalette()
        roles = QPalette.ColorRole
        for role, name in {
            roles.Window: "window", roles.WindowText: "text", roles.Base: "field",
            roles.AlternateBase: "card", roles.Text: "text", roles.Button: "card",
            roles.ButtonText: "text", roles.BrightText: "failure", roles.ToolTipBase: "card",
            roles.ToolTipText: "text", roles.Highlight: "accent",
            roles.HighlightedText: "on_accent", roles.PlaceholderText: "muted",
            roles.Link: "accent", roles.Mid: "border", roles.Midlight: "hover",
            roles.Light: "card", roles.Dark: "border", roles.Shadow: "border",
        }.items():  # fmt: skip
            palette.setColor(role, QColor(self.colour(name)))
        for role in (roles.WindowText, roles.Text, roles.ButtonText):
            palette.setColor(QPalette.ColorGroup.Disabled, role, QColor(self.colour("disabled")))
        return palette

    def _style_sheet(self, points: float) -> str:
        """Return the style sheet with the current colors and sizes that follow the font."""
        sheet = _STYLE_SHEET.replace("@hero_sizes@", _hero_rules())
        sheet = _EM.sub(lambda found: f"{float(found[1]) * points:.2f}pt", sheet)
        for role in sorted(COLOURS, key=len, reverse=True):
            sheet = sheet.replace(f"@{role}@", self.colour(role))
        shade = "dark" if self.is_dark else "light"
        for image in ("chevron-down", "chevron-up", "check"):
            sheet = sheet.replace(f"url(@image:{image}@)", _url(f"icons/{image}-{shade}.svg"))
        return sheet


def _hero_rules() -> str:
    return "\n".join(
        f'QLabel[role="{role}"] {{ font-size: @{size}em@; font-weight: {weight}; }}'
        for role, (size, weight) in HERO_SIZES.items()
    )


def _url(resource: str) -> str:
    """Return a style sheet's reference to an image; empty if the file is missing."""
    try:
        return f'url("{resource_path(resource).as_posix()}")'
    except MissingResourceError:
        _log.warning("The image %s is missing", resource)
        return "none"


_STYLE_SHEET = """
QWidget { color: @text@; }
QMainWindow, QDialog { background: @window@; }
QToolTip { background: @card@; color: @text@; border: 1px solid @border@; padding: 4px; }
QFrame[card="true"] { background: @card@; border: 1px solid @border@; border-radius: 8px; }
QFrame[card="true"][tone="failure"] { border: 1px solid @failure@;
    border-left: 4px solid @failure@; }
QFrame[card="true"][tone="amber"] { border: 1px solid @amber@; border-left: 4px solid @amber@; }
QFrame[card="true"][tone="good"] { border: 1px solid @good@; border-left: 4px solid @good@; }
QFrame[zoomable="true"] { border: 1px solid transparent; border-radius: 6px; }
QFrame[zoomable="true"]:focus { border-color: @accent@; }
QLabel { background: transparent; }
@hero_sizes@
QLabel[role="lead"] { font-size: @1.1em@; }
QLabel[role="value"] { font-size: @1.1em@; font-weight: 600; }
QLabel[role="section"] { color: @muted@; font-size: @0.87em@; font-weight: 600; }
QLabel[role="muted"] { color: @muted@; }
QLabel[role="failure"] { color: @failure_ink@; }
QLabel[role="amber"], QLabel[tone="amber"] { color: @amber@; }
QLabel[role="good"] { color: @good@; }
QLabel[tone="quiet"] { color: @muted@; }
QLabel[tone="good"] { color: @good@; }
QLabel[tone="failure"] { color: @failure_ink@; }
QLabel[chip="true"] { background: @track@; color: @muted@; border: 2px solid @track@;
    border-radius: 11px; font-weight: 600; }
QLabel[chip="true"][tone="good"] { background: @good_soft@; color: @good@;
    border-color: @good_soft@; }
QLabel[chip="true"][tone="amber"] { background: @amber_soft@; color: @amber@;
    border-color: @amber_soft@; }
QLabel[chip="true"][tone="failure"] { background: @failure_soft@; color: @failure_ink@;
    border-color: @failure_soft@; }
QLabel[chip="true"]:focus { border-color: @accent@; }
QPushButton { background: @card@; border: 1px solid @border@; border-radius: 6px;
    padding: 6px 14px; }
QPushButton:hover { background: @hover@; }
QPushButton:pressed { background: @selection@; }
QPushButton:focus { border: 2px solid @accent@; padding: 5px 13px; }
QPushButton:checked { background: @selection@; border-color: @accent@; }
QPushButton:checked:focus { border-color: @text@; }
QPushButton:disabled { color: @disabled@; }
QPushButton[primary="true"] { background: @accent@; color: @on_accent@;
    border-color: @accent@; font-weight: 600; }
QPushButton[primary="true"]:hover { background: @accent_hover@; }
QPushButton[primary="true"]:focus { border: 2px solid @text@; }
QPushButton[primary="true"]:disabled { background: @border@; color: @disabled@;
    border-color: @border@; }
QPushButton[link="true"] { background: transparent; border: 1px solid transparent;
    color: @accent@; padding: 1px 4px; text-align: left; }
QPushButton[link="true"]:hover { background: @hover@; }
QPushButton[link="true"]:focus { border: 1px solid @accent@; }
QPushButton[link="true"]:disabled { color: @disabled@; }
QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px;
    padding: 4px 8px; }
QToolButton:hover, QToolButton:checked { background: @hover@; }
QToolButton:focus { border: 2px solid @accent@; padding: 3px 7px; }
QToolButton[fold="true"] { padding-left: 0; }
QToolButton[fold="true"]:focus { padding-left: 0; border-left-width: 1px; }
QToolButton::menu-indicator { image: none; }
QLineEdit, QComboBox, QSpinBox, QDoubleSpinBox, QPlainTextEdit, QTextEdit { background: @field@;
    border: 1px solid @border@; border-radius: 6px; padding: 5px 8px;
    selection-background-color: @accent@; selection-color: @on_accent@; }
QLineEdit:focus, QComboBox:focus, QSpinBox:focus, QDoubleSpinBox:focus, QPlainTextEdit:focus {
    border: 2px solid @accent@; padding: 4px 7px; }
QLineEdit:disabled, QComboBox:disabled { color: @disabled@; }
QLineEdit[invalid="true"] { border: 2px solid @failure@; padding: 4px 7px; }
QComboBox { combobox-popup: 0; }
QComboBox::drop-down { border: none; width: 24px; }
QComboBox::down-arrow { image: url(@image:chevron-down@); width: 12px; height: 12px; }
QAbstractSpinBox QLineEdit, QAbstractSpinBox QLineEdit:focus { background: transparent;
    border: none; padding: 0 7px; }
QAbstractSpinBox::up-button, QAbstractSpinBox::down-button { background: transparent;
    border: none; width: 20px; subcontrol-origin: border; }
QAbstractSpinBox::up-button { subcontrol-position: top right; margin-top: 3px; }
QAbstractSpinBox::down-button { subcontrol-position: bottom right; margin-bottom: 3px; }
QAbstractSpinBox::up-arrow { image: url(@image:chevron-up@); width: 10px; height: 10px; }
QAbstractSpinBox::down-arrow { image: url(@image:chevron-down@); width: 10px; height: 10px; }
QComboBox QAbstractItemView { background: @card@; border: 1px solid @border@;
    selection-background-color: @selection@; selection-color: @text@; outline: 0; padding: 4px; }
QCheckBox, QRadioButton { spacing: 8px; background: transparent; padding: 1px 2px;
    border: 2px solid transparent; border-radius: 6px; }
QCheckBox:focus, QRadioButton:focus { border-color: @accent@; }
QCheckBox::indicator { width: 15px; height: 15px; border: 1px solid @other@;
    border-radius: 4px; background: @field@; }
QCheckBox::indicator:checked { background: @accent@; border-color: @accent@;
    image: url(@image:check@); }
QCheckBox::indicator:disabled { border-color: @border@; background: @window@; }
QRadioButton::indicator { width: 13px; height: 13px; border: 1px solid @other@;
    border-radius: 7px; background: @field@; }
QRadioButton::indicator:checked { width: 5px; height: 5px; border: 5px solid @accent@; }
QRadioButton::indicator:focus { border-color: @accent@; }
QSlider { background: transparent; }
QSlider:horizontal { min-height: 20px; }
QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: @border@; }
QSlider::sub-page:horizontal { background: @accent@; border-radius: 2px; }
QSlider::handle:horizontal { background: @card@; border: 2px solid @accent@; width: 12px;
    margin: -6px 0; border-radius: 8px; }
QSlider::handle:horizontal:focus { background: @accent@; }
QSlider::sub-page:horizontal:disabled { background: @disabled@; }
QSlider::handle:horizontal:disabled { border-color: @disabled@; }
QProgressBar { background: @border@; border: none; border-radius: 4px; max-height: 8px;
    min-height: 8px; text-align: center; }
QProgressBar::chunk { background: @accent@; border-radius: 4px; }
QTabWidget::pane { border: none; }
QTabWidget::tab-bar { left: 10px; }
QTabBar { background: transparent; }
QTabBar::tab { background: transparent; color: @muted@; padding: 10px 16px 8px 16px;
    margin: 0 2px; border: none; border-bottom: 2px solid transparent; font-weight: 500; }
QTabBar::tab:selected { color: @text@; border-bottom: 2px solid @accent@; }
QTabBar::tab:hover { color: @text@; }
QTabBar::tab:focus { color: @accent@; }
QTableView, QTreeView, QListView { background: @card@; border: none; gridline-color: @grid@;
    alternate-background-color: @card@; selection-background-color: @selection@;
    selection-color: @text@; outline: 0; }
QListWidget::item:selected { background: @selection@; color: @text@; }
QTableView::item, QListView::item { padding: 4px 7px; border-bottom: 1px solid @grid@; }
QTableView::item:focus { border: 1px solid @accent@; }
QHeaderView { background: @card@; }
QHeaderView::section { background: @card@; color: @muted@; border: none;
    border-bottom: 1px solid @border@; padding: 6px 10px; font-size: @0.87em@; font-weight: 600; }
QHeaderView::up-arrow, QHeaderView::down-arrow { image: none; width: 0; height: 0; }
QTableCornerButton::section { background: @card@; border: none; }
QScrollBar:vertical { background: transparent; width: 10px; margin: 0; }
QScrollBar:horizontal { background: transparent; height: 10px; margin: 0; }
QScrollBar::handle { background: @border@; border-radius: 4px; min-height: 24px;
    min-width: 24px; }
QScrollBar::handle:hover { background: @other@; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QScrollArea { background: transparent; border: none; }
QScrollArea > QWidget > QWidget[page="true"] { background: transparent; }
QStatusBar { background: @window@; border-top: 1px solid @border@; color: @muted@; }
QStatusBar::item { border: none; }
QStatusBar QLabel { color: @muted@; padding: 2px 6px; }
QMenuBar { background: @window@; padding: 2px; }
QMenuBar::item { padding: 4px 10px; border-radius: 4px; background: transparent; }
QMenuBar::item:selected { background: @hover@; }
QMenu { background: @card@; border: 1px solid @border@; padding: 4px; }
QMenu::item { padding: 5px 22px; border-radius: 4px; }
QMenu::item:selected { background: @selection@; color: @text@; }
QMenu::separator { height: 1px; background: @border@; margin: 4px 8px; }
QSplitter::handle { background: transparent; }
"""
