"""The first minutes with the installed program, as a person has them.

A double-click, a window without PyTorch, a download that fails, pauses and continues, the CPU
engine, a first result; an update that keeps both; and the same by a terminal. The steps are the
same on Windows and Linux; the PC differs.
"""

from __future__ import annotations

import json
import time
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tests.windows.window import FailedError, Person, WatchedWindow, has_a_finished_run
from tests.windows.wine_pc import wait_until

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.installed.wheel_index import WheelIndex

_LONGEST_START_S = 300.0
_LONGEST_FAILURE_S = 120.0
_LONGEST_ENGINE_S = 1500.0
_LONGEST_RUN_S = 300.0
_LONGEST_END_S = 60.0
_FAILED, _IN_DOUBT = 1, 3  # a busy PC tells less
# What a terminal can do with an engine, and the last line of each.
_TERMINAL_WAY = (
    (("bench", "matmul", "--size", "128", "--time", "0.5"), "run_finished"),
    (("race", "learn", "--threads", "1,1", "--time", "1"), "race_finished"),
    (("check", "--time", "1min", "--stage", "compute,memory"), "check_finished"),
)


class InstalledPc(Protocol):
    """A PC with the installed program.

    Attributes:
        table: The program's table of builds, resources/wheels.json.
    """

    table: Path

    def double_click(self) -> None:
        """Open the program as its icon does."""

    def watch(self, environ: Mapping[str, str] = MappingProxyType({})) -> subprocess.Popen[bytes]:
        """Open the window so that it tells what it shows."""

    def close(self, person: Person) -> None:
        """Close the window."""

    def type(self, *command: str) -> tuple[int, str]:
        """Type a command into a terminal; return its exit status and what it prints."""

    def running(self) -> dict[int, str]:
        """Return the processes of the program: their ids and command lines."""


class Times(NamedTuple):
    """How long each step took, in seconds.

    Attributes:
        window_s: From the double-click to the window.
        engine_s: From the press that starts the download to a CPU engine that is ready, without the
            pause. The wheels come from this PC.
        result_s: From the press on Run to the first result.
    """

    window_s: float
    engine_s: float
    result_s: float

    def __str__(self) -> str:
        return (
            f"double-click to window {self.window_s:.1f} s, download from this PC to CPU engine "
            f"{self.engine_s:.0f} s, Run to first result {self.result_s:.0f} s"
        )


def open_and_close(pc: InstalledPc, person: Person, picture: Path) -> float:
    """Double-click, see the window, close it; return the seconds from the click to the window.

    Raises:
        FailedError: there was no window, or something went on after it was closed.
    """
    began_s = time.monotonic()
    pc.double_click()
    if not wait_until(lambda: person.windows_called("GPU Studio"), _LONGEST_START_S, look_s=0.1):
        raise FailedError(f"no window after a double-click: {pc.running()}")
    took_s = time.monotonic() - began_s
    settle(picture, person)
    pc.close(person)
    expect_nothing_runs(pc)
    return took_s


def measure_at_once(
    pc: InstalledPc, person: Person, picture: Path
) -> tuple[float, float, list[str]]:
    """Press the first button of a program without PyTorch, and wait for the verdict.

    Returns:
        The seconds from the double-click to the verdict, and from the press on the button; what the
        page says.

    Raises:
        FailedError: there was none.
    """
    began_s = time.monotonic()
    window = WatchedWindow(pc.watch())
    window.click("setup.measure", person)
    pressed_s = time.monotonic()
    window.wait_for("a verdict", lambda told: "quick.again" in told["places"], _LONGEST_RUN_S)
    ended_s, said = time.monotonic(), window.told["quick"]
    settle(picture, person)
    close(pc, window, person)
    return ended_s - began_s, ended_s - pressed_s, said


def settle(picture: Path, person: Person) -> None:
    """Take a picture once two in a row are the same: the window has painted all of itself."""
    before = b""

    def is_still() -> bool:
        nonlocal before
        person.take_picture(picture)
        last, before = before, picture.read_bytes() if picture.exists() else b"-"
        return last == before

    wait_until(is_still, _LONGEST_END_S, look_s=2.0)


def first_result(pc: InstalledPc, person: Person, pictures: Path, index: WheelIndex) -> Times:
    """Download the CPU engine in the window, run a benchmark, close it; return the times.

    On the way, the index cannot be reached, the download is paused in its middle, and the window is
    closed and opened again.

    Raises:
        FailedError: a step did not come to its end.
    """
    with index.in_table(pc.table):
        window = WatchedWindow(pc.watch({"PIP_INDEX_URL": index.pip_index}))
        _fail(window, person, pictures)
        with index:
            first_half_s = _pause(window, person, pictures, index)
            close(pc, window, person)
            window = WatchedWindow(pc.watch({"PIP_INDEX_URL": index.pip_index}))
            rest_s = _go_on(window, person, pictures, index)
    settle(pictures / "engine-ready.png", person)
    result_s = use_engine(window, person)
    settle(pictures / "first-result.png", person)
    close(pc, window, person)
    return Times(0.0, first_half_s + rest_s, result_s)


def close(pc: InstalledPc, window: WatchedWindow, person: Person) -> None:
    """Close the window, as a person does.

    Raises:
        FailedError: it ended badly, or something goes on without it.
    """
    pc.close(person)
    if (status := window.exit_status()) != 0:
        raise FailedError(f"exit status {status} after it was closed\n{window.printed[-20:]}")
    expect_nothing_runs(pc)


def wait_for_engine(window: WatchedWindow) -> None:
    """Wait until the engine is ready.

    Raises:
        FailedError: it is not in time.
    """
    window.wait_for(
        "a CPU engine", lambda state: "PyTorch: ready" in state["status"], _LONGEST_ENGINE_S
    )


def use_engine(window: WatchedWindow, person: Person) -> float:
    """Leave the engine's page and run a benchmark; return the seconds from Run to its result."""
    if "setup.close" in window.told["places"]:
        window.click("setup.close", person)
    return _run(window, person)


class Kept(NamedTuple):
    """What an update must not lose.

    Attributes:
        engines: The installed builds, with their versions of PyTorch.
        runs: The kept results, a line each.
    """

    engines: tuple[tuple[str, str], ...]
    runs: tuple[str, ...]


def use_older(pc: InstalledPc, wheels: str) -> Kept:
    """Get an engine and a result by the terminal of an older version; return what is kept.

    Args:
        pc: the PC.
        wheels: the folder of PyTorch's wheels there.
    """
    _typed(pc, "engine", "install", "cpu", "--wheels", wheels)
    _typed(pc, *_TERMINAL_WAY[0][0], "--json")
    return _kept(pc)


def _kept(pc: InstalledPc) -> Kept:
    """Return what the program says of its engines and results.

    Raises:
        FailedError: it has none of them.
    """
    (last,) = _typed(pc, "engine", "list", "--json").splitlines()[-1:]
    engines = tuple((one["family"], one["torch_version"]) for one in json.loads(last)["engines"])
    runs = tuple(_typed(pc, "bench", "history").splitlines())
    if not engines or not runs:
        raise FailedError(f"before the update there are the engines {engines} and the runs {runs}")
    return Kept(engines, runs)


def use_updated(pc: InstalledPc, person: Person, pictures: Path, before: Kept) -> None:
    """Use the program after an update: the same engine and results, and nothing to download.

    Raises:
        FailedError: something was lost, or the engine is not ready by itself.
    """
    if (after := _kept(pc)) != before:
        raise FailedError(f"the update made {after} of {before}")
    window = WatchedWindow(pc.watch())
    wait_for_engine(window)
    settle(pictures / "updated.png", person)
    _run(window, person)
    close(pc, window, person)
    print("After the update: the same engine and results, and another result.", flush=True)


def use_terminal(pc: InstalledPc, wheels: str) -> None:
    """Type the whole way of a PC without a display: an engine, and what it is for.

    Args:
        pc: the PC; an engine that it has is removed.
        wheels: the folder of PyTorch's wheels there.

    Raises:
        FailedError: a command ended with another status, or printed no result.
    """
    began_s = time.monotonic()
    if "in use" in _typed(pc, "engine", "list"):
        _typed(pc, "engine", "remove", "cpu")
    without = _typed(pc, "pitfall", "tiny_model", statuses=(_FAILED,))
    if "engine install" not in without:
        raise FailedError(f"without an engine, pitfall says {without}")
    _typed(pc, "engine", "install", "cpu", "--wheels", wheels)
    _typed(pc, "engine", "repair")
    _typed(pc, "doctor", statuses=(_FAILED,))  # PyTorch can use no card where there is none
    for command, end in _TERMINAL_WAY:
        printed = _typed(pc, *command, "--json", statuses=(0, _IN_DOUBT))
        (last,) = printed.splitlines()[-1:]
        if json.loads(last).get("type") != end:
            raise FailedError(f"gpu-studio {' '.join(command)} ended with {last}")
    print(
        f"By terminal: an engine, repair, doctor, {', '.join(one[0] for one, _ in _TERMINAL_WAY)} "
        f"in {time.monotonic() - began_s:.0f} s.",
        flush=True,
    )


def _typed(pc: InstalledPc, *command: str, statuses: Sequence[int] = (0,)) -> str:
    found, printed = pc.type("gpu-studio", *command)
    if found not in statuses:
        raise FailedError(f"gpu-studio {' '.join(command)} ended with {found}: {printed[-1500:]}")
    return printed


def _fail(window: WatchedWindow, person: Person, pictures: Path) -> None:
    """Press the one button while the index cannot be reached."""
    window.wait_for("the engine's page", lambda state: "setup.begin" in state["places"],
                    _LONGEST_START_S)  # fmt: skip
    settle(pictures / "download-page.png", person)
    window.click("setup.begin", person)
    window.wait_for("a failure", lambda state: "setup.again" in state["places"], _LONGEST_FAILURE_S)
    settle(pictures / "failed.png", person)


def _pause(window: WatchedWindow, person: Person, pictures: Path, index: WheelIndex) -> float:
    """Try again and pause in the middle; return the seconds that the first half took."""
    began_s = time.monotonic()
    window.click("setup.again", person)
    window.wait_for("half of the download", lambda state: index.holds_back and _is_loading(state),
                    _LONGEST_ENGINE_S)  # fmt: skip
    took_s = time.monotonic() - began_s
    settle(pictures / "downloading.png", person)
    window.click("setup.pause", person)
    window.wait_for("a pause", lambda state: "setup.go_on" in state["places"], _LONGEST_END_S)
    settle(pictures / "paused.png", person)
    return took_s


def _go_on(window: WatchedWindow, person: Person, pictures: Path, index: WheelIndex) -> float:
    """Continue after a restart of the window; return the seconds to the engine.

    Raises:
        FailedError: the download began again.
    """
    window.wait_for("the pause after a restart", lambda state: "setup.go_on" in state["places"],
                    _LONGEST_START_S)  # fmt: skip
    settle(pictures / "paused-after-restart.png", person)
    index.let_go()
    began_s = time.monotonic()
    window.click("setup.go_on", person)
    window.wait_for("an installation", _is_installing, _LONGEST_ENGINE_S)
    person.take_picture(pictures / "installing.png")
    wait_for_engine(window)
    if not index.continued_at:
        raise FailedError("after the pause, the download began again")
    return time.monotonic() - began_s


def _run(window: WatchedWindow, person: Person) -> float:
    window.click("tab", person)
    window.click("benchmark.sizes", person)
    person.press("ctrl+a", "2", "5", "6")
    window.wait_for("256", lambda state: state["typed"] == "256", 60)
    began_s = time.monotonic()
    window.click("benchmark.run", person)
    window.wait_for("a result", has_a_finished_run, _LONGEST_RUN_S)
    return time.monotonic() - began_s


def _is_loading(state: dict[str, Any]) -> bool:
    return state["installation"].startswith("Downloading")


def _is_installing(state: dict[str, Any]) -> bool:
    return state["installation"].startswith("Installing") or "PyTorch: ready" in state["status"]


def expect_nothing_runs(pc: InstalledPc) -> None:
    """Wait until no process of the program is left.

    Raises:
        FailedError: one is.
    """
    if not wait_until(lambda: not pc.running(), _LONGEST_END_S):
        raise FailedError(f"left after the window was closed: {pc.running()}")
