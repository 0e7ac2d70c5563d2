"""The options of ``gpu-studio bench``; every mistake gets a one-sentence error."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.cli.parser import device_address
from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.benchmark.sizes import parse_sizes, parse_sweep
from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import parse_dtypes

if TYPE_CHECKING:
    import argparse

    from gpu_studio.cli.bench import BenchRequest
    from gpu_studio.cli.parser import Commands

_LONGEST_BUDGET_S = 3600.0
_USUAL_BUDGET_S = 2.0
PRESETS = ("gt1030",)


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    bench = commands.add_parser(
        "bench",
        help="time a workload on the CPU and on your cards",
        description="Time a workload on the CPU and on your cards, and see which is faster.",
        allow_abbrev=False,
    )
    bench.add_argument("workload", nargs="?", metavar="WORKLOAD", help="the workload; see --list")
    _add_what(bench)
    _add_how(bench)
    _add_output(bench)
    _add_instead(bench)
    bench.set_defaults(run=_run)


def _add_output(bench: argparse.ArgumentParser) -> None:
    bench.add_argument("--json", action="store_true", help="print JSON, one event per line")
    bench.add_argument(
        "--export", metavar="FILE", help="write the results to FILE: .csv, .json, .md or .txt"
    )
    bench.add_argument(
        "--record", metavar="FILE",
        help="record every event to FILE; any PC can replay it",
    )  # fmt: skip
    bench.add_argument("--no-history", action="store_true", help="do not keep the results")


def _add_instead(bench: argparse.ArgumentParser) -> None:
    """Add the options that run nothing."""
    bench.add_argument(
        "--replay", metavar="FILE",
        help="replay the runs in FILE, a recording or saved --json output, then exit",
    )  # fmt: skip
    bench.add_argument(
        "--at-once", action="store_true", help="with --replay: do not wait between events"
    )
    bench.add_argument("--list", action="store_true", help="list the workloads and exit")
    bench.add_argument(
        "--history",
        action="store_true",
        help="list the kept runs with their keys, then exit",
    )
    bench.add_argument(
        "--rename", nargs=2, metavar=("KEY", "NAME"),
        help="name a kept run (an empty name removes it), then exit",
    )  # fmt: skip
    bench.add_argument(
        "--delete", action="append", metavar="KEY",
        help="delete a kept run permanently, then exit; repeatable",
    )  # fmt: skip
    bench.add_argument(
        "--import", metavar="FILE", dest="import_from",
        help="add the results in FILE (from another PC or an export) to the history, then exit",
    )  # fmt: skip


def _add_what(bench: argparse.ArgumentParser) -> None:
    sizes = bench.add_mutually_exclusive_group()
    sizes.add_argument(
        "--size", metavar="N[,N…]",
        help="sizes, such as the sides of square matrices (default: 512,1024,2048 or the "
        "workload's own)",
    )  # fmt: skip
    sizes.add_argument(
        "--sweep", metavar="LOW:HIGH",
        help="both sizes and the powers of two between them (or a list of sizes), then finer "
        "steps around the crossover",
    )  # fmt: skip
    bench.add_argument(
        "--dtype", metavar="D[,D…]",
        help="float16, bfloat16, float32, float64 (default: float32 or the workload's own)",
    )  # fmt: skip
    bench.add_argument(
        "--device", metavar="cpu[,cuda:0…]", help="the devices to use (default: all)"
    )
    bench.add_argument(
        "--option", metavar="NAME=VALUE", action="append", default=[],
        help="an option of the workload; repeatable",
    )  # fmt: skip
    bench.add_argument(
        "--preset", metavar="gt1030",
        help="“The GT 1030 experiment”: compare this PC with a published table",
    )  # fmt: skip
    bench.add_argument(
        "--full-length", action="store_true",
        help="with --preset: time as many calls as the table; prints first how long that takes",
    )  # fmt: skip


def _add_how(bench: argparse.ArgumentParser) -> None:
    bench.add_argument(
        "--budget-s", metavar="S", default=f"{_USUAL_BUDGET_S:g}",
        help="seconds of timing per run, without warm-up (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--mode", metavar="hot|cold", default="hot",
        help="whether operands are in the cache at each call (default: %(default)s)",
    )  # fmt: skip
    bench.add_argument(
        "--with-transfers", action="store_true",
        help="also time the cards with copies to and from the GPU in each call",
    )  # fmt: skip
    bench.add_argument(
        "--sustained", action="store_true",
        help="sustained speed: load the device for 15 s first, then time it for at least 15 s",
    )  # fmt: skip
    bench.add_argument(
        "--naive", action="store_true",
        help="also show what a script without warm-up and synchronize would print",
    )  # fmt: skip


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.bench import check_export, run_bench
    from gpu_studio.cli.bench_lists import history
    from gpu_studio.cli.bench_recording import check_place

    kept = None if options.no_history else history()
    if _is_about_lists(options):
        return _run_list(options, log_path)
    export_to = check_export(Path(options.export)) if options.export else None
    if options.replay is not None or options.at_once:
        from gpu_studio.cli.bench_replay import run_replay

        return run_replay(
            _replayed_file(options), at_once=options.at_once, as_json=options.json,
            export_to=export_to,
        )  # fmt: skip
    record_to = check_place(Path(options.record)) if options.record else None
    if options.preset is not None or options.full_length:
        from gpu_studio.cli.bench_preset import run_preset

        _check_preset(options)
        return run_preset(
            log_path,
            devices=parse_devices(options.device),
            budget_s=parse_budget(options.budget_s),
            in_full_length=options.full_length,
            sustained=options.sustained,
            as_json=options.json,
            kept=kept,
            export_to=export_to,
            record_to=record_to,
        )
    return run_bench(
        _request(options), log_path, as_json=options.json, kept=kept, export_to=export_to,
        record_to=record_to,
    )  # fmt: skip


def _is_about_lists(options: argparse.Namespace) -> bool:
    asked = {
        "--list": options.list,
        "--history": options.history,
        "--rename": options.rename is not None,
        "--delete": options.delete is not None,
        "--import": options.import_from is not None,
    }
    given = [name for name, is_asked in asked.items() if is_asked]
    if len(given) > 1:
        raise WrongUseError(f"One thing at a time: leave {given[0]} or {given[1]} out.")
    return bool(given)


def _run_list(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli import bench_lists

    if options.list:
        return bench_lists.list_workloads(log_path, as_json=options.json)
    kept = bench_lists.history()
    if options.history:
        return bench_lists.list_history(kept, as_json=options.json)
    if options.rename:
        return bench_lists.rename(kept, *options.rename)
    if options.delete:
        return bench_lists.delete(kept, options.delete)
    return bench_lists.import_file(kept, Path(options.import_from))


def _replayed_file(options: argparse.Namespace) -> Path:
    if options.replay is None:
        raise WrongUseError("--at-once needs a recording: add --replay FILE.")
    asked = (
        "workload", "size", "sweep", "dtype", "device", "option", "preset", "record", "naive",
        "with_transfers", "full_length",
        "sustained",
    )  # fmt: skip
    given = next((name for name in asked if getattr(options, name)), None)
    if given is None and options.mode != "hot":
        given = "mode"
    if given is not None:
        shown = given.upper() if given == "workload" else "--" + given.replace("_", "-")
        raise WrongUseError(f"The recording already says what was run: leave {shown} out.")
    return Path(options.replay)


def _check_preset(options: argparse.Namespace) -> None:
    if options.preset is None:
        raise WrongUseError("--full-length needs a preset: add --preset gt1030.")
    if options.preset not in PRESETS:
        raise WrongUseError(
            f"There is no preset “{options.preset[:20]}”: choose {', '.join(PRESETS)}."
        )
    asked = ("workload", "size", "sweep", "dtype", "option", "with_transfers")
    given = [name for name in asked if getattr(options, name)]
    if given or options.mode != "hot":
        name = given[0] if given else "mode"
        shown = name.upper() if name == "workload" else "--" + name.replace("_", "-")
        raise WrongUseError(f"The preset already says what to run: leave {shown} out.")


def _request(options: argparse.Namespace) -> BenchRequest:
    from gpu_studio.cli.bench import BenchRequest

    if not options.workload:
        raise WrongUseError("Name a workload; “gpu-studio bench --list” shows them all.")
    try:
        sizes = None
        if options.sweep is not None:
            sizes = tuple(parse_sweep(options.sweep))
        elif options.size is not None:
            sizes = tuple(parse_sizes(options.size))
        return BenchRequest(
            workload=options.workload,
            sizes=sizes,
            is_sweep=options.sweep is not None,
            dtypes=None if options.dtype is None else tuple(parse_dtypes(options.dtype)),
            devices=parse_devices(options.device),
            budget_s=parse_budget(options.budget_s),
            options=_parse_options(options.option),
            cache=_parse_mode(options.mode),
            transfers=options.with_transfers,
            naive=options.naive,
            sustained=options.sustained,
        )
    except StudioError as error:
        raise WrongUseError(str(error)) from error


def parse_devices(text: str | None) -> tuple[str, ...] | None:
    """Return the devices in ``cpu,cuda:0``; None for no text. Raises `WrongUseError`."""
    if text is None:
        return None
    devices = tuple(dict.fromkeys(map(device_address, text.replace(",", " ").split())))
    if not devices:
        raise WrongUseError("Name a device: cpu, or a card such as cuda:0.")
    return devices


def _parse_options(entries: list[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for entry in entries:
        name, equals, value = entry.partition("=")
        if not (equals and name.strip() and value.strip()):
            raise WrongUseError(f"“{entry[:40]}” is not an option: give NAME=VALUE.")
        options[name.strip()] = value.strip()
    return options


def _parse_mode(text: str) -> str:
    if text not in ("hot", "cold"):
        raise WrongUseError(f"“{text[:20]}” is not a mode: choose hot or cold.")
    return text


def parse_budget(text: str) -> float:
    """Return a time budget in seconds; raises `WrongUseError` for anything else."""
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
