"""The types of arguments for argparse: each returns a value, or says what is allowed."""

from __future__ import annotations

import math
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from gpu_studio.core.benchmark.sizes import parse_sizes, parse_sweep
from gpu_studio.core.device_name import DeviceName
from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import parse_dtypes

_LONGEST_BUDGET_S = 3600.0
_MEMORY = re.compile(r"(\d{1,9}(?:\.\d{1,6})?)\s*([GgMm])i?[Bb]", re.ASCII)
_MOST_MEMORY = 1 << 40
_T = TypeVar("_T")


def checked(parse: Callable[[str], _T], wrong: str = "") -> Callable[[str], _T]:
    """Return a function of core as a type for argparse.

    Args:
        parse: raises `StudioError` or ValueError with a sentence.
        wrong: begins the message, before that sentence.
    """

    def value_of(text: str) -> _T:
        try:
            return parse(text)
        except (StudioError, ValueError) as error:
            raise ArgumentTypeError(f"{wrong}{error}") from error

    return value_of


sizes = checked(parse_sizes)
sweep = checked(parse_sweep)
dtypes = checked(parse_dtypes)


def size(text: str) -> int:
    """Return a single size."""
    found = sizes(text)
    if len(found) != 1:
        raise ArgumentTypeError("give one number")
    return found[0]


def device(text: str) -> str:
    """Return a device's address; ``cuda`` alone is PyTorch's current card, initially number 0."""
    try:
        name = DeviceName.parse(text)
    except ValueError:
        return text
    return text if name.is_cpu or name.index is not None else f"{text}:0"


def devices(text: str) -> tuple[str, ...]:
    """Return the devices in ``cpu,cuda:0``, each once."""
    found = tuple(dict.fromkeys(map(device, _entries(text))))
    if not found:
        raise ArgumentTypeError("name a device: cpu, or a card such as cuda:0")
    return found


def some_of(names: Collection[str]) -> Callable[[str], tuple[str, ...]]:
    """Return a type for a list of these names, such as ``load,memory``."""

    def chosen(text: str) -> tuple[str, ...]:
        entries = tuple(dict.fromkeys(_entries(text)))
        wrong = [entry for entry in entries if entry not in names]
        if wrong or not entries:
            shown = f"“{wrong[0][:20]}” is not one of them: " if wrong else ""
            raise ArgumentTypeError(f"{shown}choose {', '.join(names)}")
        return entries

    return chosen


def whole_number(least: int, largest: int) -> Callable[[str], int]:
    """Return a type for a whole number in this range."""

    def number_of(text: str) -> int:
        is_number = text.isascii() and text.isdecimal() and len(text) <= 18
        if not is_number or not least <= int(text) <= largest:
            raise ArgumentTypeError(
                f"“{text[:20]}” is not a whole number from {least} to {largest}"
            )
        return int(text)

    return number_of


def positive_numbers(largest: int) -> Callable[[str], tuple[int, ...]]:
    """Return a type for a list of whole numbers from 1; the same one may stand twice."""
    number_of = whole_number(1, largest)
    return lambda text: tuple(map(number_of, _entries(text) or [text]))


def seconds(text: str) -> float:
    """Return a time budget in seconds."""
    budget_s = _number(text)
    if not 0 < budget_s <= _LONGEST_BUDGET_S:
        raise ArgumentTypeError(
            f"“{text[:20]}” is not a time budget: give seconds, more than 0 and at most "
            f"{_LONGEST_BUDGET_S:.0f}"
        )
    return budget_s


def new_file(*extensions: str) -> Callable[[str], Path]:
    """Return a type for a file to write, which so far looks writable.

    Args:
        extensions: the allowed extensions; without any, all are.
    """

    def path_of(text: str) -> Path:
        path = Path(text)
        if extensions and path.suffix.lower() not in extensions:
            raise ArgumentTypeError(
                f"“{path.name[:40]}” has no known format: use the extension {', '.join(extensions)}"
            )
        if path.is_dir():
            raise ArgumentTypeError(f"“{path}” is a folder: name a file")
        if not path.parent.is_dir():
            raise ArgumentTypeError(f"there is no folder “{path.parent}” for {path.name[:40]}")
        return path

    return path_of


def memory(text: str) -> int:
    """Return the bytes in ``8GiB``, ``7.5 GiB`` or ``500MiB``; cards' GB are GiB to CUDA."""
    found = _MEMORY.fullmatch(text.strip())
    size_bytes = 0
    if found is not None:
        size_bytes = int(float(found[1]) * (1 << {"G": 30, "M": 20}[found[2].upper()]))
    if not 0 < size_bytes <= _MOST_MEMORY:
        raise ArgumentTypeError(f"“{text[:20]}” is not an amount of memory: give 8GiB or 500MiB")
    return size_bytes


def named_value(text: str) -> tuple[str, str]:
    """Return the name and the value in ``NAME=VALUE``."""
    name, equals, value = (part.strip() for part in text.partition("="))
    if not (equals and name and value):
        raise ArgumentTypeError(f"“{text[:40]}” is not an option: give NAME=VALUE")
    return name, value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _entries(text: str) -> list[str]:
    return text.replace(",", " ").split()
