"""A workload's options in words, for the screen; files and flags keep the identifiers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from gpu_studio.core.messages.run_messages import WorkloadOption

# Options whose identifier is no word of the field; the others stand as they are.
_NAMES = {
    "amp": "AMP",
    "amp_dtype": "AMP in",
    "cudnn": "cuDNN",
    "form": "",
    "memory": "CPU memory",
    "num_workers": "workers:",
    "threads": "threads per block:",
    "way": "",
}
# Values whose identifier, read as words, is unclear or longer than what people say.
_VALUES = {
    "fused": "few passes over memory",
    "pinned_non_blocking": "pinned without waiting",
    "statements": "ten separate lines",
    "whole_set": "whole data set",
}
_ROWS_BY_COLUMNS = re.compile(r"(\d+)x(\d+)")


def value_words(value: str) -> str:
    """Return an option's value in words: ``batch by batch``, ``10,000 × 100``."""
    shape = _ROWS_BY_COLUMNS.fullmatch(value)
    if shape is not None:
        return f"{int(shape[1]):,} × {int(shape[2]):,}"
    return _VALUES.get(value, value.replace("_", " "))


def explain_option(option: WorkloadOption, write_value: Callable[[str], str] = value_words) -> str:
    """Return an option's sentence and the meanings of its values.

    Args:
        option: of a workload.
        write_value: how to write a value: in words, or as the identifier that a flag needs.
    """
    meanings = (f"{write_value(value)}: {text}" for value, text in option.meanings.items())
    return " ".join((option.sentence, *meanings))


def option_words(options: Mapping[str, str]) -> list[str]:
    """Return each option with its value in words, sorted by name: ``ten separate lines``."""
    return [
        f"{_NAMES.get(name, name.replace('_', ' '))} {value_words(options[name])}".lstrip()
        for name in sorted(options)
    ]
