"""The cards as a table like nvidia-smi's, with PyTorch's number of each beside nvidia-smi's."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.pc.devices import Device, Telemetry
    from gpu_studio.core.pc.facts import PcSnapshot

_HEADS = (
    "GPU", "PyTorch", "Name", "Bus id", "Disp", "Fan", "Temp", "Perf", "Power", "Memory", "Util",
)  # fmt: skip


def card_table(snapshot: PcSnapshot) -> list[str]:
    """Return the lines of the table; one that says so where there is no card."""
    driver, engine = snapshot.inventory.driver, snapshot.engine
    title = (
        f"Driver {driver.version or 'n/a'}   CUDA up to {driver.cuda_version or 'n/a'}   "
        f"PyTorch {engine.torch_version if engine else 'n/a'}"
    )
    rows = [_row(card, snapshot.telemetry(card)) for card in snapshot.inventory.cards]
    if not rows:
        return [f"| {title} |", "| No NVIDIA card. |"]
    return boxed(title, (_HEADS, *rows))


def boxed(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text in a box of plain signs; the first row is the heading."""
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    rule = "+" + "+".join("-" * (width + 2) for width in widths) + "+"
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        for row in rows
    ]
    head = "| " + title.ljust(len(rule) - 4) + " |"
    return ["+" + "-" * (len(rule) - 2) + "+", head, rule, lines[0], rule, *lines[1:], rule]


def _row(card: Device, now: Telemetry) -> tuple[str, ...]:
    used, total = now.memory_used_bytes, card.memory_total_bytes
    power = f"{_whole(now.power_w)} / {_whole(now.power_limit_w)} W"
    return (
        "-" if card.nvml_index is None else str(card.nvml_index),
        card.address or "-",
        card.name,
        card.pci_bus_id or "n/a",
        _switch(card.display_active),
        _with(now.fan_percent, "%"),
        _with(now.temperature_c, "C"),
        "n/a" if now.pstate is None else f"P{now.pstate}",
        power if now.power_w is not None or now.power_limit_w is not None else "n/a",
        f"{_mebibytes(used)} / {_mebibytes(total)} MiB",
        _with(now.utilization_percent, "%"),
    )


def _switch(state: bool | None) -> str:
    if state is None:
        return "n/a"
    return "on" if state else "off"


def _whole(value: float | None) -> str:
    return "n/a" if value is None else f"{value:.0f}"


def _with(value: float | None, unit: str) -> str:
    return "n/a" if value is None else f"{value:.0f} {unit}"


def _mebibytes(size_bytes: int | None) -> str:
    return "n/a" if size_bytes is None else str(size_bytes >> 20)
