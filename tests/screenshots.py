"""Take pictures of the window, offscreen unless a platform is given.

``python -m tests.screenshots DIR [--size 1280x800] [--theme dark]`` takes the README's: the real
window with the real engine and sensors of this PC. Every number was measured while it was taken.
Those of Devices, Switcher and Memory are of a PC with soft cards: ``python -m tests.softcards.run
--card …`` with ``--only Devices --only Switcher --only Memory``; their numbers are simulated.
In docs/pictures, race.png is race-swarm-middle.png, race-learn.png is race-learn-middle.png, and
race.webp is race-swarm.webp; the others keep their names.

``python -m tests.screenshots DIR --every-page [--only Memory]`` shows how the window looks: every
page before its first result and with one, light and dark, in three sizes. The engine and the
sensors are scripts: every number is invented, and no such picture is for the README.
"""

import argparse
import os
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from gpu_studio.app import build_window
from gpu_studio.model.settings import Settings
from gpu_studio.ui.theme import styled_application
from tests.driving.pages import PAGES
from tests.pictures.every_page import THEMES, take_every_page
from tests.pictures.readme_pictures import Photographer, take_first_start

TABS = tuple(dict.fromkeys(page.tab for page in PAGES))


def take_real_pictures(options: argparse.Namespace) -> None:
    width, height = (int(part) for part in options.size.split("x"))
    settings = Settings(None)
    settings.change(theme=options.theme, budget_s=0.5)
    if not options.only:
        take_first_start(options.folder, options.suffix, settings)
    window = build_window(settings=settings)
    window.resize(width, height)
    window.show()
    try:
        Photographer(window, options.folder, options.suffix).take_all(options.only or TABS)
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
    parser.add_argument("--only", action="append", choices=TABS, help="a tab; may be given again")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    application = styled_application(["screenshots"])
    if options.every_page:
        take_every_page(options.folder, options.only or TABS)
    else:
        take_real_pictures(options)
    application.processEvents()


if __name__ == "__main__":
    main()
