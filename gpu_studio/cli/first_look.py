"""The program's main job without a window: the devices, the findings, and a comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.answers import (
    NoEngineError,
    addresses,
    at_work,
    describe_beside,
    new_engine,
    read_inventory,
)
from gpu_studio.cli.bench_runs import BenchRuns, verdicts
from gpu_studio.cli.command import DONE
from gpu_studio.cli.devices import device_lines, finding_lines, missing_lines
from gpu_studio.cli.screen import Progress, print_line
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.program_form import typed

if TYPE_CHECKING:
    from pathlib import Path

_WORKLOADS = ("elementwise", "matmul")
_SIZES = (128, 512, 2048)
_BUDGET_S = 0.5
_HOW_TO_GET_THE_WINDOW = (
    "The window shows live curves and your card's memory: start GPU Studio on a desktop, or "
    "connect with “ssh -X”. “{help}” lists the terminal commands."
)


def show_first_look(log_path: Path) -> int:
    """Print this PC's devices and how the CPU and cards compare; return the exit status.

    Raises:
        StudioError: the engine does not start, or the driver does not answer.
    """
    with Progress() as progress:
        progress.show("Looking at this PC …")
        inventory = read_inventory(log_path)
    try:
        engine = new_engine(log_path)
    except NoEngineError as error:
        parts = (device_lines(inventory, None), missing_lines(inventory, str(error)))
        for part in parts:
            for line in part:
                print_line(line)
            print_line()
        print_line(_how_to_get_the_window())
        return DONE
    with at_work(engine) as work:
        work.progress.show("Starting PyTorch …")
        description = describe_beside(inventory, work.engine, work.interrupt)
        work.progress.clear()
        for lines in (device_lines, finding_lines):
            for line in lines(inventory, description):
                print_line(line)
            print_line()
        runs = BenchRuns(work)
        runs.cards = {card.address: card for card in description.cards}
        runs.make_all(
            [
                _request(workload, size, device)
                for workload in _WORKLOADS
                for size in _SIZES
                for device in addresses(description)
            ]
        )
    print_line()
    for sentence in verdicts(runs.results):
        print_line(sentence)
    print_line()
    print_line(_how_to_get_the_window())
    return runs.exit_status


def _how_to_get_the_window() -> str:
    return _HOW_TO_GET_THE_WINDOW.format(help=typed("gpu-studio --help"))


def _request(workload: str, size: int, device: str) -> RunWorkload:
    return RunWorkload(
        run_id=f"{workload}-{size}-{device}",
        workload=workload,
        device=device,
        size=size,
        dtype="float32",
        budget_s=_BUDGET_S,
    )
