"""Limits of a compute capability, from the tables of NVIDIA's CUDA programming guide."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a multiprocessor of one compute capability has."""

    cores_per_sm: int
    threads_per_sm: int
    shared_per_sm_kib: int
    shared_optin_kib: int


_LIMITS = {
    30: Limits(192, 2048, 48, 48),
    35: Limits(192, 2048, 48, 48),
    50: Limits(128, 2048, 64, 48),
    52: Limits(128, 2048, 96, 48),
    60: Limits(64, 2048, 64, 48),
    61: Limits(128, 2048, 96, 48),
    70: Limits(64, 2048, 96, 96),
    75: Limits(64, 1024, 64, 64),
    80: Limits(64, 2048, 164, 163),
    86: Limits(128, 1536, 100, 99),
    89: Limits(128, 1536, 100, 99),
    90: Limits(128, 2048, 228, 227),
    100: Limits(128, 2048, 228, 227),
    120: Limits(128, 1536, 100, 99),
}

ARCHITECTURES: dict[int | str, int] = {
    3: 2,
    5: 3,
    6: 4,
    7: 6,
    8: 7,
    "ada": 8,
    9: 9,
    10: 10,
    12: 10,
}
"""NVML's number of an architecture, by major version of the compute capability."""


def limits_of(capability: int) -> Limits:
    """The limits of a compute capability (61 for 6.1).

    Raises:
        KeyError: the capability is not in the table.
    """
    return _LIMITS[capability]
