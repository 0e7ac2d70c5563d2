"""The report on this PC to share, as plain text or as Markdown for a forum.

Strangers read reports. Anything that could identify a card, a person or a place is masked unless
you ask for it: UUIDs, serial numbers, user names, and the folders of paths.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core.devices.facts import (
    NOT_AVAILABLE,
    PcSnapshot,
    own_facts,
    peaks_of,
    shared_facts,
)
from gpu_studio.core.telemetry import SENSORS
from gpu_studio.core.texts import markdown_table, markdown_text
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from gpu_studio.core.devices.devices import Device, GpuProcess
    from gpu_studio.core.devices.finding import Finding
    from gpu_studio.core.telemetry import Telemetry


MASK = "(masked)"
_TITLE = "GPU Studio: the devices of this PC"
_TORCH_FIELDS = (
    "cuda_build", "cuda_available", "cuda_reason", "device_count", "arch_list", "cpu_capability",
    "cpu_threads", "visible_devices", "allocator_configuration", "python_version", "recording",
)  # fmt: skip
_PROCESS_HEAD = ("PID", "Program", "User", "Kind", "GPU memory")

_UUID = re.compile(
    r"\b(?:((?:GPU|MIG)-)[0-9a-f]{4}[0-9a-f-]*|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})",
    re.IGNORECASE,
)
_FILE_ADDRESS = re.compile(r"\bfile://(?=/)", re.IGNORECASE)
# A home folder has the name of its user, which may have two words on Windows.
# Python's repr doubles each backslash.
_WINDOWS_HOME = re.compile(r"([A-Za-z]:[\\/]+Users[\\/]+)[^\\/\"'\n]+", re.IGNORECASE)
_POSIX_HOME = re.compile(r"(/(?:home|Users)/)[^\s/\"']+")
# A folder name of several words must be followed by a slash: two paths in a sentence stay two.
_WORD = r"[^\s/\"':;,]+"
_POSIX_FOLDER = rf"(?:[^\s/\"']+|{_WORD}(?: +{_WORD})+)/"
_POSIX_PATH = re.compile(rf"(?<![\w/.:])/(?:{_POSIX_FOLDER})+([^\s/\"']*)")
_WINDOWS_PATH = re.compile(
    r"(?<!\w)(?:[A-Za-z]:[\\/]+|\\{2,})(?:[^\\/\"'\n]+[\\/]+)*([^\\/\s\"']*)"
)
# In an address: the user and password, and all that follows the path, where tokens are. What is
# searched may be one long line: each search ends early, so that no text costs its length squared.
_LOGIN = re.compile(r"\b([a-z][a-z0-9+.-]{0,30}://)[^\s/\"'<>]*@", re.IGNORECASE)
_QUERY = re.compile(r"\b(https?://(?:[^\s?#\"'<>:]|:(?!//))*)[?#][^\s\"'<>]*", re.IGNORECASE)
# What a setting, an option or a field is called that holds a secret, and its value.
_SECRET = re.compile(
    r"((?:password|passwd|passphrase|token|secret|api[_-]?key)[\w-]{0,60}"
    r"(?:[\"']?\s*[=:]\s*[\"']?|(?<=--password)\s+|(?<=--token)\s+))[^\s\"',;&]+",
    re.IGNORECASE,
)
# A serial number after its name; it has a digit, so that "serial: unknown" stays.
_SERIAL = re.compile(
    r"(\b(?:serial(?:[ _-]?(?:number|num|no\.?|nr\.?))?|S/N)[\"']?\s{0,3}(?:[:=#]|\bis\b)?\s{0,3}"
    r"[\"']?)(?=[A-Z-]{0,20}\d)[\w-]{5,40}\b",
    re.IGNORECASE,
)
# Tokens of Hugging Face, GitHub, GitLab, PyPI and OpenAI, and those of a header.
_TOKEN = re.compile(
    r"\b(?:hf_|gh[opsur]_|github_pat_|glpat-|pypi-|sk-)[\w-]{16,}|"
    r"(?<=\bBearer )\S+|(?<=\bBasic )[A-Za-z0-9+/=]{8,}"
)


def masked_text(text: str) -> str:
    """Return a text without UUIDs, serial numbers, folders, names of homes, or secrets."""
    text = _UUID.sub(lambda found: (found[1] or "") + MASK, text)
    text = _LOGIN.sub(rf"\1{MASK}@", text)
    text = _QUERY.sub(rf"\1?{MASK}", text)
    text = _TOKEN.sub(MASK, text)
    text = _SECRET.sub(rf"\1{MASK}", text)
    text = _SERIAL.sub(rf"\1{MASK}", text)
    text = _FILE_ADDRESS.sub("", text)
    text = _WINDOWS_HOME.sub(rf"\1{MASK}", text)
    text = _POSIX_HOME.sub(rf"\1{MASK}", text)
    text = _WINDOWS_PATH.sub(r"…\\\1", text)
    return _POSIX_PATH.sub(r"…/\1", text)


def report_text(
    snapshot: PcSnapshot, findings: Sequence[Finding] = (), *, masked: bool = True
) -> str:
    """Return the report as plain text: a table like nvidia-smi's, then aligned columns."""
    lines = [_TITLE, "", *card_table(snapshot), ""]
    sections = _sections(snapshot, findings, masked)
    for title, rows in sections:
        lines.append(title)
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)] if rows else []
        for row in rows:
            cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=False)]
            lines.append("  " + "  ".join([*cells, row[-1]]))
        lines.append("")
    return "\n".join(lines)


def report_markdown(
    snapshot: PcSnapshot, findings: Sequence[Finding] = (), *, masked: bool = True
) -> str:
    """Return the report as Markdown: a heading and a table for each section."""
    lines = [f"## {markdown_text(_TITLE)}", ""]
    for title, rows in _sections(snapshot, findings, masked):
        lines += [f"### {markdown_text(title)}", ""]
        columns = len(rows[0]) if rows else 0
        if columns == 1:
            lines += [f"- {markdown_text(row[0])}" for row in rows]
        elif columns:
            head, body = (rows[0], rows[1:]) if columns > 2 else (("",) * columns, rows)
            lines.append(markdown_table([head, *body]).rstrip())
        lines.append("")
    return "\n".join(lines)


def pc_value(snapshot: PcSnapshot, engine_error: str = "") -> dict[str, Any]:
    """Return the value that ``gpu-studio devices --json`` prints, without masking.

    Args:
        snapshot: everything known about the PC.
        engine_error: why PyTorch does not start; empty if it does.
    """
    torch = _torch_value(snapshot)
    if engine_error:
        torch["error"] = engine_error
    return {
        "devices": [_device_value(device, snapshot) for device in snapshot.inventory.devices],
        "torch": torch,
        "driver": msgspec.to_builtins(snapshot.inventory.driver),
        "other_gpus": list(snapshot.inventory.other_gpus),
    }


def _device_value(device: Device, snapshot: PcSnapshot) -> dict[str, Any]:
    current = msgspec.structs.replace(
        device,
        telemetry=snapshot.telemetry(device),
        processes=_processes(device, snapshot),
        unreadable=snapshot.trouble(device) or None,
    )
    value: dict[str, Any] = msgspec.to_builtins(current)
    now = current.telemetry
    value["telemetry"] = {name: msgspec.to_builtins(getattr(now, name)) for name in SENSORS}
    read = snapshot.memory.get(device.address or "") if not device.is_cpu else None
    value["address"] = device.address
    value["allocated_bytes"] = read.allocated_bytes if read else None
    value["reserved_bytes"] = read.reserved_bytes if read else None
    if not device.is_cpu:
        torch_card = snapshot.torch_card(device)
        peaks, link = peaks_of(device, torch_card), snapshot.links.get(device.identity)
        value["torch_account"] = msgspec.to_builtins(torch_card)
        value["peaks"] = msgspec.to_builtins(peaks)
        value["link_at_work"] = msgspec.to_builtins(link)
    return value


def _torch_value(snapshot: PcSnapshot) -> dict[str, Any]:
    engine = snapshot.engine
    value: dict[str, Any] = {"version": engine.torch_version if engine else None}
    value |= {field: getattr(engine, field, None) for field in _TORCH_FIELDS}
    if engine is not None:
        value["arch_list"] = list(engine.arch_list)
        if engine.cards_asleep:  # PyTorch was not asked
            value |= {"cuda_available": None, "device_count": None}
    value["current_device"] = snapshot.current_card
    return value


def _sections(
    snapshot: PcSnapshot, findings: Sequence[Finding], masked: bool
) -> list[tuple[str, list[tuple[str, ...]]]]:
    """Return titles with rows of one cell (sentences), two (facts) or five (processes)."""
    shown: Callable[[str], str] = masked_text if masked else str
    sections: list[tuple[str, list[tuple[str, ...]]]] = []
    if findings:
        sections.append(("Findings", [(shown(finding.sentence),) for finding in findings]))
    for device in snapshot.inventory.devices:
        for group in own_facts(device, snapshot):
            rows = [(fact.label, shown(fact.value)) for fact in group.facts]
            sections.append((f"{device.name}: {group.title}", list(rows)))
        processes = _processes(device, snapshot)
        if processes:
            cells = [_process_row(process, snapshot, masked) for process in processes]
            sections.append((f"{device.name}: Processes", [_PROCESS_HEAD, *cells]))
    for group in shared_facts(snapshot):
        sections.append((group.title, [(fact.label, shown(fact.value)) for fact in group.facts]))
    return sections


def _processes(device: Device, snapshot: PcSnapshot) -> tuple[GpuProcess, ...]:
    card = snapshot.card_reading(device)
    return device.processes if card is None else card.processes or ()


def _process_row(process: GpuProcess, snapshot: PcSnapshot, masked: bool) -> tuple[str, ...]:
    name, user = " ".join(process.name.split()), process.user or NOT_AVAILABLE
    if masked:
        name, user = _masked_name(name, process.user), MASK if process.user else user
    if snapshot.engine is not None and process.pid == snapshot.engine.pid:
        name += " (GPU Studio's PyTorch)"
    memory = process.memory_bytes
    memory_text = NOT_AVAILABLE if memory is None else format_bytes(memory)
    return str(process.pid), name, user, process.kind or NOT_AVAILABLE, memory_text


def _masked_name(path: str, user: str | None) -> str:
    """Return the name of a program's file without its folder and the name of its user."""
    name = path.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1]
    return re.sub(re.escape(user), MASK, name, flags=re.IGNORECASE) if user else name


_HEADS = (
    "GPU", "PyTorch", "Name", "Bus id", "Disp", "Fan", "Temp", "Perf", "Power", "Memory", "Util",
)  # fmt: skip


def card_table(snapshot: PcSnapshot, moment: str = "") -> list[str]:
    """Return the lines of the table of cards; without a card, a line that says so.

    Args:
        snapshot: the PC.
        moment: when it was, for the title; without one, PyTorch's version stands there.
    """
    driver, engine = snapshot.inventory.driver, snapshot.engine
    last = moment or f"PyTorch {engine.torch_version if engine else 'n/a'}"
    title = f"Driver {driver.version or 'n/a'}   CUDA up to {driver.cuda_version or 'n/a'}   {last}"
    rows = [_row(card, snapshot.telemetry(card)) for card in snapshot.inventory.cards]
    if not rows:
        return [f"| {title} |", "| No graphics card. |"]
    return boxed(title, (_HEADS, *rows))


def boxed(title: str, rows: Sequence[Sequence[str]]) -> list[str]:
    """Return rows of text in a box of ASCII characters; the first row is the heading."""
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
        "-" if card.driver_index is None else str(card.driver_index),
        card.address or "-",
        card.name,
        card.pci_bus_id or "n/a",
        NOT_AVAILABLE if card.display_active is None else "on" if card.display_active else "off",
        _whole(now.fan_percent, "{:.0f} %"),
        _whole(now.temperature_c, "{:.0f} C"),
        _whole(now.pstate, "P{}"),
        NOT_AVAILABLE if (now.power_w, now.power_limit_w) == (None, None) else power,
        f"{_mebibytes(used)} / {_mebibytes(total)} MiB",
        _whole(now.utilization_percent, "{:.0f} %"),
    )


def _whole(value: float | None, form: str = "{:.0f}") -> str:
    return NOT_AVAILABLE if value is None else form.format(value)


def _mebibytes(size_bytes: int | None) -> str:
    return _whole(None if size_bytes is None else size_bytes >> 20)
