"""The options of ``gpu-studio race``; every mistake gets a one-sentence error."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.cli.bench_options import parse_budget, parse_devices
from gpu_studio.cli.status import WrongUseError
from gpu_studio.core.benchmark.sizes import parse_sizes
from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import parse_dtypes

if TYPE_CHECKING:
    import argparse

    from gpu_studio.cli.parser import Commands
    from gpu_studio.cli.race import RaceRequest

_MOST_THREADS = 4096


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    race = commands.add_parser(
        "race",
        help="let the CPU and the GPU draw the same picture, one after the other",
        description="Let the CPU and your card draw the same picture, one after the other, and "
        "see which is faster. Without a card, one CPU thread races all of them.",
        allow_abbrev=False,
    )
    race.add_argument(
        "picture", nargs="?", metavar="PICTURE",
        help="learn (arithmetic), paint (launch cost) or grow (memory bandwidth)",
    )  # fmt: skip
    race.add_argument("--size", metavar="N", help="the size (default: the picture's own)")
    race.add_argument(
        "--device", metavar="D[,D…]",
        help="cpu, cuda:0, … (default: the CPU and the first card that PyTorch can use)",
    )  # fmt: skip
    race.add_argument(
        "--threads", metavar="N[,N…]",
        help="CPU threads; each number is a contestant (default: all)",
    )  # fmt: skip
    race.add_argument("--dtype", metavar="T[,T…]", help="float32, float16, …; each is a contestant")
    race.add_argument(
        "--own-kernel", action="store_true",
        help="let each card also paint with a custom CUDA kernel (only paint)",
    )  # fmt: skip
    race.add_argument(
        "--together", action="store_true",
        help="let all run at the same time, for show: they disturb each other, so no verdict",
    )  # fmt: skip
    race.add_argument(
        "--budget-s", metavar="S", help="the longest time of a contestant in seconds (default: 15)"
    )
    race.add_argument(
        "--save", metavar="FILE", help="save the result as a picture: a PNG that can be raced again"
    )
    race.add_argument(
        "--record", metavar="FILE", help="record every event to FILE; any PC can replay it"
    )
    race.add_argument(
        "--record-frames", action="store_true", help="keep the pictures in the recording, too"
    )
    race.add_argument("--json", action="store_true", help="print JSON, one event per line")
    race.add_argument("--no-history", action="store_true", help="do not keep the results")
    race.set_defaults(run=_run)


def _run(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.bench_lists import history
    from gpu_studio.cli.bench_recording import check_place
    from gpu_studio.cli.race import run_race

    request = _request(options)
    save_to = None
    if options.save is not None:
        save_to = check_place(Path(options.save))
        if save_to.suffix.lower() != ".png":
            raise WrongUseError(f"“{save_to.name[:40]}” is not a picture: use the extension .png.")
    if options.record_frames and options.record is None:
        raise WrongUseError("--record-frames needs a recording: add --record FILE.")
    return run_race(
        request,
        log_path,
        as_json=options.json,
        kept=None if options.no_history else history(),
        save_to=save_to,
        record_to=check_place(Path(options.record)) if options.record else None,
        records_frames=options.record_frames,
    )


def _request(options: argparse.Namespace) -> RaceRequest:
    from gpu_studio.cli.race import RaceRequest
    from gpu_studio.core.race.pictures import DEFAULT_BUDGET_S, PICTURES

    names = [picture.name for picture in PICTURES]
    if options.picture not in names:
        named = f"“{options.picture[:20]}” is not a picture" if options.picture else "Name one"
        raise WrongUseError(f"{named}: choose {', '.join(names)}.")
    kernels = [picture.name for picture in PICTURES if picture.race and picture.race.own_kernel]
    if options.own_kernel and options.picture not in kernels:
        raise WrongUseError(
            f"{options.picture} has no custom CUDA kernel: choose {', '.join(kernels)}, or leave "
            "--own-kernel out."
        )
    try:
        sizes = parse_sizes(options.size) if options.size is not None else [None]
        dtypes = parse_dtypes(options.dtype) if options.dtype is not None else ["float32"]
    except StudioError as error:
        raise WrongUseError(str(error)) from error
    if len(sizes) != 1:
        raise WrongUseError("A race has one size: give --size one number.")
    budget_s = DEFAULT_BUDGET_S if options.budget_s is None else parse_budget(options.budget_s)
    return RaceRequest(
        picture=options.picture,
        size=sizes[0],
        devices=parse_devices(options.device),
        threads=_parse_threads(options.threads),
        dtypes=tuple(dtypes),
        own_kernel=options.own_kernel,
        together=options.together,
        budget_s=budget_s,
    )


def _parse_threads(text: str | None) -> tuple[int, ...] | None:
    if text is None:
        return None
    numbers = text.replace(",", " ").split()
    threads = [int(number) for number in numbers if number.isascii() and number.isdecimal()]
    if not numbers or len(threads) < len(numbers) or not _are_in_range(threads):
        raise WrongUseError(f"“{text[:20]}” is no number of threads: give 1, 2, …")
    return tuple(dict.fromkeys(threads))


def _are_in_range(threads: list[int]) -> bool:
    return all(1 <= number <= _MOST_THREADS for number in threads)
