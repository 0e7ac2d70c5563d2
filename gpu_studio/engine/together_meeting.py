"""How the processes of several PCs meet: a c10d store, and gloo's ports at loopback addresses.

gloo opens one port for each device object, and publishes its address in the store. So the port is
known before the processes meet, and a tunnel can give it the same number on all PCs: every process
finds every other one at its own loopback address. github.com/pytorch/gloo, transport/tcp/device.cc.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import psutil
import torch.distributed as dist

from gpu_studio.core.other_pc import LOOPBACK

LONGEST_MEETING_S = 90.0
READY = "tunnels"
_BACKEND = "gpu_studio_gloo"


def port_key(rank: int) -> str:
    """Return the store's key for the port of a process."""
    return f"port/{rank}"


def meet_other_pcs(store_port: int, rank: int, ranks: int) -> None:
    """Make this process one of a group of several PCs.

    Args:
        store_port: the port of the c10d store on this PC.
        rank: of this process.
        ranks: all processes.
    """
    store = dist.TCPStore(  # type: ignore[attr-defined]
        LOOPBACK,
        store_port,
        is_master=False,
        wait_for_workers=False,
        timeout=timedelta(seconds=LONGEST_MEETING_S),
        use_libuv=False,  # PyTorch for Windows lacks it
    )
    before = _listening_ports()
    device = dist.ProcessGroupGloo.create_device(hostname=LOOPBACK)
    (port,) = _listening_ports() - before
    store.set(port_key(rank), str(port))
    store.wait([READY], timedelta(seconds=LONGEST_MEETING_S))

    def make(store: Any, rank: int, size: int, timeout: timedelta) -> Any:
        options = dist.ProcessGroupGloo._Options()  # type: ignore[attr-defined]
        options._devices, options._timeout = [device], timeout
        return dist.ProcessGroupGloo(store, rank, size, options)

    dist.Backend.register_backend(_BACKEND, make, devices=["cpu", "cuda", "xpu"])
    dist.init_process_group(_BACKEND, store=store, rank=rank, world_size=ranks)


def _listening_ports() -> set[int]:
    return {
        one.laddr.port
        for one in psutil.Process().net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    }
