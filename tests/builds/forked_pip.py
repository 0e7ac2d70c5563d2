"""pip without the half of a second of its imports: each run is a fork of a process that has them.

The real pip answers, with the arguments and the environment of the test.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import runpy
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.builds import plan
from gpu_studio.builds.download import StoppedError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

AS_IT_IS = plan.run_pip
_LOOK_S = 0.01
if sys.platform == "linux":
    _forks = multiprocessing.get_context("forkserver")
    # With what pip imports later than at its start.
    _forks.set_forkserver_preload([
        __name__, "pip._internal.cli.main", "pip._internal.commands.configuration",
        "pip._internal.commands.install", "pip._internal.metadata.importlib",
        "pip._internal.resolution.resolvelib.resolver", "pip._vendor.distro", "plistlib", "netrc",
    ])  # fmt: skip


def forked_pip(arguments: Sequence[str], log_path: Path, is_over: Callable[[], bool]) -> list[str]:
    """Do what `plan.run_pip` does."""
    if sys.platform != "linux":
        return AS_IT_IS(arguments, log_path, is_over)
    with tempfile.NamedTemporaryFile() as answer:
        work = (list(arguments), dict(os.environ), str(log_path), answer.name)
        process = _forks.Process(target=_run, args=work)
        process.start()
        while process.exitcode is None:
            process.join(_LOOK_S)
            if is_over():
                process.kill()
                process.join()
                raise StoppedError
        return Path(answer.name).read_text(encoding="utf-8").splitlines()


def _run(arguments: list[str], environment: dict[str, str], log: str, answer: str) -> None:
    os.environ.clear()
    os.environ.update(environment | plan.environment_for(arguments))
    for number, path in ((1, answer), (2, log)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600), number)
    sys.argv = ["pip", *plan.PIP_OPTIONS, *arguments]
    with contextlib.suppress(SystemExit):
        runpy.run_module("pip", run_name="__main__", alter_sys=True)
    sys.stdout.flush()
    sys.stderr.flush()
