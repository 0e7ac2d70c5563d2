"""Describes the cards of a soft PC, and keeps the files by which a test steers them.

A :class:`SoftPc` is a folder with two files: ``pc.conf``, which the stand-ins read again whenever
it changes, and ``usage``, a table that every process with a CUDA context writes. A child process
sees the cards when it is started with :attr:`SoftPc.env`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import uuid as uuids
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.softcards.build import CannotBuildError, build, torch_cuda
from tests.softcards.fields import MIB as MIB
from tests.softcards.fields import fields_of
from tests.softcards.usage import MAX_CARDS, ProcessUse, UsageTable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

NOT_AVAILABLE = 2**64 - 1
"""What NVML answers for a number it cannot tell."""

DRIVERS = {13: ("580.95.05", 13000), 12: ("570.86.15", 12080)}
"""By CUDA major version: a driver that fits, and the newest CUDA version it runs."""

_NAMESPACE = uuids.UUID("6b2f7b0e-6a0a-4c38-9d8e-2f6b9f1c7a11")


@dataclass(frozen=True)
class Other:
    """A process outside the soft PC that holds memory on a card (an X server, say)."""

    pid: int
    size_bytes: int
    graphics: bool = False


@dataclass(frozen=True)
class Card:
    """A card as CUDA and NVML tell it.

    Attributes:
        compute_capability: "6.1".
        mib: memory that CUDA sees, MiB.
        nvml_mib: memory on the board, MiB; by default ``mib`` rounded up to whole GiB.
        sms: multiprocessors.
        uuid: "GPU-…"; by default made from name and bus id.
        pci_bus_id: "00000000:01:00.0"; by default the next free bus.
        kernel_ms: time a launch keeps its stream busy.
        context_mib: what a CUDA context of a process takes.
        other_mib: memory that no process in NVML's list holds.
        host_copy_mb_s, device_copy_mb_s: bandwidths; 0 makes copies take only their real time.
        sensors: NVML's numbers by key of the configuration (see README.md), over the defaults:
            "auto" follows what CUDA does, None is not supported by the card.
    """

    name: str
    compute_capability: str
    mib: int
    sms: int
    nvml_mib: int | None = None
    uuid: str | None = None
    pci_bus_id: str | None = None
    clock_mhz: int = 1468
    memory_clock_mhz: int = 3004
    bus_width_bits: int = 64
    l2_kib: int = 512
    kernel_ms: float = 0.005
    context_mib: float = 60
    other_mib: float = 0
    others: tuple[Other, ...] = ()
    host_copy_mb_s: int = 6000
    device_copy_mb_s: int = 40000
    peer_access: bool = False
    sensors: Mapping[str, int | str | None] = field(default_factory=dict)

    @property
    def capability(self) -> int:
        """61 for compute capability 6.1, 120 for 12.0."""
        major, minor = self.compute_capability.split(".")
        return int(major) * 10 + int(minor)


def _written(value: Any) -> str:
    """A value as the configuration spells it: bytes that are no plain text are escaped."""
    raw = value if isinstance(value, bytes) else str(value).encode()
    plain = (chr(b) if 32 <= b < 127 and b != 92 else f"\\x{b:02x}" for b in raw)
    return "".join(plain)


class SoftPc:
    """A running soft PC. Use it as a context manager, or call :meth:`close`.

    Attributes:
        cards: in PCI bus order, with `uuid` and `pci_bus_id` filled in; an index into it is the
            card's NVML index.
        env: the whole environment for a child process.
    """

    def __init__(
        self,
        cards: Sequence[Card],
        cuda: str,
        env: Mapping[str, str] | None = None,
        driver_version: str | None = None,
        cuda_driver: int | None = None,
    ) -> None:
        self.cuda_major = int(cuda.split(".")[0])
        self._built = build(self.cuda_major)
        self.folder = Path(tempfile.mkdtemp(prefix="soft-pc-"))
        self.cards = _placed(cards)
        default_version, default_cuda = DRIVERS[self.cuda_major]
        self._system: dict[str, Any] = {
            "driver_version": driver_version or default_version,
            "cuda_driver": cuda_driver or default_cuda,
        }
        self._faults: list[str] = []
        self._fields = [_identified(card) for card in self.cards]
        self._others = [list(card.others) for card in self.cards]
        self._usage = UsageTable(self.folder / "usage")
        self._write()
        self.env = self._environment(env or {})

    def __enter__(self) -> SoftPc:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Removes the PC's files; processes that still run then see no cards."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _environment(self, more: Mapping[str, str]) -> dict[str, str]:
        env = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("CUDA_", "PYTORCH_", "NVIDIA_", "SOFT_CARDS_"))
        }
        # Names, not paths: LD_PRELOAD cannot hold a path with a space.
        env["LD_PRELOAD"] = ":".join(path.name for path in self._built.preload)
        paths = [str(self._built.folder), *filter(None, [env.get("LD_LIBRARY_PATH")])]
        env["LD_LIBRARY_PATH"] = ":".join(paths)
        env["SOFT_CARDS_DIR"] = str(self.folder)
        return {**env, **more}

    def _write(self) -> None:
        lines = [f"{key} = {_written(value)}" for key, value in self._system.items()]
        lines += [f"fault = {fault}" for fault in self._faults]
        for fields, others in zip(self._fields, self._others, strict=True):
            lines.append("[card]")
            lines += [f"{key} = {_written(value)}" for key, value in fields.items()]
            lines += [
                f"process = {other.pid} {other.size_bytes} {'G' if other.graphics else 'C'}"
                for other in others
            ]
        new = self.folder / "pc.conf.new"
        new.write_text("\n".join(lines) + "\n")
        new.replace(self.folder / "pc.conf")
        self._usage.raise_generation()

    def set(self, card: int = 0, **fields: int | str | bytes | None) -> None:
        """Changes fields of a card while programs run; None removes one (not supported)."""
        for key, value in fields.items():
            if value is None:
                self._fields[card].pop(key, None)
            else:
                self._fields[card][key] = value
        self._write()

    def add(self, card: Card) -> Card:
        """Puts a card behind the others while programs run; CUDA sees it in the next process."""
        (placed,) = _placed([card], first=len(self.cards) + 1)
        self.cards = (*self.cards, placed)
        self._fields.append(_identified(placed))
        self._others.append(list(placed.others))
        self._write()
        return placed

    def take_out(self, card: int) -> None:
        self.cards = (*self.cards[:card], *self.cards[card + 1 :])
        del self._fields[card], self._others[card]
        self._write()

    def set_others(self, card: int, *others: Other) -> None:
        """Replaces the processes outside the soft PC that hold memory on a card."""
        self._others[card] = list(others)
        self._write()

    def fault(
        self,
        name: str,
        code: int = 0,
        *,
        card: int | None = None,
        after: int = 0,
        sticky: bool = False,
        late: bool = False,
        hang: bool = False,
        set_device: bool = False,
    ) -> None:
        """Plants a fault; each process counts the calls from when it first reads it.

        Args:
            name: an exported name of CUDA, the driver, cuBLAS or NVML, a beginning of one followed
                by "*", or "launch" for every launch however it is made.
            code: what the call returns.
            card: only on this card; calls about no card match only without it.
            after: calls that still succeed.
            sticky: the process has lost its context from then on.
            late: with "launch": the launch succeeds, and the context breaks once it has run.
            hang: the call never returns; a launch never ends.
            set_device: the sticky code also comes from cudaSetDevice and cudaGetDevice, and then
                PyTorch aborts the process: the destructor of its device guard throws.
        """
        words = [name, str(code), f"after={after}", f"card={-1 if card is None else card}"]
        flags = {"sticky": sticky or late, "late": late, "hang": hang, "set_device": set_device}
        words += [word for word, is_set in flags.items() if is_set]
        self._faults.append(" ".join(words))
        self._write()

    def clear_faults(self) -> None:
        """Takes all planted faults away. What is broken in a running process stays broken."""
        self._faults = []
        self._write()

    def processes(self) -> list[ProcessUse]:
        """Every process that has used CUDA here, those that have ended included."""
        return self._usage.processes(len(self.cards))

    def use_of(self, pid: int) -> ProcessUse:
        """What one process did.

        Raises:
            KeyError: it has not used CUDA here.
        """
        for process in self.processes():
            if process.pid == pid:
                return process
        raise KeyError(pid)

    def popen(self, argv: Sequence[str], **options: Any) -> subprocess.Popen[str]:
        """Starts a program that sees the cards; text pipes are up to the caller."""
        env = {**self.env, **options.pop("env", {})}
        return subprocess.Popen(argv, env=env, text=True, **options)

    def python(
        self, code: str, *, timeout_s: float = 400, env: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Runs Python code in a child that sees the cards; its output is captured."""
        return subprocess.run(
            [sys.executable, "-c", code],
            env={**self.env, **(env or {})},
            capture_output=True,
            text=True,
            timeout=timeout_s,
            check=False,
        )


def _identified(card: Card) -> dict[str, Any]:
    return {"uuid": card.uuid, "pci_bus_id": card.pci_bus_id, **fields_of(card)}


def _placed(cards: Sequence[Card], first: int = 1) -> tuple[Card, ...]:
    """The cards with bus ids and UUIDs, in bus order; the first free bus may be another."""
    if not 1 <= len(cards) <= MAX_CARDS:
        msg = f"a soft PC has 1 to {MAX_CARDS} cards, not {len(cards)}"
        raise ValueError(msg)
    placed = []
    for number, card in enumerate(cards, start=first):
        bus_id = card.pci_bus_id or f"00000000:{number:02X}:00.0"
        identity = card.uuid or f"GPU-{uuids.uuid5(_NAMESPACE, card.name + bus_id)}"
        values = {**vars(card), "pci_bus_id": bus_id, "uuid": identity}
        placed.append(Card(**values))
    return tuple(sorted(placed, key=lambda card: card.pci_bus_id or ""))


def soft_cards(
    cards: Sequence[Card],
    torch_cuda_version: str | None = None,
    *,
    env: Mapping[str, str] | None = None,
    driver_version: str | None = None,
    cuda_driver: int | None = None,
) -> SoftPc:
    """A soft PC with these cards, for children that run the PyTorch of this environment.

    Args:
        torch_cuda_version: CUDA version PyTorch was built with ("13.0"); by default read from the
            installed PyTorch.
        env: more variables for :attr:`SoftPc.env`, such as CUDA_DEVICE_ORDER.
        driver_version, cuda_driver: a driver other than one that fits, such as ("470.82", 11040).

    Raises:
        CannotBuildError: the stand-ins cannot be built here, with the reason.
    """
    cuda = torch_cuda_version or torch_cuda()
    if cuda is None:
        msg = "the CUDA build of PyTorch is not installed in this environment"
        raise CannotBuildError(msg)
    return SoftPc(cards, cuda, env, driver_version, cuda_driver)
