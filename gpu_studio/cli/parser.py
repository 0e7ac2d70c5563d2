"""What the commands of the terminal build their options with."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, NoReturn

from gpu_studio.cli.status import WrongUseError

if TYPE_CHECKING:
    from typing import TypeAlias

    # One command is added to these.
    Commands: TypeAlias = "argparse._SubParsersAction[OneLineParser]"


def device_address(text: str) -> str:
    """Return a device's address; ``cuda`` alone is PyTorch's current card, at first number 0."""
    return "cuda:0" if text == "cuda" else text


class OneLineParser(argparse.ArgumentParser):
    """A parser whose mistakes are one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        """Raise `WrongUseError`."""
        raise WrongUseError(message)
