"""The setup for Windows, on the Windows PC of tests/windows: install, use, update, remove."""

import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from tests.installed.first_use import (
    expect_nothing_runs,
    first_result,
    open_and_close,
    settle,
    use_older,
    use_terminal,
    use_updated,
)
from tests.installed.wheel_index import WheelIndex
from tests.windows.set_up import ROOT, download_wheels, set_up
from tests.windows.window import FailedError, Person
from tests.windows.wine_pc import CHECKOUT, PYTHON, WindowsPc, screen, wait_until

APP = "C:\\Eigene Dateien\\GPU Studio für mich"
_USER = "C:\\users\\root"
DATA = f"{_USER}\\AppData\\Local\\gpu-studio"
_DESKTOP = f"{_USER}\\Desktop"
_MENU = f"{_USER}\\AppData\\Roaming\\Microsoft\\Windows\\Start Menu\\Programs"
_SETUP = "C:\\Downloads\\setup.exe"
_KEY = "HKCU\\Software\\Microsoft\\Windows\\CurrentVersion\\Uninstall\\GPU Studio"
_LONGEST_SETUP_S = 600.0
_LONGEST_COMMAND_S = 900.0
_WHEELS = "C:\\Downloads\\wheels"
_REFUSED = 2
_STAYS = 3
_WRONG_USAGE = 2  # of argparse
_LONGEST_FOCUS_S = 30
# With the module of the tests behind the program's own, so that only the watching is not installed.
_WATCH = (
    f"import sys, runpy; sys.path.append(r'{CHECKOUT}'); sys.argv[0] = 'gpu_studio'; "
    "runpy.run_module('tests.windows.watched_window', run_name='__main__')"
)


class InstalledWindows:
    """The program on a Windows PC.

    Args:
        pc: the Windows PC.
    """

    def __init__(self, pc: WindowsPc) -> None:
        self.pc = pc
        self.table = pc.path(f"{APP}\\resources\\wheels.json")

    def double_click(self) -> None:
        """Open the shortcut on the desktop, as Explorer does."""
        command = ["start", f"{_DESKTOP}\\GPU Studio.lnk"]
        self.pc.start(command, folder="C:\\")

    def watch(self, environ: Mapping[str, str] = MappingProxyType({})) -> subprocess.Popen[bytes]:
        """Open the window with the installed Python and the installed program."""
        command = [f"{APP}\\python\\python.exe", "-c", _WATCH]
        return self.pc.start(command, folder="C:\\", environ=environ)

    def close(self, person: Person) -> None:
        """Close the window, once it has the keyboard."""
        wait_until(lambda: person.is_typing_in("GPU Studio"), _LONGEST_FOCUS_S)
        person.press("alt+F4")

    def type(self, *command: str) -> tuple[int, str]:
        """Run a command as a terminal does, which finds it in the PATH of the registry."""
        return self.pc.run(["cmd", "/c", *command], _LONGEST_COMMAND_S, folder="C:\\")

    def running(self) -> dict[int, str]:
        """Return the Python processes of the program."""
        return self.pc.pythons()


def prove_windows(
    out: Path, pictures: Path, wheels: Path | None = None, older: Path | None = None
) -> None:
    """Install the setup of a folder, use it, and remove it; print what was seen.

    With the folder of an older version's setup, that one is installed first, and updated.

    Raises:
        FailedError: something that a person would expect did not come.
        SkippedError: this PC cannot have such a Windows.
    """
    setups = [
        next(iter(one.glob("GPU-Studio-*-setup.exe"))) for one in (older, out) if one is not None
    ]
    pc = set_up(ROOT / ".setup" / "windows", print)
    try:
        with screen() as display:
            pc.display = display
            _make_fresh(pc)
            wheels = wheels or download_wheels(pc)
            shutil.rmtree(pc.path(_WHEELS), ignore_errors=True)
            shutil.copytree(wheels, pc.path(_WHEELS))
            _prove(InstalledWindows(pc), Person(display), pictures, WheelIndex(wheels), setups)
    finally:
        pc.shut_down()


def _prove(
    installed: InstalledWindows,
    person: Person,
    pictures: Path,
    index: WheelIndex,
    setups: Sequence[Path],
) -> None:
    pc = installed.pc
    *older, setup = setups
    for one in older:
        _update_from(one, setup, installed, person, pictures)
    _download(pc, setup)
    began_s = time.monotonic()
    expect_status(install(pc), 0, "the setup")
    print(f"Installed silently into “{APP}” in {time.monotonic() - began_s:.0f} s.", flush=True)
    _expect_installed(pc)
    before = names_in(pc.path(APP))
    window_s = open_and_close(installed, person, pictures / "window.png")
    times = first_result(installed, person, pictures, index)._replace(window_s=window_s)
    print(f"Windows (under Wine): {times}.", flush=True)
    if changed := before ^ names_in(pc.path(APP)):
        raise FailedError(f"the program wrote to its own folder: {sorted(changed)[:5]}")
    _use_terminal(pc)
    use_terminal(installed, _WHEELS)
    _refuse_while_open(installed, person)
    _update_by_hand(installed, person, pictures)
    _keep_what_is_in_use(pc)
    expect_status(uninstall(pc), 0, "the uninstaller")
    _expect_removed(pc)


def _download(pc: WindowsPc, setup: Path) -> None:
    target = pc.path(_SETUP)
    target.parent.mkdir(exist_ok=True)
    shutil.copy(setup, target)


def _update_from(
    older: Path, setup: Path, installed: InstalledWindows, person: Person, pictures: Path
) -> None:
    """Use an older version, update it, use that, and remove it with all that it kept."""
    pc = installed.pc
    _download(pc, older)
    expect_status(install(pc), 0, "the older setup")
    results = use_older(installed, _WHEELS)
    _download(pc, setup)
    expect_status(install(pc), 0, "the update")
    use_updated(installed, person, pictures, results)
    expect_status(uninstall(pc), 0, "the uninstaller")
    _make_fresh(pc)


def install(pc: WindowsPc) -> int:
    """Run the setup silently; return its exit status."""
    # NSIS takes everything behind /D= for the folder, and no quotes.
    command = [_SETUP, "/S", "/DESKTOP", *f"/D={APP}".split(" ")]
    return pc.run(command, _LONGEST_SETUP_S, folder="C:\\")[0]


def uninstall(pc: WindowsPc) -> int:
    command = [f"{APP}\\uninstall.exe", "/S", "/ENGINES"]
    return pc.run(command, _LONGEST_SETUP_S, folder="C:\\")[0]


def expect_status(status: int, wanted: int, who: str) -> None:
    """Compare an exit status.

    Raises:
        FailedError: it is another one.
    """
    if status != wanted:
        raise FailedError(f"{who} ended with {status} and not with {wanted}")


def _make_fresh(pc: WindowsPc) -> None:
    """Make a PC on which the program never was, of a Windows that it runs on."""
    for folder in (APP, DATA):
        shutil.rmtree(pc.path(folder), ignore_errors=True)
    desktop = pc.path(_DESKTOP)
    if desktop.is_symlink():  # to the home of this Linux
        desktop.unlink()
    desktop.mkdir(exist_ok=True)
    for place in (_DESKTOP, _MENU):
        for path in pc.path(place).glob("GPU Studio.*"):
            path.unlink()
    expect_status(pc.run(["winecfg", "-v", "win10"], 120, folder="C:\\")[0], 0, "winecfg")


def _expect_installed(pc: WindowsPc) -> None:
    for link in (f"{_DESKTOP}\\GPU Studio.lnk", f"{_MENU}\\GPU Studio.lnk"):
        if not pc.path(link).exists():
            raise FailedError(f"there is no {link}")
    status, output = pc.run(["reg", "query", _KEY], 60, folder="C:\\")
    if status != 0 or "UninstallString" not in output:
        raise FailedError(f"no entry among the installed programs: {output}")


def _use_terminal(pc: WindowsPc) -> None:
    """Type commands, as into a terminal: it finds the program, and its status is the command's."""
    status, output = pc.run(["cmd", "/c", "gpu-studio devices --json"], 120, folder="C:\\")
    expect_status(status, 0, f"gpu-studio devices, which printed {output}")
    if '"cpu' not in output:
        raise FailedError(f"gpu-studio devices printed {output}")
    for program in ("gpu-studio.exe", "GPU Studio.exe"):
        status, output = pc.run([f"{APP}\\{program}", "no-command"], 120, folder="C:\\")
        expect_status(status, _WRONG_USAGE, f"{program} no-command, which printed {output}")
    print("A terminal finds gpu-studio, and gets the command's status.", flush=True)


def _refuse_while_open(installed: InstalledWindows, person: Person) -> None:
    installed.double_click()
    if not wait_until(lambda: person.windows_called("GPU Studio"), 300):
        raise FailedError("no window to update under")
    expect_status(install(installed.pc), _REFUSED, "an update under the open window")
    expect_status(uninstall(installed.pc), _REFUSED, "a removal under the open window")
    if not installed.pc.path(f"{APP}\\installed.json").exists():
        raise FailedError("the refused removal removed the program")
    installed.close(person)
    expect_nothing_runs(installed)
    print("An update and a removal are refused while the window is open.", flush=True)


def _update_by_hand(installed: InstalledWindows, person: Person, pictures: Path) -> None:
    """Run the setup again as a person does, page by page, and let it open the window."""
    pc, mark = installed.pc, installed.pc.path(f"{APP}\\remove.exe")
    before_ns = mark.stat().st_mtime_ns
    setup = pc.start([_SETUP], folder="C:\\")
    _wait_for_window("GPU Studio Setup", person)
    settle(pictures / "setup-folder.png", person)
    person.focus("GPU Studio Setup")  # there is no window manager that would
    person.press("Return")
    settle(pictures / "setup-parts.png", person)
    person.press("Return")
    if not wait_until(lambda: _written_ns(mark) not in (0, before_ns), _LONGEST_SETUP_S):
        raise FailedError("the setup did not come to its end")
    settle(pictures / "setup-finished.png", person)
    person.press("Return")
    expect_status(setup.wait(60), 0, "the setup by hand")
    if not wait_until(lambda: installed.running() and person.windows_called("GPU Studio"), 300):
        raise FailedError("the setup's last page opened no window")
    settle(pictures / "opened-by-setup.png", person)
    installed.close(person)
    expect_nothing_runs(installed)
    print("Updated by hand, and opened from the setup's last page.", flush=True)


def _keep_what_is_in_use(pc: WindowsPc) -> None:
    """Remove the program while another one reads its file: the status says that it stays."""
    used = f"{APP}\\packages\\PySide6\\QtWidgets.pyd"
    hold = f"import time; file = open(r'{used}'); print('open', flush=True); time.sleep(600)"
    holder = pc.start([PYTHON, "-c", hold], folder="C:\\")
    try:
        assert holder.stdout is not None
        holder.stdout.readline()
        expect_status(uninstall(pc), _STAYS, "a removal with a file in use")
    finally:
        pc.shut_down()
        holder.wait()
    if not pc.path(used).exists():
        raise FailedError("a file in use was removed")
    print("A file that is in use stays, and the status says so.", flush=True)


def _wait_for_window(title: str, person: Person) -> None:
    if not wait_until(lambda: person.windows_called(title), 120):
        raise FailedError(f"there is no window “{title}”")


def _written_ns(path: Path) -> int:
    return path.stat().st_mtime_ns if path.exists() else 0


def _expect_removed(pc: WindowsPc) -> None:
    left = [place for place in (APP, f"{DATA}\\engines") if pc.path(place).exists()]
    left += [str(path) for place in (_DESKTOP, _MENU) for path in pc.path(place).glob("GPU St*")
             if path.suffix == ".lnk"]  # fmt: skip
    if pc.run(["reg", "query", _KEY], 60, folder="C:\\")[0] == 0:
        left.append(_KEY)
    _, variables = pc.run(["reg", "query", "HKCU\\Environment"], 60, folder="C:\\")
    if APP.lower() in variables.lower():
        left.append("the program's folder in PATH")
    saved = sorted(names_in(pc.path(DATA)))
    print(f"Left after the removal, as asked (results, settings, logs): {saved}", flush=True)
    if left:
        raise FailedError(f"left after the removal: {left}")


def names_in(folder: Path) -> set[str]:
    return {
        f"{path.relative_to(folder).as_posix()} ({path.stat().st_size})"
        for path in folder.rglob("*")
        if path.is_file()
    }
