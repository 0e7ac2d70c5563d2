"""Run a test suite in parallel: the tests, or those on soft cards.

There are three workers for two cores, because a third of the tests' time is spent waiting: for a
program that starts, a timer, a file. A worker that is done takes over half of what another one
still has to do, so none is alone at the end. On soft cards, a file's tests stay in one worker, so
that their cards are made once, and there is a worker per core: those tests measure. One that is
marked ``alone`` measures something that a busy neighbor would spoil: it runs after the others.
Windows has one process: every worker would start Python, Qt and PyTorch again, and we measured no
gain.
"""

from __future__ import annotations

import os
import re
import sys
from typing import TYPE_CHECKING

from studio_setup.launch import run

if TYPE_CHECKING:
    from collections.abc import Sequence

_ALONE = "alone"
_NO_TESTS = 5  # pytest's exit status if it collected none
# A worker holds Qt, and often a child with PyTorch.
_WORKER_BYTES = 1_500_000_000
_MOST_WORKERS = 8
_FLAGS = re.compile(r"-[qvlxs]+")  # one letter each, typed together
# These options need a single process: a debugger, one report, a list.
_ONE_PROCESS = (
    "-n", "--numprocesses", "--dist", "--capture", "--pdb", "--trace", "--collect-only",
    "--co", "--junit-xml", "--junitxml", "--setup-plan", "--setup-only", "--fixtures", "--markers",
    "--help", "-h", "--version", "-V", "--sw", "--stepwise",
)  # fmt: skip


def worker_count(*, needs_quiet: bool = False) -> int:
    """Return how many tests may run at once on this PC; 1 means one after the other.

    Args:
        needs_quiet: Whether some tests measure, so that none may have to wait for a core.
    """
    workers = 1
    if sys.platform != "win32":
        affinity = getattr(os, "sched_getaffinity", None)
        cores = len(affinity(0)) if affinity else os.cpu_count() or 1
        try:
            memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
        except (ValueError, OSError):
            memory_bytes = _WORKER_BYTES
        wanted = cores if needs_quiet else cores * 3 // 2
        workers = max(1, min(wanted, memory_bytes // _WORKER_BYTES, _MOST_WORKERS))
    return workers


def passes(arguments: Sequence[str], workers: int, *, needs_quiet: bool = False) -> list[list[str]]:
    """Return pytest's arguments for each of its runs.

    Args:
        arguments: The arguments that you typed. The name of a file or a test, or an option that
            needs a single process, makes it one run, exactly as typed.
        workers: How many tests may run at once.
        needs_quiet: Whether some tests are marked ``alone``.
    """
    if workers < 2 or any(map(_asks_for_one_process, arguments)):
        return [list(arguments)]
    distribution = "loadfile" if needs_quiet else "worksteal"
    together = ["-n", str(workers), "--dist", distribution, "--max-worker-restart", "0"]
    if not needs_quiet:
        return [[*arguments, *together]]
    expression, rest = _marker_expression(arguments)
    chosen = f"({expression}) and " if expression else ""
    return [
        [*rest, *together, "-m", f"{chosen}not {_ALONE}"],
        [*rest, "-m", f"{chosen}{_ALONE}"],
    ]


def run_suite(
    python: str,
    environ: dict[str, str],
    arguments: Sequence[str],
    workers: int | None = None,
    *,
    needs_quiet: bool = False,
) -> int:
    """Run the tests; return 0, or the exit status of the first run that failed.

    A failure ends the suite only if you asked for that with ``-x``.
    """
    workers = worker_count(needs_quiet=needs_quiet) if workers is None else workers
    planned = passes(arguments, workers, needs_quiet=needs_quiet)
    # The tests start Python hundreds of times. Without bytecode, each start compiles the program.
    environ = {**environ, "PYTHONDONTWRITEBYTECODE": ""}
    statuses = []
    for options in planned:
        status = run([python, "-m", "pytest", *options], environ)
        statuses.append(status)
        if status not in (0, 1, _NO_TESTS) or (status == 1 and _ends_early(arguments)):
            break
    if all(status == _NO_TESTS for status in statuses):
        return _NO_TESTS
    return next((status for status in statuses if status not in (0, _NO_TESTS)), 0)


def _asks_for_one_process(argument: str) -> bool:
    if not argument.startswith("-"):
        return "::" in argument or argument.endswith(".py")
    if _FLAGS.fullmatch(argument):
        return "s" in argument  # shows what tests print, as they print it
    option = argument.split("=", 1)[0]
    return option in _ONE_PROCESS or (argument[:2] == "-n" and argument[2:].isalnum())


def _ends_early(arguments: Sequence[str]) -> bool:
    return any(
        argument == "--exitfirst"
        or argument.startswith("--maxfail")
        or (_FLAGS.fullmatch(argument) is not None and "x" in argument)
        for argument in arguments
    )


def _marker_expression(arguments: Sequence[str]) -> tuple[str, list[str]]:
    """Split the value of ``-m`` from the rest; pytest uses only the last one."""
    expression, rest = "", []
    waiting = iter(arguments)
    for argument in waiting:
        if argument == "-m":
            expression = next(waiting, "")
        elif argument.startswith("-m") and not argument.startswith("--"):
            expression = argument[2:]
        else:
            rest.append(argument)
    return expression, rest
