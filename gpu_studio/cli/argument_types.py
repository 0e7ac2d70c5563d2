"""What several commands ask for alike, and the types of arguments for argparse.

Each type returns a value, or says what is allowed.
"""

from __future__ import annotations

import re
from argparse import ArgumentTypeError, Namespace
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from gpu_studio.cli.command import Option, WrongUseError
from gpu_studio.core.benchmark.sizes import parse_sizes, parse_sweep
from gpu_studio.core.device_name import DeviceName
from gpu_studio.core.failure import StudioError
from gpu_studio.core.memory.allocator.options import checked_configuration
from gpu_studio.core.memory.modelled_cards import card_at, is_modelled
from gpu_studio.core.parameter import Parameter, parameters_of
from gpu_studio.core.tensors import parse_dtypes
from gpu_studio.core.texts import listed

_TIME = re.compile(r"(\d{1,9}(?:\.\d{1,9})?)\s*(s|min|h)?", re.ASCII)
_UNITS_S = {"s": 1.0, "min": 60.0, "h": 3600.0}
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
    """Return the seconds in ``2``, ``2s``, ``6min`` or ``8h``."""
    found = _TIME.fullmatch(text.strip())
    if found is None:
        raise ArgumentTypeError(f"“{text[:20]}” is not a time: give 20s or 6min")
    return float(found[1]) * _UNITS_S[found[2] or "s"]


def new_file(*extensions: str) -> Callable[[str], Path]:
    """Return a type for a file to write, which so far looks writable.

    Args:
        extensions: the allowed endings.
    """

    def path_of(text: str) -> Path:
        path = Path(text)
        if path.is_dir():
            raise ArgumentTypeError(f"“{path}” is a folder: name a file")
        if path.suffix.lower() not in extensions:
            allowed = listed(extensions, "or")
            raise ArgumentTypeError(f"“{path.name[:40]}” has no known ending: end it in {allowed}")
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


def _literal(text: str) -> str:
    """Return a text for argparse, which replaces what follows a “%”."""
    return text.replace("%", "%%")


def _entries(text: str) -> list[str]:
    return text.replace(",", " ").split()


# ── options that several commands have ───────────────────────────────────────────────────────────

CARD_OR_CPU = Option(
    "--device", "cpu, or a card (default: the first card that PyTorch can use, otherwise cpu)",
    metavar="D", type=device,
)  # fmt: skip
DEVICES = Option(
    "--device", "the devices to use (default: all)", metavar="cpu[,cuda:0…]", type=devices
)


def _lab_device(text: str) -> str:
    if is_modelled(text):
        card_at(text)
    return device(text)


def conf(sentence: str, usual: str | None) -> Option:
    """Return the option for the allocator's configuration."""
    kind = checked(checked_configuration, "these allocator options cannot be used: ")
    return Option("--conf", sentence, metavar="TEXT", type=kind, default=usual)


LAB_CARD = (
    Option(
        "--device", "a card such as cuda:0, or a simulated card: model:1996 has 1996 MiB",
        metavar="D", type=checked(_lab_device), required=True,
    ),
    conf("the allocator's options, as in PYTORCH_CUDA_ALLOC_CONF", ""),
)  # fmt: skip
"""A real or simulated card, and how its allocator starts."""


def save(sentence: str, *extensions: str, **more: Any) -> Option:
    """Return the option that says where a file goes; its ending decides what it becomes."""
    shown = ", ".join(extensions)
    return Option(
        "--save", f"{sentence}: {shown}", metavar="FILE", type=new_file(*extensions), **more
    )


def by_ending(paths: Sequence[Path]) -> dict[str, Path]:
    """Return the files of a `save` that is repeatable; raises `WrongUseError` for two of a kind."""
    found = {path.suffix.lower(): path for path in paths}
    if len(found) < len(paths):
        raise WrongUseError("Two files to save have the same ending: name one of each kind.")
    return found


def settings(message: type, work: str, **usual: Any) -> tuple[Option, ...]:
    """Return an option for each parameter of a message that a kind of work has.

    Args:
        message: its fields declare the parameters.
        work: a command.
        usual: other defaults, by the parameters' names.
    """
    return tuple(
        _setting(replace(one, default=usual.get(one.name, one.default)))
        for one in parameters_of(message, work)
    )


def _setting(one: Parameter) -> Option:
    if one.is_switch:
        off, on = one.offered
        kind = {"action": "store_const", "const": on, "default": off}
        return Option(one.flag, _literal(one.sentence), dest=one.name, **kind)

    if not one.unit:
        words = [value for value in one.offered if value is not None]
        return Option(one.flag, one.sentence, dest=one.name, choices=words, default=one.default)
    scale = _UNITS_S[one.unit]

    def value_of(text: str) -> float:
        value = seconds(text) / scale
        if refusal := one.refusal(value):
            raise ArgumentTypeError(refusal)
        return type(one.default)(value)  # type: ignore[no-any-return]

    sentence = f"{one.sentence.rstrip('.')} (default: {one.default:g} {one.unit})."
    return Option(
        one.flag, sentence, dest=one.name, metavar="S" if one.unit == "s" else "T", type=value_of,
        default=one.default,
    )  # fmt: skip


def chosen(options: Namespace, message: type, work: str) -> dict[str, Any]:
    """Return the values of `settings`, by the fields' names."""
    return {one.field: getattr(options, one.name) for one in parameters_of(message, work)}
