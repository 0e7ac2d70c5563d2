"""Whether PyTorch can use a device, in one sentence: what is found, known or still asked."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from gpu_studio.core.devices.facts import amount_text, bytes_text, celsius_text
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.notice import Action, Tone
from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.headline import lost_headline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.messages.engine_messages import EngineDescribed
    from gpu_studio.core.telemetry import Telemetry
    from gpu_studio.model.builds import Installation
    from gpu_studio.model.pc import Pc


def last_reading_words(telemetry: Telemetry, age_s: float) -> str:
    """Return a past reading with the time of this PC's clock at which it was taken."""
    taken_at = datetime.now().astimezone() - timedelta(seconds=max(age_s, 0.0))
    hot_spot, power = celsius_text(telemetry.hotspot_c), amount_text(telemetry.power_w, None, "W")
    used = bytes_text(telemetry.memory_used_bytes)
    values = (
        celsius_text(telemetry.temperature_c),
        f"hot spot {hot_spot}" if hot_spot else None,
        power,
        f"{used} in use" if used else None,
    )
    words = ", ".join(value for value in values if value)
    return f"Last read at {taken_at:%H:%M}: {words}." if words else ""


def before_devices(is_silent: bool) -> Finding:
    """Return the headline before devices are found."""
    if is_silent:
        return Finding(
            code="unknown",
            sentence="The devices of this PC could not be read.",
            detail="The sensors do not answer. Restart the PC if they do not come back.",
        )
    return Finding(code="waiting", sentence="Looking for the devices of this PC…", tone=Tone.PLAIN)


def of_line(pc: Pc) -> Finding:
    """Return the headline about another PC that is not connected, or has no engine."""
    notice = pc.notice
    return Finding(code="line", sentence=notice.sentence, detail=notice.detail, tone=notice.tone)


def of_card(
    card: Device,
    findings: Sequence[Finding],
    engine: EngineDescribed | None,
    state: EngineState,
    trouble: str,
) -> Finding:
    """Return the verdict on a card, or on the CPU of a PC without one.

    Args:
        card: the device.
        findings: the findings about it, worst first.
        engine: the engine's description of itself, None without an engine.
        state: the engine's state.
        trouble: why the device is not readable now; empty if it is.
    """
    if card.unreadable is None and trouble:
        return lost_headline(card, trouble)
    failures = [finding for finding in findings if finding.tone is Tone.FAILURE]
    usable = [finding for finding in findings if finding.code == "ok"]
    # A note about the whole PC does not answer whether PyTorch can use the card.
    is_card = not card.is_cpu
    answers = [
        finding
        for finding in findings
        if not (is_card and finding.tone is Tone.PLAIN and finding.device_uuid is None)
    ]
    for finding in failures or usable or answers:
        return finding
    return _without_findings(card, engine, state, trouble)


def without_engine(device: Device, installation: Installation) -> Finding:
    """Return the verdict while no PyTorch is installed.

    Args:
        device: the card or the CPU.
        installation: what the installation does; empty if it has not begun.
    """
    question = f"if it can use your {device.short_name}"
    if installation:
        now = "is being installed" if installation == "runs" else "is not installed completely"
        sentence = f"PyTorch {now}. After that, you see here {question}."
        return Finding(
            code="waiting", sentence=sentence, action=Action.SHOW_SET_UP, tone=Tone.PLAIN
        )
    sentence = f"Install PyTorch to see {question}."
    return Finding(code="waiting", sentence=sentence, action=Action.SET_UP, tone=Tone.PLAIN)


def of_cpu(cpu: Device, engine: EngineDescribed | None, state: EngineState) -> Finding:
    """Return the verdict on the CPU of a PC with cards; the findings are about the cards."""
    if engine is None:
        return _without_findings(cpu, engine, state, "")
    simd = f" with {engine.cpu_capability}" if engine.cpu_capability else ""
    return Finding(
        code="ok",
        sentence=f"PyTorch runs on your {cpu.short_name}.",
        detail=f"torch {engine.torch_version} uses {engine.cpu_threads} of its threads{simd}",
        tone=Tone.GOOD,
    )


def _without_findings(
    device: Device, engine: EngineDescribed | None, state: EngineState, trouble: str
) -> Finding:
    """Return the headline while PyTorch has not reported on a device."""
    if state is EngineState.FAILED:
        sentence = f"PyTorch did not start, so it is not known if it can use {device.short_name}."
        return Finding(code="unknown", sentence=sentence)
    if engine is None:
        sentence = f"Asking PyTorch whether it can use your {device.short_name}…"
        return Finding(code="waiting", sentence=sentence, tone=Tone.PLAIN)
    if engine.cards_asleep:
        sentence = f"Your {device.short_name} is asleep. PyTorch has not checked it."
        return Finding(code="unknown", sentence=sentence, action=Action.WAKE_CARDS, tone=Tone.PLAIN)
    sentence = f"PyTorch does not list your {device.short_name}."
    return Finding(code="unknown", sentence=sentence, detail=trouble)
