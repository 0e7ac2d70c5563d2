"""``gpu-studio memory``: run the memory lab, see what fits."""

from __future__ import annotations

import argparse
from pathlib import Path

from gpu_studio.cli import argument_types as types
from gpu_studio.cli import memory_fit, memory_replay
from gpu_studio.cli.answers import Printer, at_work
from gpu_studio.cli.command import DONE, JSON_OBJECT, Command, OneOf, Option, WrongUseError
from gpu_studio.cli.engines import new_engine
from gpu_studio.cli.screen import (
    print_json,
    print_line,
    print_list,
)
from gpu_studio.core.engine import Engine, EngineEnvironment
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.experiment import check_experiment
from gpu_studio.core.memory.modelled_cards import (
    is_modelled,
    modelled_card_table,
    modelled_cards,
    needs_budget,
)
from gpu_studio.core.memory.outcome import outcome_notice
from gpu_studio.core.memory.presets import PRESETS
from gpu_studio.core.messages.memory_messages import (
    AllocationPlan,
    MemoryRead,
    OomFinished,
    RunMemoryExperiment,
    SegmentsRead,
    StageBegan,
)
from gpu_studio.core.messages.message import Event
from gpu_studio.core.tensors import DTYPES, LARGEST_SIZE
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.memory.modelled_engine import ModelledEngine

_MOST_MIB = 1 << 30
_MOST_TENSORS = 1_000_000


def _list_experiments(options: argparse.Namespace, _log_path: Path) -> int:
    lines = (f"{preset.name:<16}{preset.title}: {preset.sentence}" for preset in PRESETS)
    print_list("presets", PRESETS, lines, as_json=options.json)
    return DONE


def _engine_for(device: str, conf: str, log_path: Path) -> Engine:
    """Return an engine for a device; it starts with these allocator options."""
    environment = EngineEnvironment(allocator_configuration=conf or None)
    if is_modelled(device):
        return ModelledEngine(environment)
    return new_engine(log_path, environment)


def _run_experiment(options: argparse.Namespace, log_path: Path) -> int:
    request, printer = _experiment(options), _Printer()
    engine = _engine_for(options.device, options.conf, log_path)
    with at_work(engine, is_json=options.json) as work:
        work.run([request], printer)
    return work.exit_status(is_done=printer.is_done)


class _Printer(Printer):
    """The stages of an experiment, and how it ended."""

    is_done = False

    def apply(self, event: Event) -> str:
        self.is_done = isinstance(event, OomFinished)
        if not isinstance(event, MemoryRead) or event.allocated_bytes is None:
            return ""
        allocated, reserved = event.allocated_bytes, event.reserved_bytes or 0
        return f"{format_bytes(allocated)} allocated, {format_bytes(reserved)} reserved"

    def as_json(self, event: Event) -> Event | None:
        return None if isinstance(event, SegmentsRead) else event

    def show(self, event: Event) -> None:
        if isinstance(event, StageBegan):
            print_line(event.sentence)
        elif isinstance(event, OomFinished):
            _print_end(event)


def _experiment(options: argparse.Namespace) -> RunMemoryExperiment:
    """Return the experiment that the options describe."""
    plan = None
    if options.preset == "custom":
        plan = AllocationPlan(
            size=options.size,
            count=options.count,
            dtype=options.dtype,
        )
    budget_mib = options.budget_mib
    request = RunMemoryExperiment(
        preset=options.preset,
        device=options.device,
        plan=plan,
        budget_bytes=None if budget_mib is None else budget_mib << 20,
        whole_card=options.whole_card or (budget_mib is None and not needs_budget(options.device)),
        snapshot_path=str(options.save or ""),
    )
    try:
        check_experiment(request)
    except StudioError as error:
        raise WrongUseError(str(error)) from error
    return request


def _print_end(finished: OomFinished) -> None:
    outcome = outcome_notice(finished)
    modelled = " (simulated; no card was used)" if finished.modelled else ""
    for stage in finished.stages:
        print_line(f"  {stage.stage}: {stage.sentence}")
    print_line(f"{outcome.sentence}{modelled}")
    print_line(outcome.detail)
    print_line(outcome.next_step)
    if finished.snapshot_path:
        print_line(f"The snapshot is in {finished.snapshot_path}.")


def _list_cards(options: argparse.Namespace, _log_path: Path) -> int:
    cards, table = modelled_cards(), modelled_card_table()
    if options.json:
        values = [
            {"name": c.name, "device": c.address, "total_bytes": c.total_bytes,
             "context_bytes": c.context_bytes}
            for c in cards
        ]  # fmt: skip
        print_json("modelled_cards", {"cards": values})
        return DONE
    for card in cards:
        context = format_bytes(card.context_bytes)
        print_line(
            f"{card.address:<14}{card.name:<30}{format_bytes(card.total_bytes)}, context {context}"
        )
    print_line()
    print_line(table.source)
    print_line(table.context_source)
    return DONE


_OOM = (
    Option(
        "--preset", "the experiment; see “memory experiments”",
        metavar="NAME", choices=[preset.name for preset in PRESETS], required=True,
    ),
    *types.LAB_CARD,
    OneOf(
        Option(
            "--budget-mib", "the most memory PyTorch may reserve",
            metavar="N", type=types.whole_number(1, _MOST_MIB),
        ),
        Option(
            "--whole-card", "no budget: a desktop on the card may stutter or lose windows",
            action="store_true",
        ),
    ),
    types.save("write a memory snapshot", ".pickle"),
    Option(
        "--size", "with --preset custom: a tensor's side (default: %(default)s)",
        metavar="N", type=types.whole_number(1, LARGEST_SIZE), default=1024,
    ),
    Option(
        "--count", "with --preset custom: number of tensors (default: until it fails)",
        metavar="N", type=types.whole_number(1, _MOST_TENSORS),
    ),
    Option(
        "--dtype", "with --preset custom: the tensors' dtype (default: %(default)s)",
        choices=DTYPES, default="float32",
    ),
)  # fmt: skip
COMMAND = Command(
    about="See where a card's memory goes: cause an out-of-memory error safely, or see what fits.",
    parts={
        "oom": Command(
            help="run an experiment of the memory lab",
            about="Run an experiment of the memory lab. Without --budget-mib, PyTorch may reserve "
            "three quarters of the free memory, or all of it on a simulated card.",
            run=_run_experiment,
            options=_OOM,
        ),
        "experiments": Command(
            help="list the experiments",
            about="List the experiments of the memory lab.",
            run=_list_experiments,
            json=JSON_OBJECT,
        ),
        "fit": memory_fit.COMMAND,
        "replay": memory_replay.COMMAND,
        "cards": Command(
            help="list the simulated cards",
            about="List the simulated cards with their memory and where it is from.",
            run=_list_cards,
            json=JSON_OBJECT,
        ),
    },
)
