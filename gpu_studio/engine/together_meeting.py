"""How the processes of several PCs meet: a c10d store, and a port of gloo for each process.

gloo opens one port for each device object, and publishes its address in the store. So the port is
known before the processes meet, and a tunnel can give it the same number on all PCs: every process
finds every other one at its own loopback address. github.com/pytorch/gloo, transport/tcp/device.cc.

At an address that the user chose, each process listens at its PC's own address in that network, and
there is no tunnel. Only so can NCCL work, which opens more ports and publishes them nowhere.
"""

from __future__ import annotations

import socket
from datetime import timedelta
from typing import Any

import psutil
import torch.distributed as dist

from gpu_studio.core.messages.together_messages import ExchangeBackend
from gpu_studio.core.other_pc import LOOPBACK

LONGEST_MEETING_S = 90.0
READY = "tunnels"
_BACKEND = "gpu_studio_gloo"


def port_key(rank: int) -> str:
    """Return the store's key for the port of a process; 0 if it opens its ports later."""
    return f"port/{rank}"


def own_addresses() -> set[str]:
    """Return all IP addresses of this PC, as the system writes them."""
    families = (socket.AF_INET, socket.AF_INET6)
    interfaces = psutil.net_if_addrs().values()
    return {one.address for all_of in interfaces for one in all_of if one.family in families}


def own_address_toward(address: str) -> str:
    """Return the address of this PC that another one at `address` sees.

    Raises:
        OSError: no network leads there.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as nothing_sent:
        nothing_sent.connect((address, 9))
        return str(nothing_sent.getsockname()[0])


def interface_of(address: str) -> str | None:
    """Return the name of the network interface that has an address; None if none has it."""
    for name, all_of in psutil.net_if_addrs().items():
        if any(one.address == address for one in all_of):
            return str(name)
    return None


def meet_other_pcs(
    host: str, store_port: int, rank: int, ranks: int, backend: ExchangeBackend
) -> None:
    """Make this process one of a group of several PCs.

    Args:
        host: the address of the c10d store: this PC's own, at the end of a tunnel.
        store_port: its port.
        rank: of this process.
        ranks: all processes.
        backend: what they exchange numbers with.
    """
    store = dist.TCPStore(  # type: ignore[attr-defined]
        host,
        store_port,
        is_master=False,
        wait_for_workers=False,
        timeout=timedelta(seconds=LONGEST_MEETING_S),
        use_libuv=False,  # PyTorch for Windows lacks it
    )
    if backend is ExchangeBackend.NCCL:
        store.set(port_key(rank), "0")
        store.wait([READY], timedelta(seconds=LONGEST_MEETING_S))
        dist.init_process_group(backend.value, store=store, rank=rank, world_size=ranks)
        return
    before = _listening_ports()
    address = LOOPBACK if host == LOOPBACK else own_address_toward(host)
    device = dist.ProcessGroupGloo.create_device(hostname=address)
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
