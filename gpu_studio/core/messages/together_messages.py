"""The messages of several PCs that train one network together, and what such a run found.

The engine of the PC where the user sits asks the engine of each other PC to take part
(`JoinTraining`). Everything else goes between the processes of the group: `engine.together_group`.
"""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import msgspec
from msgspec import Meta

from gpu_studio.core.messages.message import Amount, LastEvent, PositiveCount, Request

MOST_TOGETHER = 4
LARGEST_BATCH = 1 << 20
LONGEST_RENDEZVOUS = 45
"""The longest IPv6 address, in characters."""
_LONGEST_ADDRESS = 60

Member = Annotated[str, Meta(min_length=1, max_length=_LONGEST_ADDRESS)]
"""A device that takes part, with the name of its PC: ``attic/cuda:0``."""
Members = Annotated[tuple[Member, ...], Meta(max_length=MOST_TOGETHER)]
Share = Annotated[float, Meta(ge=0, le=1)]
Rendezvous = Annotated[str, Meta(max_length=LONGEST_RENDEZVOUS)]
"""An address of the leading PC where all processes meet; empty for a tunnel of ssh."""


class ExchangeBackend(str, Enum):
    """What processes exchange gradients with, as torch.distributed calls it."""

    GLOO = "gloo"
    NCCL = "nccl"


class JoinTraining(Request, frozen=True, kw_only=True):
    """Let devices of this PC take part in a training that another PC leads, until it ends.

    Attributes:
        devices: of this PC, each a process; the first has the rank ``first_rank``.
        first_rank: the rank of the first process.
        ranks: all processes of all PCs.
        size: samples in the whole batch.
        store_port: of the leader's c10d store; with a tunnel, of its end on this PC.
        rendezvous: the leader's address in a network that both PCs have; empty for a tunnel.
        backend: what the processes exchange gradients with.
    """

    devices: Annotated[tuple[Member, ...], Meta(min_length=1, max_length=MOST_TOGETHER - 1)]
    first_rank: Annotated[int, Meta(ge=1, lt=MOST_TOGETHER)]
    ranks: Annotated[int, Meta(ge=2, le=MOST_TOGETHER)]
    size: Annotated[int, Meta(ge=1, le=LARGEST_BATCH)]
    store_port: Annotated[int, Meta(ge=1, le=65535)]
    rendezvous: Rendezvous = ""
    backend: ExchangeBackend = ExchangeBackend.GLOO


class TrainingLeft(LastEvent, frozen=True, kw_only=True):
    """The processes of `JoinTraining` have ended."""


class Limited(str, Enum):
    """What keeps devices that train together from the sum of their speeds."""

    NETWORK = "network"
    SLOWEST_DEVICE = "slowest_device"
    OTHER = "other"
    NOTHING = "nothing"


class Measured(msgspec.Struct, frozen=True):
    """The median of rounds, with its 95 % interval."""

    median: Amount
    low: Amount
    high: Amount


class TogetherResult(msgspec.Struct, frozen=True, kw_only=True):
    """What training together costs and gains.

    Attributes:
        efficiency: the throughput together over the sum of the devices' throughputs alone, each
            with its own part of the batch.
        waiting: the share of a step in which a device does not compute, by its name.
        network_bytes_per_s: what each process sends in an exchange of all gradients, over its time:
            the bus bandwidth of nccl-tests, PERFORMANCE.md.
        gradient_bytes: the bytes of the gradients of a step.
        limited: what costs most of the difference to an efficiency of 1.
        backend: what exchanged the gradients.
        is_tunneled: whether they went through ssh.
    """

    efficiency: Measured
    waiting: dict[str, Share]
    network_bytes_per_s: Measured
    gradient_bytes: PositiveCount
    limited: Limited
    backend: ExchangeBackend = ExchangeBackend.GLOO
    is_tunneled: bool = True
