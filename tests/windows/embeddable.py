"""Shape a Python like python.org's embeddable package: ``python -m tests.windows.embeddable DIR``.

The Python is that of the Windows PC that ``bootstrap.py test --windows`` makes.
``packaging/build.py windows --python DIR`` takes it for a try; a release takes python.org's.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

_NOT_IN_IT = shutil.ignore_patterns(
    "__pycache__", "site-packages", "test", "tests", "tkinter", "turtle*", "idlelib", "ensurepip",
    "venv", "lib2to3", "pydoc_data", "*.exe", "*.bat",
)  # fmt: skip
_NOT_DLLS = ("tcl", "tk", "_tkinter", "_msi")
_DAY = (2026, 1, 1, 0, 0, 0)


def make_embeddable(home: Path, target: Path) -> Path:
    """Make the embeddable package of an installed Python 3.11 for Windows; return its folder.

    Args:
        home: the folder with python.exe, Lib and DLLs.
        target: the new folder; what is there is removed.
    """
    shutil.rmtree(target, ignore_errors=True)
    target.mkdir(parents=True)
    for path in [*home.glob("*.exe"), *home.glob("*.dll"), *(home / "DLLs").iterdir()]:
        if not path.name.startswith(_NOT_DLLS):
            shutil.copy(path, target / path.name)
    shutil.copy(_license(), target / "LICENSE.txt")
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "Lib"
        shutil.copytree(home / "Lib", library, ignore=_NOT_IN_IT)
        _compile(library)
        with zipfile.ZipFile(target / "python311.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for path in sorted(library.rglob("*.pyc")):
                name = path.relative_to(library).as_posix()
                archive.writestr(zipfile.ZipInfo(name, _DAY), path.read_bytes(), 8)
    (target / "python311._pth").write_text("python311.zip\n.\n\n#import site\n", encoding="utf-8")
    return target


def _compile(library: Path) -> None:
    """Compile each module to a file beside it, as a zip file needs it."""
    command = [sys.executable, "-m", "compileall", "-q", "-b", "-s", str(library),
               "--invalidation-mode", "unchecked-hash", str(library)]  # fmt: skip
    environ = {**os.environ, "PYTHONHASHSEED": "0", "PYTHONDONTWRITEBYTECODE": ""}
    subprocess.run(command, env=environ, check=True, stdout=subprocess.DEVNULL)


def _license() -> Path:
    import sysconfig

    return Path(sysconfig.get_path("stdlib")) / "LICENSE.txt"


def main() -> int:
    """Make the embeddable package of the Windows PC's Python; return the exit status."""
    from tests.windows.set_up import ROOT
    from tests.windows.wine_pc import HOME, WindowsPc

    home = WindowsPc(ROOT / ".setup" / "windows").path(HOME)
    if len(sys.argv) != 2 or not home.exists():
        print("Make the Windows PC first: python3 packaging/bootstrap.py test --windows --short")
        return 2
    print(make_embeddable(home, Path(sys.argv[1])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
