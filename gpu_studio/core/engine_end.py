"""How an engine's process ended, in words."""

from __future__ import annotations


def describe_exit(exit_code: int | None) -> str:
    """Return how an engine's process ended, in words."""
    if exit_code is None:
        return "The engine stopped answering."
    if exit_code in (-9, 137):
        return "The system ended the engine (signal 9): usually the PC ran out of memory (RAM)."
    if exit_code < 0:
        return f"The engine crashed (signal {-exit_code}): a driver or a library aborted it."
    return f"The engine quit by itself with exit code {exit_code}."
