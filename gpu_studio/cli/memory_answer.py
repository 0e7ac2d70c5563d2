"""The form of an answer about memory in the terminal, for a network, an error and a history."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.cli.screen import print_line
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from gpu_studio.core.memory.answer import FitAnswer, FitVerdict


def print_answer(answer: FitAnswer) -> None:
    """Print the verdicts with their memory, what decides them, and what helps."""
    for verdict in answer.verdicts:
        _print_verdict(verdict)
    print_line(answer.sentence)
    for number, step in enumerate(answer.steps, 1):
        enough = f" ({step.enough})" if step.enough else ""
        print_line(f"{number}. {step.what}: {step.how}{enough}.")
    if answer.details:
        print_line(answer.details)


def _print_verdict(verdict: FitVerdict) -> None:
    print_line(verdict.notice.sentence)
    tank = verdict.tank
    for part, memory, share, meaning in tank.rows() if tank is not None else ():
        print_line(f"  {part:<16}{memory:>12}{share:>8}  {meaning}")
    if tank is not None and tank.card_bytes is not None:
        beyond = format_bytes(tank.total_bytes - tank.card_bytes)
        print_line(f"  {beyond} of this is beyond {format_bytes(tank.card_bytes)}.")
    if verdict.told:
        print_line(f"  {verdict.told}")
