"""Record the terminal's runs: to standard output with ``--json``, or to a file."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from gpu_studio.cli.other_pc import TARGET
from gpu_studio.cli.screen import note, now, print_event
from gpu_studio.cli.sensors import read_inventory
from gpu_studio.core.benchmark.recording_writer import (
    RecordedPc,
    described_for_others,
    header_of,
    is_recordable,
    recording_of,
)
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.device_name import is_cpu
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.engine_messages import EngineDescribed, RecordingHeader
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.program_version import program_title
from gpu_studio.core.user_file import write_atomically
from gpu_studio.hardware.cpu import are_cards_simulated, cpu_name

RECORDING = ".jsonl"
"""The ending of a file that becomes a recording."""


class Recorder:
    """Describes the PC that makes the runs, and writes them to a file.

    Args:
        log_path: the log file of the sensor reader, which reads the driver's version.
        as_json: whether events are printed; `begin` then prints the header first.
        path: the file for `save`; None writes none.
    """

    def __init__(self, log_path: Path, *, as_json: bool, path: Path | None) -> None:
        self._log_path, self._as_json, self._path = log_path, as_json, path
        self._header: RecordingHeader | None = None
        self._described: EngineDescribed | None = None

    def begin(
        self, described: EngineDescribed, workloads: Collection[str], devices: Collection[str]
    ) -> None:
        """Record the PC of the runs that follow.

        Args:
            described: the engine.
            workloads: the names of the workloads to run.
            devices: the addresses of the devices to use.
        """
        if not self._as_json and self._path is None:
            return
        self._described = described
        self._header = header_of(self._pc(described, devices), described, now(), program_title())
        if self._as_json:
            print_event(self._header)
            print_event(described_for_others(described, workloads))

    def save(
        self,
        runs: Sequence[Run],
        frames: Mapping[str, Sequence[FramesOpened | FrameReady]] | None = None,
    ) -> None:
        """Write the file, if there is to be one.

        Args:
            runs: the runs.
            frames: the frames to keep, as for `recording_of`.

        Raises:
            StudioError: the file cannot be written.
        """
        if self._path is None or self._header is None or self._described is None:
            return
        if not any(map(is_recordable, runs)):
            note("No run started, so there is nothing to record.")
            return
        try:
            content = recording_of(self._header, self._described, runs, frames)
            write_atomically(self._path, content)
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise StudioError(
                FailureKind.NOT_SAVED, f"Cannot write the recording to {self._path}: {reason}."
            ) from error

    def _pc(self, described: EngineDescribed, devices: Collection[str]) -> RecordedPc:
        names = {card.address: card.name for card in described.cards}
        cards = tuple(names.get(device, device) for device in sorted(devices) if not is_cpu(device))
        return RecordedPc(
            processor=processor_name(self._log_path),
            system=TARGET.system_name,
            cards=cards,
            driver_version=self._driver_version() if cards else None,
            is_simulated=are_cards_simulated() and bool(cards),
        )

    def _driver_version(self) -> str | None:
        try:
            return read_inventory(self._log_path).driver.version
        except StudioError:
            return None


def processor_name(log_path: Path) -> str:
    """Return the name of the processor of the PC that a command uses."""
    return cpu_name() if TARGET.pc is None else read_inventory(log_path).cpu.name
