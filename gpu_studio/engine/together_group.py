"""A group of processes on several PCs: the one that leads it, and the part of the others.

The PC that leads has the c10d store. Each other PC's engine, at the end of a line of its own,
starts its processes by its own torchrun. A tunnel of ssh joins the loopback addresses of both PCs:
first the store's port, then gloo's (`engine.together_meeting`). Nothing is open to a network,
unless the user chose an address of this PC: then all processes meet there, without a tunnel.

torchrun's own rendezvous of several PCs is not used: it opens its store to every network, and gives
the ranks by the order of addresses, so that the first process, which takes the orders, could be on
any PC.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import socket
import tempfile
import threading
import time
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import torch.distributed as dist

from gpu_studio.core.device_name import DeviceName, address_there, pc_of
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.line_trouble import LineProblem, LineTrouble, detail_of_ssh, problem_of_ssh
from gpu_studio.core.messages.engine_messages import EngineEnded, RequestFailed
from gpu_studio.core.messages.together_messages import (
    ExchangeBackend,
    JoinTraining,
    TrainingLeft,
)
from gpu_studio.core.other_pc import LOOPBACK, SILENCE_S, ssh_program, tunnel_command
from gpu_studio.core.rendezvous import exchange_backends
from gpu_studio.engine.client import ProcessEngine
from gpu_studio.engine.device import resolve
from gpu_studio.engine.replica import ALONE, EXCHANGE, STEP, Order
from gpu_studio.engine.replica_group import ReplicaGroup, backends_for, launch
from gpu_studio.engine.together_meeting import (
    LONGEST_MEETING_S,
    READY,
    own_address_toward,
    port_key,
)
from gpu_studio.process.ssh_tunnel import SshTunnel

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from threading import Event as Flag

    from gpu_studio.core.messages.message import Event
    from gpu_studio.core.other_pc import OtherPc
    from gpu_studio.engine.replica import ReplicaAnswer
    from gpu_studio.process.child_process import ChildProcess

_log = logging.getLogger(__name__)
_LONGEST_TUNNEL_S = 20.0
_LOOK_S = 0.1
_LONGEST_LOOK_S = 2.0
_LOOK_AT_PART_S, _LONGEST_END_OF_PART_S = 0.2, 3.0
_LONGEST_CONNECT_S = 10.0


class _Member:
    """Another PC that takes part: its engine, its tunnels, and how its part ended.

    Args:
        pc: the PC.
        devices: its devices, as it calls them.
        first_rank: the rank of the first of them.
    """

    def __init__(self, pc: OtherPc, devices: tuple[str, ...], first_rank: int) -> None:
        self.pc, self.devices, self.first_rank = pc, devices, first_rank
        self.end: Event | None = None
        self.has_ended = threading.Event()
        self._engine = ProcessEngine(pc=pc)
        self._tunnels: list[SshTunnel] = []

    @property
    def ranks(self) -> range:
        return range(self.first_rank, self.first_rank + len(self.devices))

    def dig(self, store_port: int, there: Iterable[int] = (), here: Iterable[int] = ()) -> int:
        """Open a tunnel; return the port that leads to the store; see `tunnel_command`.

        Raises:
            StudioError: ssh does not open it.
        """
        ssh = ssh_program()
        if ssh is None:
            raise self._trouble(LineProblem.NO_SSH)
        tunnel = SshTunnel(
            tunnel_command(self.pc, store_port, ports_there=there, ports_here=here, ssh=ssh)
        )
        self._tunnels.append(tunnel)
        if tunnel.wait(_LONGEST_TUNNEL_S):
            assert tunnel.port_there is not None
            return tunnel.port_there
        problem = problem_of_ssh(tunnel.exit_code(), tunnel.errors)
        if problem in (LineProblem.UNKNOWN, LineProblem.NOT_OURS):
            raise StudioError(
                FailureKind.LINE_LOST,
                f"ssh opens no tunnel to {self.pc.name}, which training together needs: "
                f"{detail_of_ssh(tunnel.errors) or 'it did not answer'}. Its ssh server has to "
                "allow “AllowTcpForwarding”.",
            )
        raise self._trouble(problem)

    def start(self, request: JoinTraining, on_end: threading.Event) -> None:
        """Ask the PC to take part; `on_end` is set as soon as it no longer does."""

        def listen() -> None:
            for event in self._engine.run(request):
                if event.ends(request):
                    self.end = event
            self.has_ended.set()
            on_end.set()

        threading.Thread(target=listen, name=f"part of {self.pc.name}", daemon=True).start()

    @property
    def failure(self) -> str:
        """Why it takes part no longer, as a sentence."""
        match self.end:
            case RequestFailed():
                message = self.end.failure.message
                is_line = self.end.failure.kind is FailureKind.LINE_LOST
                return message if is_line else f"{self.pc.name}: {message}"
            case EngineEnded() | None:
                return f"The engine of {self.pc.name} ended while it took part."
        return f"A process of {self.pc.name} ended while it took part; its output is in its log."

    @property
    def failure_kind(self) -> FailureKind:
        """The kind of that."""
        if isinstance(self.end, RequestFailed):
            return self.end.failure.kind
        return FailureKind.LINE_LOST

    def close(self) -> None:
        self._engine.close()
        for tunnel in self._tunnels:
            tunnel.close()

    def _trouble(self, problem: LineProblem) -> StudioError:
        trouble = LineTrouble(problem=problem, pc=self.pc.name)
        return StudioError(FailureKind.LINE_LOST, f"{trouble.sentence} {trouble.action('HOST')}")


class TogetherGroup(ReplicaGroup):
    """A running group of several PCs; it ends with `close` or with the engine.

    Args:
        devices: one for each process; those of this PC come first, and the first one is of them.
        size: samples in the whole batch.
        pcs: how to reach the others.
        rendezvous: the address of this PC where all meet; empty for a tunnel of ssh.

    Raises:
        StudioError: the group could not start; the sentence names the PC and the cause.

    Attributes:
        is_tunneled: whether the processes meet through ssh.
    """

    def __init__(
        self, devices: Sequence[str], size: int, pcs: Sequence[OtherPc], rendezvous: str = ""
    ) -> None:
        start_s = time.perf_counter()
        self._devices, self._size, self._pcs = tuple(devices), size, pcs
        self._host, self.is_tunneled = rendezvous or LOOPBACK, not rendezvous
        first, *others = exchange_backends(
            (DeviceName.parse(one).kind for one in devices),
            backends_for(devices[0]),
            is_tunneled=self.is_tunneled,
        )
        self.backend, self.has_fallen_back = first.value, False
        try:
            self._begin()
        except StudioError as error:
            if not others or error.kind is FailureKind.LINE_LOST:
                raise
            _log.warning("%s", error)
            self.backend, self.has_fallen_back = others[0].value, True
            self._begin()
        self.start_s = time.perf_counter() - start_s

    def _begin(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gpu-studio-group-")
        self._broken = threading.Event()
        self._members = _members_of(self._devices, self._pcs)
        try:
            self._open_store()
            for member in self._members:
                self._invite(member)
            self._launcher = self._launch()
            self._lines = self._launcher.lines()
            threading.Thread(
                target=_end_with, args=(self._broken, self._launcher), name="parts of other PCs",
                daemon=True,
            ).start()  # fmt: skip
            self._meet()
            self._await_first_answer()
        except BaseException:
            self.close()
            raise

    def _open_store(self) -> None:
        family = socket.AF_INET6 if ":" in self._host else socket.AF_INET
        listening = socket.create_server((self._host, 0), family=family)
        self._store_port = int(listening.getsockname()[1])
        self._store = dist.TCPStore(  # type: ignore[attr-defined]
            self._host,
            self._store_port,
            is_master=True,
            wait_for_workers=False,
            timeout=timedelta(seconds=_LONGEST_LOOK_S),
            # Without it, the store would be open to every network.
            master_listen_fd=listening.detach(),
            use_libuv=False,  # PyTorch for Windows lacks it
        )

    def _launch(self) -> ChildProcess:
        own = [name for name in self._devices if not pc_of(name)]
        meeting = [
            f"--names={','.join(self._devices)}",
            f"--ranks={len(self._devices)}",
            f"--store-port={self._store_port}",
            f"--store-host={self._host}",
        ]
        folder = Path(self._folder.name)
        return launch(own, self._size, self.backend, folder, meeting, self._host)

    def alone_s(self, rank: int) -> float:
        """Return the seconds of a step of one process, with its part of the batch."""
        return self._timed(Order(ALONE, len(self._devices), rank))

    def exchange_s(self) -> float:
        """Return the seconds of an exchange of all gradients."""
        return self._timed(Order(EXCHANGE, len(self._devices)))

    def step_s(self, processes: int) -> float:
        """Return the seconds of one step together."""
        return self._timed(Order(STEP, processes))

    def close(self) -> None:
        """End the processes of all PCs."""
        self._broken.set()
        if hasattr(self, "_launcher"):
            super().close()
        for member in self._members:
            member.close()
        with contextlib.suppress(OSError):
            self._folder.cleanup()

    def _invite(self, member: _Member) -> None:
        port = member.dig(self._store_port) if self.is_tunneled else self._store_port
        request = JoinTraining(
            devices=member.devices,
            first_rank=member.first_rank,
            ranks=len(self._devices),
            size=self._size,
            store_port=port,
            rendezvous="" if self.is_tunneled else self._host,
            backend=ExchangeBackend(self.backend),
        )
        member.start(request, self._broken)

    def _meet(self) -> None:
        """Wait for all processes, and join their ports if a tunnel has to.

        Raises:
            StudioError: a process does not come.
        """
        deadline_s = time.monotonic() + LONGEST_MEETING_S
        ranks = reversed(range(len(self._devices)))  # those of other PCs are missing first
        ports = {rank: self._port_of(rank, deadline_s) for rank in ranks}
        for member in self._members if self.is_tunneled else ():
            there = [ports[rank] for rank in member.ranks]
            here = [port for rank, port in ports.items() if rank not in member.ranks]
            if all(map(_is_here, there)):
                continue  # the same PC under another name has them already
            member.dig(self._store_port, there, here)
        self._store.set(READY, "1")

    def _await_first_answer(self) -> None:
        """Wait until all processes have exchanged a number.

        Raises:
            StudioError: they do not.
        """
        try:
            self._receive(LONGEST_MEETING_S)
        except StudioError as error:
            if self.is_tunneled or error.kind is FailureKind.LINE_LOST:
                raise
            raise StudioError(
                FailureKind.INTERNAL,
                f"{error} All PCs came to the address, but their processes do not "
                "reach each other: a firewall may forbid it. Leave out the address to use the "
                "tunnel of ssh.",
            ) from error

    def _port_of(self, rank: int, deadline_s: float) -> int:
        key = port_key(rank)
        while not self._store.check([key]):
            if self._broken.wait(_LOOK_S) or not self._launcher.is_running:
                raise self._why()
            if time.monotonic() > deadline_s:
                raise StudioError(
                    FailureKind.INTERNAL,
                    f"{self._devices[rank]} did not begin within {LONGEST_MEETING_S:.0f} s.",
                )
        text = bytes(self._store.get(key))
        least = 1 if self.backend == ExchangeBackend.GLOO.value else 0
        if len(text) > 5 or not text.isdigit() or not least <= int(text) < 1 << 16:
            raise StudioError(
                FailureKind.INTERNAL, f"{self._devices[rank]} answered something unexpected."
            )
        return int(text)

    def _timed(self, order: Order) -> float:
        """Return the seconds that the slowest process took; one on another PC may say anything."""
        start_s = time.perf_counter()
        elapsed_s = self._ask(order).elapsed_s
        if not 0.0 < elapsed_s <= time.perf_counter() - start_s:
            raise StudioError(
                FailureKind.INTERNAL, "A PC that takes part reported a time that cannot be."
            )
        return elapsed_s

    def _receive(self, longest_s: float) -> ReplicaAnswer:
        try:
            return super()._receive(longest_s)
        except StudioError:
            # The processes notice a lost PC sooner than its line does.
            if self._broken.wait(SILENCE_S + _LONGEST_LOOK_S):
                raise self._why() from None
            raise

    def _why(self) -> StudioError:
        gone = [one for one in self._members if one.has_ended.is_set()]
        if not gone:
            sentence = "A process of this PC ended; its output is in the log."
            return StudioError(FailureKind.INTERNAL, sentence)
        return StudioError(gone[0].failure_kind, gone[0].failure)


def _end_with(broken: threading.Event, launcher: ChildProcess) -> None:
    """End the processes here as soon as another PC's have ended."""
    broken.wait()
    launcher.kill()


def join_training(request: JoinTraining, stop: Flag) -> Iterator[Event]:
    """Take part in a training that another PC leads; nothing is left running.

    It ends with the group, or with `stop`.

    Raises:
        StudioError: a device is not here, or the numbers do not fit together.
    """
    devices = [str(resolve(address)) for address in request.devices]
    if request.first_rank + len(devices) > request.ranks or request.size % request.ranks:
        raise StudioError(
            FailureKind.BAD_REQUEST, "The parts of the batch do not fit the devices that train."
        )
    address = LOOPBACK
    if request.rendezvous:
        address = _reached(request.rendezvous, request.store_port)
    if request.backend is ExchangeBackend.NCCL:
        for device in devices:
            if ExchangeBackend.NCCL.value not in backends_for(device):
                raise StudioError(FailureKind.BAD_REQUEST, f"PyTorch has no NCCL for {device}.")
    with tempfile.TemporaryDirectory(
        prefix="gpu-studio-group-", ignore_cleanup_errors=True
    ) as folder:
        meeting = [
            f"--first-rank={request.first_rank}",
            f"--ranks={request.ranks}",
            f"--store-port={request.store_port}",
            f"--store-host={request.rendezvous or LOOPBACK}",
        ]
        backend = request.backend.value
        torchrun = launch(devices, request.size, backend, Path(folder), meeting, address)
        try:
            while torchrun.is_running and not stop.wait(_LOOK_AT_PART_S):
                pass
        finally:
            with contextlib.suppress(OSError):
                torchrun.end(_LONGEST_END_OF_PART_S)
    yield TrainingLeft()


def _reached(leader: str, port: int) -> str:
    """Return the address with which this PC reaches a leader's store.

    Raises:
        StudioError: it does not.
    """
    try:
        ipaddress.ip_address(leader)
    except ValueError as error:
        message = "The leading PC sent something that is not an address."
        raise StudioError(FailureKind.BAD_REQUEST, message) from error
    try:
        with socket.create_connection((leader, port), _LONGEST_CONNECT_S):
            return own_address_toward(leader)
    except OSError as error:
        raise StudioError(
            FailureKind.BAD_REQUEST,
            f"The address of the PC that leads cannot be reached from here: "
            f"{error.strerror or 'no answer'}. Is it of a network that both PCs have? A firewall "
            "there may forbid it. Leave out the address to use the tunnel of ssh.",
        ) from error


def order_of_ranks(devices: Iterable[str]) -> list[str]:
    """Return devices in the order of their ranks: those of this PC, then PC by PC."""
    devices = list(devices)
    pcs = list(dict.fromkeys(["", *map(pc_of, devices)]))
    return sorted(devices, key=lambda name: pcs.index(pc_of(name)))


def _members_of(devices: Sequence[str], pcs: Sequence[OtherPc]) -> list[_Member]:
    members = []
    for pc in pcs:
        ranks = [rank for rank, name in enumerate(devices) if pc_of(name) == pc.name]
        if ranks:
            theirs = tuple(address_there(devices[rank]) for rank in ranks)
            members.append(_Member(pc, theirs, ranks[0]))
    return members


def _is_here(port: int) -> bool:
    """Return whether something listens at a port of this PC."""
    with socket.socket() as probe:
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return True
    return False
