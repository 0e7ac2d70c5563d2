"""Take pictures of the window, offscreen unless a platform is given.

``python -m tests.screenshots DIR [--size 1280x800] [--theme dark]`` takes the README's: the real
window with the real engine and sensors of this PC. Every number was measured while it was taken.
In docs/pictures, race.png is race-swarm-middle.png, race-learn.png is race-learn-middle.png, and
race.webp is race-swarm.webp; the others keep their names.

``python -m tests.screenshots DIR --every-page [--font "DejaVu Sans"] [--only Memory]`` shows how
the window looks: every page while the engine starts, before its first result, while its work runs,
with a result, with a finding above it, after wrong results, after an error and with devices of
long names, each race while the first and the second contestant run, a check in each of its states,
and the installation of the engine in each of its states; light and dark, in five sizes, in each
font that is named; and a contact sheet of each page. The engine, the sensors and the installer are
scripts: every number is invented, and no such picture is for the README.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtGui import QFont, QFontDatabase

from gpu_studio.app import build_window
from gpu_studio.core.check import check_run
from gpu_studio.model.check import card_check
from gpu_studio.model.settings import Settings
from gpu_studio.ui import theme as window_theme
from gpu_studio.ui.theme import styled_application
from tests.driving.pages import PAGES
from tests.fakes import scripted_engine
from tests.pictures.album import THEMES, Album
from tests.pictures.every_page import EveryPage
from tests.pictures.readme_pictures import Photographer, take_first_start
from tests.pictures.setup_states import PAGE as SETUP
from tests.pictures.setup_states import SetupStates

if TYPE_CHECKING:
    from collections.abc import Collection

TABS = (*dict.fromkeys(page.tab for page in PAGES), SETUP)


def take_every_page(folder: Path, fonts: list[str], tabs: Collection[str]) -> None:
    """Take every page in each of the fonts that this PC has; the others are named and left out."""
    scripted_engine.LONGEST_PAUSE_S = 3600.0  # an engine is held for as long as it is looked at
    check_run.STEP_PATIENCE_S = 3600.0
    card_check._STOP_PATIENCE_MS = 3_600_000
    there = set(QFontDatabase.families())
    system_font = window_theme.application_font
    for family in fonts:
        if family not in there:
            sys.stderr.write(f"{family} is not installed\n")
            continue

        def chosen(system: QFont, family: str = family) -> QFont:
            font = system_font(system)
            font.setFamilies([family])
            return font

        window_theme.application_font = chosen
        take_tabs(Album(folder, family), tabs)
    window_theme.application_font = system_font


def take_tabs(album: Album, tabs: Collection[str]) -> None:
    """Take the pages of some tabs in every state, each PC in a window of its own."""
    if SETUP in tabs:
        SetupStates(album).take_all()
    if set(tabs) - {SETUP}:
        EveryPage(album, tabs).take_all()
        EveryPage(album, tabs).take_long_names()
    album.make_sheets()


def take_real_pictures(options: argparse.Namespace) -> None:
    """Take the README's pictures."""
    width, height = (int(part) for part in options.size.split("x"))
    settings = Settings(None)
    settings.change(theme=options.theme, budget_s=0.5)
    take_first_start(options.folder, options.suffix, settings)
    window = build_window(settings=settings)
    window.resize(width, height)
    window.show()
    try:
        Photographer(window, options.folder, options.suffix).take_all()
    finally:
        window.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--size", default="1280x800")
    parser.add_argument("--theme", choices=THEMES, default="light")
    parser.add_argument("--suffix", default="")
    parser.add_argument("--every-page", action="store_true", help="with invented numbers")
    parser.add_argument("--font", action="append", help="for --every-page; may be given again")
    parser.add_argument("--only", action="append", choices=TABS, help="a tab; may be given again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    application = styled_application(["screenshots"])
    if options.every_page:
        take_every_page(options.folder, options.font or ["DejaVu Sans"], options.only or TABS)
    else:
        take_real_pictures(options)
    application.processEvents()


if __name__ == "__main__":
    main()
