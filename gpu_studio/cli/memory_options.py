"""The options of ``gpu-studio memory``: explain, oom, fit and free."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.parser import OneLineParser, device_address
from gpu_studio.cli.status import WrongUseError

if TYPE_CHECKING:
    import argparse
    from pathlib import Path

    from gpu_studio.cli.parser import Commands
    from gpu_studio.core.memory.training import TrainingPlan

_MOST_MIB = 1 << 30
_DEVICE_HELP = "a card such as cuda:0, or a modeled card: model:1996 has 1996 MiB"
_CONF_HELP = "the allocator's options, as in PYTORCH_CUDA_ALLOC_CONF"


def add_command(commands: Commands) -> None:
    """Add the command to the parser."""
    memory = commands.add_parser(
        "memory",
        help="explain an out-of-memory error, cause one safely, see what fits, empty the cache",
        description="See where a card's memory goes: explain an out-of-memory error, cause one "
        "safely, see what fits, or see what empty_cache gives back.",
        allow_abbrev=False,
    )
    parts = memory.add_subparsers(
        dest="part", metavar="explain|oom|fit|free", parser_class=OneLineParser, required=True
    )
    explain = parts.add_parser(
        "explain", help="explain an out-of-memory error", allow_abbrev=False,
        description="Explain a PyTorch out-of-memory error, and what to try first.",
    )  # fmt: skip
    explain.add_argument("file", metavar="FILE", help="a file with the error, or - for stdin")
    explain.add_argument(
        "--last", action="store_true", help="explain the last of several errors, not the first"
    )
    explain.add_argument("--json", action="store_true", help="print the numbers as one JSON object")
    explain.set_defaults(run=_explain)
    _add_oom(parts)
    _add_fit(parts)
    _add_free(parts)


def _add_free(parts: Commands) -> None:
    free = parts.add_parser(
        "free", help="see what empty_cache gives back to the driver", allow_abbrev=False,
        description="Put two matrices and their product on a card, drop them, and see how much "
        "memory PyTorch keeps until torch.cuda.empty_cache() gives it back.",
    )  # fmt: skip
    free.add_argument("--device", metavar="D", help="a card such as cuda:0")
    free.add_argument("--size", metavar="N", default="2048", help="the side of the matrices (2048)")
    free.add_argument("--json", action="store_true", help="print JSON, one event per line")
    free.set_defaults(run=_free)


def _free(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.memory import free_cache
    from gpu_studio.core.tensors import LARGEST_SIZE

    if not options.device:
        raise WrongUseError("Name a card with --device, such as cuda:0.")
    size = _whole_number("size", options.size, 1, LARGEST_SIZE) or 1
    return free_cache(device_address(options.device), size, log_path, as_json=options.json)


def _add_oom(parts: Commands) -> None:
    oom = parts.add_parser(
        "oom", help="run an experiment of the memory lab", allow_abbrev=False,
        description="Run an experiment of the memory lab. Without --budget-mib, PyTorch may "
        "reserve three quarters of the free memory, or all of it on a modeled card.",
    )  # fmt: skip
    oom.add_argument("--preset", metavar="NAME", help="the experiment; see --list")
    oom.add_argument("--device", metavar="D", help=_DEVICE_HELP)
    oom.add_argument("--budget-mib", metavar="N", help="the most memory PyTorch may reserve")
    oom.add_argument(
        "--whole-card", action="store_true",
        help="no budget: a desktop on the card may stutter or lose windows",
    )  # fmt: skip
    oom.add_argument("--conf", metavar="TEXT", default="", help=_CONF_HELP)
    oom.add_argument("--size", metavar="N", default="1024", help="custom: the first tensor's side")
    oom.add_argument(
        "--count", metavar="N", help="custom: number of tensors (default: until it fails)"
    )
    oom.add_argument("--dtype", metavar="D", default="float32", help="custom: the dtype")
    oom.add_argument("--growth", metavar="N", default="0", help="custom: growth of each next side")
    oom.add_argument(
        "--free-every-second", action="store_true", help="custom: drop every second tensor"
    )
    oom.add_argument("--snapshot", metavar="FILE", default="", help="write a memory snapshot")
    oom.add_argument("--json", action="store_true", help="print JSON, one event per line")
    oom.add_argument("--list", action="store_true", help="list the experiments and exit")
    oom.set_defaults(run=_oom)


def _add_fit(parts: Commands) -> None:
    fit = parts.add_parser(
        "fit", help="see what fits on a card", allow_abbrev=False,
        description="See what fits on a card: the largest matrix, the largest batch of the sample "
        "network, and a network with a given number of parameters.",
    )  # fmt: skip
    fit.add_argument("--device", metavar="D", help=_DEVICE_HELP)
    fit.add_argument(
        "--parameters", metavar="N", default="1e9", help="parameter count (default: %(default)s)"
    )
    fit.add_argument("--dtype", metavar="D", default="float32", help="default: %(default)s")
    fit.add_argument(
        "--optimizer", metavar="O", default="adam",
        help="adam, adamw, sgd or sgd_momentum (default: %(default)s)",
    )  # fmt: skip
    fit.add_argument(
        "--implementation", metavar="I", default="foreach",
        help="the optimizer's step: foreach (PyTorch's default on a card), fused or for_loop",
    )  # fmt: skip
    fit.add_argument(
        "--masters", action="store_true",
        help="the optimizer keeps float32 copies of a float16 or bfloat16 network",
    )  # fmt: skip
    fit.add_argument("--conf", metavar="TEXT", default="", help=_CONF_HELP)
    fit.add_argument("--json", action="store_true", help="print one JSON object")
    fit.add_argument("--list", action="store_true", help="list the modeled cards and exit")
    fit.set_defaults(run=_fit)


def _explain(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.memory import explain_file

    return explain_file(options.file, last=options.last, as_json=options.json)


def _oom(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.memory import list_presets, run_oom
    from gpu_studio.core.memory.experiment import check_experiment
    from gpu_studio.core.memory.modelled_cards import needs_budget
    from gpu_studio.core.messages.memory_messages import AllocationPlan, RunMemoryExperiment
    from gpu_studio.core.tensors import LARGEST_SIZE

    if options.list:
        return list_presets(as_json=options.json)
    if not options.preset:
        raise WrongUseError("Name a preset; “gpu-studio memory oom --list” shows them all.")
    budget_mib = _whole_number("budget in MiB", options.budget_mib, 1, _MOST_MIB)
    plan = None
    if options.preset == "custom":
        plan = AllocationPlan(
            size=_whole_number("size", options.size, 1, LARGEST_SIZE) or 1,
            count=_whole_number("count", options.count, 1, 1_000_000),
            dtype=options.dtype,
            frees_every_second=options.free_every_second,
            growth=_whole_number("growth", options.growth, 0, LARGEST_SIZE) or 0,
        )
    device = _device(options.device)
    request = RunMemoryExperiment(
        preset=options.preset,
        device=device,
        plan=plan,
        budget_bytes=None if budget_mib is None else budget_mib << 20,
        whole_card=options.whole_card or (budget_mib is None and not needs_budget(device)),
        snapshot_path=options.snapshot,
    )
    _checked(lambda: check_experiment(request))
    _check_conf(options.conf)
    return run_oom(request, options.conf, log_path, as_json=options.json)


def _fit(options: argparse.Namespace, log_path: Path) -> int:
    from gpu_studio.cli.memory import list_cards, show_fit
    from gpu_studio.core.tensors import DTYPES

    if options.list:
        return list_cards(as_json=options.json)
    if options.dtype not in DTYPES:
        raise WrongUseError(
            f"“{options.dtype[:20]}” is not a supported dtype: choose {', '.join(DTYPES)}."
        )
    _check_conf(options.conf)
    return show_fit(
        _device(options.device), _parameters(options.parameters), options.dtype, options.conf,
        log_path, _training_plan(options), as_json=options.json,
    )  # fmt: skip


def _training_plan(options: argparse.Namespace) -> TrainingPlan:
    from gpu_studio.core.memory.training import (
        HALF_TYPES,
        IMPLEMENTATIONS,
        OPTIMIZERS,
        TrainingPlan,
    )

    for text, known in ((options.optimizer, OPTIMIZERS), (options.implementation, IMPLEMENTATIONS)):
        if text not in known:
            raise WrongUseError(f"“{text[:20]}” is unknown: choose {', '.join(known)}.")
    if options.masters and options.dtype not in HALF_TYPES:
        raise WrongUseError(f"--masters needs --dtype {' or '.join(HALF_TYPES)}.")
    return TrainingPlan(
        optimizer=options.optimizer,
        implementation=options.implementation,
        has_masters=options.masters,
    )


def _device(text: str | None) -> str:
    from gpu_studio.core.memory.modelled_cards import card_at, is_modelled

    if not text:
        raise WrongUseError(f"Name a device: {_DEVICE_HELP}.")
    if is_modelled(text):
        _checked(lambda: card_at(text))
    return device_address(text)


def _checked(check: object) -> None:
    from gpu_studio.core.failure import StudioError

    assert callable(check)
    try:
        check()
    except StudioError as error:
        raise WrongUseError(str(error)) from error


def _check_conf(conf: str) -> None:
    from gpu_studio.core.memory.allocator.options import parse_configuration

    try:
        parse_configuration(conf)
    except ValueError as error:
        raise WrongUseError(f"These allocator options cannot be used: {error}.") from error


def _whole_number(name: str, text: str | None, least: int, largest: int) -> int | None:
    if text is None:
        return None
    is_number = text.isascii() and text.isdecimal() and len(text) <= 18
    if not is_number or not least <= int(text) <= largest:
        raise WrongUseError(
            f"“{text[:20]}” is not a {name}: give a whole number from {least} to {largest}."
        )
    return int(text)


def _parameters(text: str) -> int:
    from gpu_studio.core.memory.fit import MOST_PARAMETERS

    try:
        number = float(text)
    except ValueError:
        number = 0.0
    if not 1 <= number <= MOST_PARAMETERS:
        raise WrongUseError(
            f"“{text[:20]}” is not a number of parameters: give 1 to {MOST_PARAMETERS:g}, such as "
            "1e9."
        )
    return round(number)
