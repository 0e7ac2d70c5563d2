"""The engine's side of a DistributedDataParallel group, which torchrun starts on this PC only."""

from __future__ import annotations

import contextlib
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.engine.device import accelerator_of
from gpu_studio.engine.replica import CHECK, STEP, GroupPlan, ReplicaAnswer
from gpu_studio.process.child_process import ChildProcess

if TYPE_CHECKING:
    from collections.abc import Sequence

_LONGEST_START_S = 90.0
_LONGEST_ANSWER_S = 60.0
_LONGEST_END_S = 3.0


class ReplicaGroup:
    """A running group; it ends with `close` or with the engine.

    Args:
        devices: one device for each process.
        size: samples in the whole batch.

    Raises:
        StudioError: the group could not start; the log has the processes' output.
    """

    def __init__(self, devices: Sequence[str], size: int) -> None:
        start_s = time.perf_counter()
        first, *others = accelerator_of(torch.device(devices[0])).process_group_backends
        self.backend, self.has_fallen_back = first, False
        try:
            self._start(devices, size)
        except StudioError:
            if not others:
                raise
            (self.backend,), self.has_fallen_back = others, True
            self._start(devices, size)
        self.start_s = time.perf_counter() - start_s

    @property
    def pid(self) -> int:
        """The process id of torchrun, whose children are the others."""
        return self._launcher.pid

    def step_s(self, processes: int) -> float:
        """Return the seconds of one step that the first `processes` processes share."""
        return self._ask(STEP, processes).elapsed_s

    def check(self, processes: int) -> ReplicaAnswer:
        """Return the comparison with one process that has the whole batch, before any step."""
        return self._ask(CHECK, processes)

    def close(self) -> None:
        """Let the processes end by themselves, and kill those that do not."""
        self._launcher.end(_LONGEST_END_S)
        with contextlib.suppress(OSError):  # Windows cannot delete an open file
            self._folder.cleanup()

    def _start(self, devices: Sequence[str], size: int) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="gpu-studio-group-")
        folder = Path(self._folder.name)
        environment = {
            # torchrun would open a port to the whole network for its workers; they need none.
            "TORCH_DISABLE_SHARE_RDZV_TCP_STORE": "1",
            "OMP_NUM_THREADS": str(torch.get_num_threads()),
        }
        interface = {"linux": "lo", "darwin": "lo0"}.get(sys.platform)
        if interface is not None:  # a home PC's own name often does not resolve
            environment |= {"GLOO_SOCKET_IFNAME": interface, "NCCL_SOCKET_IFNAME": f"={interface}"}
        plan = GroupPlan(size, tuple(devices), self.backend, str(folder / "store"))
        try:
            self._launcher = ChildProcess(
                "torch.distributed.run",
                [
                    # The processes meet through files: no port can be taken, and none is open to
                    # others.
                    "--rdzv-backend=c10d",
                    f"--rdzv-endpoint={folder / 'launcher'}",
                    "--rdzv-conf=store_type=file",
                    f"--rdzv-id={folder.name}",
                    "--local-addr=127.0.0.1",
                    f"--nproc-per-node={len(devices)}",
                    "-m",
                    "gpu_studio.engine.replica",
                    msgspec.json.encode(plan).decode(),
                ],
                environment=environment,
            )
        except OSError as error:
            message = f"torchrun could not start: {error.strerror or error}"
            raise StudioError(FailureKind.INTERNAL, message) from error
        self._lines = self._launcher.lines()
        try:
            self._receive(_LONGEST_START_S)
        except BaseException:
            self.close()
            raise

    def _ask(self, what: int, processes: int) -> ReplicaAnswer:
        self._launcher.send(msgspec.json.encode((what, processes)) + b"\n")
        return self._receive(_LONGEST_ANSWER_S)

    def _receive(self, longest_s: float) -> ReplicaAnswer:
        """Return the next answer; a group that takes too long is ended."""
        is_late = threading.Event()

        def end() -> None:
            is_late.set()
            self._launcher.kill()

        timer = threading.Timer(longest_s, end)
        timer.daemon = True
        timer.start()
        try:
            line = next(self._lines, b"")
        finally:
            timer.cancel()
        if line:
            return msgspec.json.decode(line, type=ReplicaAnswer)
        reason = f"did not answer within {longest_s:.0f} s" if is_late.is_set() else "ended"
        raise StudioError(
            FailureKind.INTERNAL,
            f"A process of the group ({self.backend}) {reason}; its output is in the log.",
        )
