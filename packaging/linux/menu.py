"""Put the portable folder into the applications menu (``add``), or take it out (``remove``)."""

import json
import os
import sys
from pathlib import Path

APP = Path(__file__).resolve().parent
sys.path.insert(0, str(APP / "packaging"))

from studio_setup.menu_entry import OtherEntryError, add_to_menu, remove_from_menu  # noqa: E402


def main() -> int:
    """Do what was asked for; return the exit status."""
    package = json.loads((APP / "installed.json").read_text(encoding="utf-8"))["package"]
    if package != "tar":
        sys.stderr.write("GPU Studio is installed: its package keeps its entry in the menu.\n")
        return 1
    try:
        if sys.argv[1] == "add":
            path = add_to_menu(APP, os.environ, Path.home())
            print(f"GPU Studio is in your menu: {path}")
            print("If you move this folder, type the command again there.")
        else:
            path = remove_from_menu(APP, os.environ, Path.home())
            print(f"GPU Studio is no longer in your menu: {path} is removed.")
    except OtherEntryError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    except OSError as error:
        sys.stderr.write(f"The menu cannot be changed: {error.filename}: {error.strerror}.\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
