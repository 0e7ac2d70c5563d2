"""The options of ``gpu-studio bench``, read with one sentence for every mistake."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.failure import StudioError
from gpu_studio.core.sizes import parse_dtypes, parse_sizes

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands

_LONGEST_BUDGET_S = 3600.0


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    bench = commands.add_parser(
        "bench",
        help="time a workload on the CPU and on the cards",
        description="Time a workload on the CPU and on the cards, and say which wins.",
        allow_abbrev=False,
    )
    bench.add_argument("workload", nargs="?", metavar="WORKLOAD", help="what to run; see --list")
    bench.add_argument(
        "--size", metavar="N[,N…]", default="512,1024,2048",
        help="sides of the square matrices (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--dtype", metavar="D[,D…]", default="float32",
        help="float16, bfloat16, float32, float64 (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--device", metavar="cpu[,cuda:0…]", help="where to run (default: everywhere)"
    )
    bench.add_argument(
        "--budget-s", metavar="S", default="2",
        help="seconds of timing for each run, beside its warm-up (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument("--json", action="store_true", help="one event a line on standard output")
    bench.add_argument("--list", action="store_true", help="list the workloads and end")
    bench.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.bench import BenchRequest, list_workloads, run_bench

    if options.list:
        return list_workloads(log_path, as_json=options.json)
    if not options.workload:
        raise WrongUseError("Name a workload; “gpu-studio bench --list” shows those there are.")
    try:
        request = BenchRequest(
            workload=options.workload,
            sizes=tuple(parse_sizes(options.size)),
            dtypes=tuple(parse_dtypes(options.dtype)),
            devices=_parse_devices(options.device),
            budget_s=_parse_budget(options.budget_s),
        )
    except StudioError as error:
        raise WrongUseError(str(error)) from error
    return run_bench(request, log_path, as_json=options.json)


def _parse_devices(text: str | None) -> tuple[str, ...] | None:
    if text is None:
        return None
    devices = tuple(dict.fromkeys(text.replace(",", " ").split()))
    if not devices:
        raise WrongUseError("Name a device: cpu, or a card such as cuda:0.")
    return devices


def _parse_budget(text: str) -> float:
    try:
        budget_s = float(text)
    except ValueError:
        budget_s = math.nan
    if not 0 < budget_s <= _LONGEST_BUDGET_S:
        raise WrongUseError(
            f"“{text[:20]}” is not a time budget: give seconds, more than 0 and at most "
            f"{_LONGEST_BUDGET_S:.0f}."
        )
    return budget_s
