"""Runs a program on a PC with soft cards.

    python -m tests.softcards.run --card "NVIDIA GeForce GT 1030:6.1:1996:3" -- CMD ...

The CUDA build of PyTorch must be installed in the environment of this Python. The folder of the PC
is printed first: changing `pc.conf` in it changes the cards while the program runs.
"""

import argparse
import subprocess
import sys
from dataclasses import replace

from tests.softcards.build import CannotBuildError
from tests.softcards.cards import Card, soft_cards
from tests.softcards.catalogue import KNOWN


def card_of(text: str) -> Card:
    """A card from NAME:CAPABILITY:MIB:SMS and an optional :KERNEL_MS.

    One that the catalogue has by that name takes its clocks, bus and sensors from there.

    Raises:
        argparse.ArgumentTypeError: the text is not of this form.
    """
    parts = text.split(":")
    try:
        name, capability, mib, sms, *rest = parts
        kernel_ms = float(rest[0]) if rest else 0.005
        card = KNOWN.get(name, Card(name, capability, mib=int(mib), sms=int(sms)))
        return replace(
            card,
            compute_capability=capability,
            mib=int(mib),
            sms=int(sms),
            nvml_mib=card.nvml_mib if card.mib == int(mib) else None,
            kernel_ms=kernel_ms,
        )
    except (ValueError, IndexError) as error:
        msg = f"{text!r} is not NAME:CAPABILITY:MIB:SMS[:KERNEL_MS]"
        raise argparse.ArgumentTypeError(msg) from error


def main(argv: list[str] | None = None) -> int:
    """Starts the program with the cards asked for and returns its exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.softcards.run")
    parser.add_argument("--card", action="append", type=card_of, required=True)
    parser.add_argument("--cuda", help="CUDA version of PyTorch; by default the installed one's")
    parser.add_argument("--driver", metavar="VERSION:CUDA", help="for example 470.82.01:11040")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    wanted = parser.parse_args(argv)
    command = wanted.command[1:] if wanted.command[:1] == ["--"] else wanted.command
    version, _, cuda_driver = (wanted.driver or "").partition(":")
    try:
        pc = soft_cards(
            wanted.card,
            wanted.cuda,
            driver_version=version or None,
            cuda_driver=int(cuda_driver) if cuda_driver else None,
        )
    except CannotBuildError as error:
        sys.stderr.write(f"{error}\n")
        return 2
    with pc:
        sys.stderr.write(f"soft PC in {pc.folder}\n")
        sys.stderr.flush()
        return subprocess.run(command or [sys.executable], env=pc.env, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
