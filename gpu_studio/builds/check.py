"""Tests an installed build with a real import and a real kernel, in a process of its own."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from gpu_studio.builds.child_log import ChildLog, last_words
from gpu_studio.builds.download import StoppedError
from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.record import parsed_json
from gpu_studio.core.builds.trouble import TroubleError
from gpu_studio.process.child_process import ChildProcess
from gpu_studio.process.packages_folder import variables_for

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MODULE = "gpu_studio.engine.build_check"
_POLL_S = 0.1
_LONGEST_S = 300.0  # the first import on a slow disk, with a virus scanner
_LONGEST_END_S = 2.0
_RUNTIME = re.compile(r"DLL load failed|WinError (126|127|1114)|c10\.dll|vcruntime", re.IGNORECASE)


class CheckedBuild(NamedTuple):
    """The outcome of a test.

    Attributes:
        torch_version: "2.13.0+cu126".
        runs_on_card: Whether a kernel ran on a graphics card.
        sentence: What ran, for people.
    """

    torch_version: str
    runs_on_card: bool
    sentence: str


def check_build(
    tag: str,
    folder: Path,
    log_path: Path,
    is_over: Callable[[], bool] = lambda: False,
    module: str = MODULE,
    longest_s: float = _LONGEST_S,
) -> CheckedBuild:
    """Import PyTorch from a folder and compute with it.

    Args:
        tag: The build.
        folder: Its packages.
        log_path: The file for the child's errors.
        is_over: Returns whether to stop.
        module: The child's module.
        longest_s: How long to wait.

    Raises:
        TroubleError: It does not run; a missing runtime of Windows has its own words.
        StoppedError: The user stopped.
    """
    log = ChildLog(log_path)
    child = ChildProcess(module, environment=variables_for(folder), log_path=log_path)
    try:
        waited_s = 0.0
        while child.wait(_POLL_S) is None:
            waited_s += _POLL_S
            if is_over():
                raise StoppedError
            if waited_s >= longest_s:
                detail = f"no answer within {longest_s:.0f} s"
                raise TroubleError(troubles.failed_check(tag, detail))
        line = next(child.lines(), b"")
    finally:
        child.kill()
        child.end(_LONGEST_END_S)
    try:
        answer: Any = parsed_json(line.decode("utf-8"))
        return CheckedBuild(
            str(answer["torch_version"]), bool(answer["runs_on_card"]), str(answer["sentence"])
        )
    except (ValueError, KeyError, TypeError) as error:
        raise TroubleError(_trouble(tag, last_words(log.text()))) from error


def _trouble(tag: str, detail: str) -> troubles.Trouble:
    if _RUNTIME.search(detail):
        return troubles.missing_runtime(detail)
    return troubles.failed_check(tag, detail or "its process ended without an answer")
