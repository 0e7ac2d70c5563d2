"""Use the window on the Windows PC as a person does: clicks, keys, Alt+F4."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from typing import TYPE_CHECKING, Any

from tests.windows.suite import tell_now
from tests.windows.wine_pc import PYTHON, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.windows.wine_pc import WindowsPc

_LONGEST_START_S = 300.0
_LONGEST_RUN_S = 300.0
_LONGEST_END_S = 15.0
_LONGEST_MOVE_S = 60.0
_STILL = 3


class FailedError(Exception):
    """Something that a person would expect did not come; the text says what."""


class Person:
    """Clicks and types on a screen."""

    def __init__(self, display: str) -> None:
        self._environ = {"DISPLAY": display, "PATH": "/usr/bin:/bin"}

    def click(self, place: tuple[int, int]) -> None:
        self._do("mousemove", str(place[0]), str(place[1]), "click", "1")

    def press(self, *keys: str) -> None:
        """Press keys one after the other, as xdotool names them."""
        self._do("key", "--delay", "50", *keys)

    def windows_called(self, name: str) -> list[str]:
        """Return the windows on the screen whose title has a word in it."""
        command = ["xdotool", "search", "--onlyvisible", "--name", name]
        done = subprocess.run(
            command, env=self._environ, capture_output=True, text=True, check=False
        )
        return done.stdout.split()

    def focus(self, name: str) -> None:
        for window in self.windows_called(name):
            self._do("windowfocus", window)

    def is_typing_in(self, name: str) -> bool:
        """Return whether the keyboard goes to a window whose title has a word in it."""
        command = ["xdotool", "getwindowfocus", "getwindowname"]
        done = subprocess.run(
            command, env=self._environ, capture_output=True, text=True, check=False
        )
        return name in done.stdout

    def take_picture(self, path: Path) -> None:
        with open(path, "wb") as file:
            command = ["import", "-window", "root", "png:-"]
            subprocess.run(command, env=self._environ, stdout=file, check=False)

    def _do(self, *words: str) -> None:
        subprocess.run(["xdotool", *words], env=self._environ, check=True)


class WatchedWindow:
    """The window in a process of its own, with what it told last of itself.

    Args:
        process: the window, as watched_window.py opens it, with a pipe for its output.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.told: dict[str, Any] = {
            "status": "", "installation": "", "places": {}, "medians": [],
        }  # fmt: skip
        self.printed: list[str] = []
        self._still = 0  # how often in a row every place was the one of before
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def wait_for(
        self, what: str, condition: Callable[[dict[str, Any]], Any], longest_s: float
    ) -> None:
        """Wait until the window tells something.

        Raises:
            FailedError: it did not in time.
        """
        if not wait_until(lambda: condition(self.told), longest_s):
            last = "\n".join(self.printed[-20:])
            raise FailedError(f"{what}: not within {longest_s:.0f} s. {self.told}\n{last}")

    def click(self, name: str, person: Person) -> None:
        """Click on a widget once nothing in the window moves.

        Each click and each letter can move what is below, such as the button Run.

        Raises:
            FailedError: it is not there in time.
        """
        self.wait_for(name, lambda state: name in state["places"], _LONGEST_MOVE_S)
        self.wait_until_still()
        person.click(self.told["places"][name])

    def wait_until_still(self) -> None:
        """Wait until nothing has moved for a while.

        Raises:
            FailedError: something moves all the time.
        """
        self._still = 0
        self.wait_for("no motion", lambda _: self._still >= _STILL, _LONGEST_MOVE_S)

    def exit_status(self) -> int:
        try:
            return self._process.wait(_LONGEST_END_S)
        except subprocess.TimeoutExpired:
            raise FailedError(f"The window is open {_LONGEST_END_S:.0f} s after Alt+F4.") from None

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            text = line.decode("utf-8", "replace").strip()
            if text.startswith("{"):
                before, self.told = self.told, json.loads(text)
                is_still = before["places"] == self.told["places"]
                self._still = self._still + 1 if is_still else 0
            elif text:
                self.printed.append(text)


def use_window(pc: WindowsPc, picture: Path, tell: Callable[[str], None] = tell_now) -> bool:
    """Open the window, let the CPU run a benchmark, close it; return whether all went well."""
    began_s = time.monotonic()
    try:
        _use(pc, Person(pc.display), picture)
    except FailedError as error:
        tell(f"Windows, the window: {error}")
        Person(pc.display).take_picture(picture.with_suffix(".failed.png"))
        return False
    took = f"{time.monotonic() - began_s:.0f} s"
    tell(f"Windows, the window: ready, ran on the CPU, closed by Alt+F4 ({took})")
    return True


def _use(pc: WindowsPc, person: Person, picture: Path) -> None:
    window = WatchedWindow(pc.start([PYTHON, "-m", "tests.windows.watched_window"]))
    window.wait_for(
        "PyTorch: ready", lambda state: "PyTorch: ready" in state["status"], _LONGEST_START_S
    )
    window.click("tab", person)
    window.click("benchmark.sizes", person)
    person.press("ctrl+a", "2", "5", "6")
    window.wait_for("256", lambda state: state["typed"] == "256", 60)
    window.click("benchmark.run", person)
    window.wait_for("a run's end", has_a_finished_run, _LONGEST_RUN_S)
    window.wait_until_still()  # a busy PC paints later than it tells
    person.take_picture(picture)
    person.press("alt+F4")
    if (status := window.exit_status()) != 0:
        last = "\n".join(window.printed[-20:])
        raise FailedError(f"exit status {status} after Alt+F4\n{last}")
    _expect_nothing_left(pc)


def has_a_finished_run(state: dict[str, Any]) -> bool:
    is_over = "benchmark.clear" in state["places"] and "PyTorch: ready" in state["status"]
    return is_over and any(median.endswith("s") for median in state["medians"])


def _expect_nothing_left(pc: WindowsPc) -> None:
    if not wait_until(lambda: not pc.pythons(), _LONGEST_END_S):
        raise FailedError(f"left after Alt+F4: {pc.pythons()}")
