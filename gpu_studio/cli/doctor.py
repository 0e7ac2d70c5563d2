"""``gpu-studio doctor``: whether PyTorch can use this PC's cards; if not, why, and what next."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path

import msgspec

from gpu_studio.cli.answers import CommandEngine, Interrupt
from gpu_studio.cli.command import DONE, FAILED, JSON_OBJECT, Command, Option, WrongUseError
from gpu_studio.cli.engines import HeldEngineError, NoEngineError, describe_beside, new_engine
from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import Progress, Typed, print_json, print_line
from gpu_studio.cli.sensors import SensorWatch
from gpu_studio.core.devices.devices import Inventory
from gpu_studio.core.devices.facts import identity_line
from gpu_studio.core.devices.finding import Finding, findings_value, is_usable
from gpu_studio.core.devices.findings import find
from gpu_studio.core.devices.torch_facts import PcProbed
from gpu_studio.core.failure import StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed
from gpu_studio.core.notice import Tone
from gpu_studio.core.program_form import OF_ANOTHER_PC
from gpu_studio.engine.devices.probe_client import probe_pc

_LOAD_S = 0.6  # three readings long
_STYLES = {"[ok": "green", "[warning": "yellow", "[problem": "bold red"}
_MARKS = {
    Tone.GOOD: "[ok]     ", Tone.PLAIN: "[note]   ", Tone.AMBER: "[warning]",
    Tone.FAILURE: "[problem]",
}  # fmt: skip


def _run(options: argparse.Namespace, log_path: Path) -> int:
    """Print the findings, worst first; return 0 if PyTorch can use a card, otherwise 1."""
    if options.everywhere is not None:
        from gpu_studio.cli.everywhere import look_everywhere  # only with its option

        return look_everywhere(options, log_path)
    if options.run_kernel:
        raise WrongUseError("--run belongs to --everywhere.")
    with (
        Progress() as progress,
        Interrupt().recorded() as interrupt,
        SensorWatch(log_path) as watch,
    ):
        progress.show("Looking at this PC …")
        inventory = watch.inventory()
        progress.show("Asking PyTorch …")
        engine, absence = None, ""
        try:
            engine = _ask_engine(inventory, interrupt, log_path)
        except HeldEngineError:
            inventory = _silent(inventory)
        except NoEngineError as error:
            absence = str(error)
        probe = None
        has_cards = any(card.is_cudas for card in inventory.cards)
        has_cuda = has_cards and engine is not None and engine.cuda_build
        if has_cuda and not options.no_kernel and TARGET.pc is None:
            progress.show("Running a small kernel on each card …")
            probe = probe_pc(log_path, load_s=_LOAD_S, is_over=lambda: interrupt.is_asked)
        if interrupt.is_asked:
            raise KeyboardInterrupt
        readings = watch.readings()
    findings = find(
        inventory, engine, probe=probe, readings=readings, absence=absence, system=TARGET.system,
        program=OF_ANOTHER_PC if TARGET.pc is not None else None,
    )  # fmt: skip
    if options.json:
        print_json("findings", findings_value(findings))
    else:
        for line in (*identity_lines(inventory, engine, probe), *finding_lines(findings)):
            print_line(line, style=_STYLES.get(line.split("]")[0], ""))
    return DONE if is_usable(findings) else FAILED


def finding_lines(findings: Sequence[Finding]) -> Iterator[str]:
    """Yield the findings as terminal lines, each with its evidence and next step."""
    for finding in findings:
        yield f"{_MARKS[finding.tone]} {finding.sentence}"
        if finding.detail:
            yield f"          ({finding.code}: {finding.detail})"
        if finding.command:
            where = f" on {TARGET.pc.name}" if TARGET.pc is not None else ""
            yield Typed(f"          next{where}: {finding.command}")


def identity_lines(
    inventory: Inventory, engine: EngineDescribed | None, probe: PcProbed | None
) -> Iterator[str]:
    """Yield each card with its identifiers, then the versions that the findings rest on."""
    for card in inventory.cards:
        yield f"{card.short_name}: {identity_line(card)}"
    if engine is not None:
        kernel = "tested with a real kernel" if probe else "no kernel was run"
        yield f"PyTorch {engine.torch_version}, built for {engine.built_for}; {kernel}"
    yield f"Driver: {inventory.driver.version or inventory.driver.error or 'unknown'}"
    yield ""


def _ask_engine(inventory: Inventory, interrupt: Interrupt, log_path: Path) -> EngineDescribed:
    """Return the engine's description of itself."""
    try:
        engine = new_engine(log_path)
        with closing(engine), Progress() as progress:
            return describe_beside(inventory, CommandEngine(engine, interrupt, progress))
    except (HeldEngineError, NoEngineError):
        raise
    except StudioError as error:
        message = f"PyTorch did not start: {error}"
        raise StudioError(error.kind, message) from error


def _silent(inventory: Inventory) -> Inventory:
    driver = msgspec.structs.replace(inventory.driver, is_silent=True)
    return msgspec.structs.replace(inventory, driver=driver)


_NO_KERNEL = Option(
    "--no-kernel", "check versions and capabilities only; creates no CUDA context",
    action="store_true",
)  # fmt: skip
_EVERYWHERE = Option(
    "--everywhere",
    "look at every PyTorch on this PC, or in these folders, and say which one is wrong for your "
    "card; only reads",
    nargs="*", metavar="FOLDER",
)  # fmt: skip
_RUN = Option(
    "--run", "with --everywhere: run a small kernel in each Python as well",
    dest="run_kernel", action="store_true",
)  # fmt: skip

COMMAND = Command(
    about="Checks whether PyTorch can use your cards, and says what to do if it cannot. Runs a "
    "real kernel on each card, in a separate process. Exit status: 0 if PyTorch can use a card, "
    "otherwise 1.",
    run=_run,
    options=(_NO_KERNEL, _EVERYWHERE, _RUN),
    json=JSON_OBJECT,
)
