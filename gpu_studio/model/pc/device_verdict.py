"""Whether PyTorch can use one device, in one sentence: for the card over everything known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.model.engine_session import EngineState
from gpu_studio.model.headline import WAKE, Headline, headline_from, lost_headline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from gpu_studio.core.pc.devices import Device
    from gpu_studio.core.pc.finding import Finding
    from gpu_studio.core.protocol import EngineDescribed


def verdict_before_devices(is_silent: bool) -> Headline:
    """Return what to say while no devices were found."""
    if is_silent:
        return Headline(
            code="unknown",
            sentence="The PC's devices could not be read.",
            detail="The sensors do not answer: usually the graphics driver hangs. Restart the PC.",
        )
    return Headline(code="waiting", sentence="Looking at what is in this PC …", tone="")


def verdict_of_card(
    card: Device,
    findings: Sequence[Finding],
    engine: EngineDescribed | None,
    state: EngineState,
    trouble: str,
) -> Headline:
    """Return the verdict on a card, or on the CPU of a PC without one.

    Args:
        card: the device.
        findings: those about it, worst first.
        engine: the engine's account of itself, None while there is none.
        state: what the engine is doing.
        trouble: why the device cannot be read now; empty where it can.
    """
    if card.unreadable is None and trouble:
        return lost_headline(card, trouble)
    failures = [finding for finding in findings if finding.severity == "failure"]
    usable = [finding for finding in findings if finding.code == "ok"]
    for finding in failures or usable or findings:
        return headline_from(finding)
    return _verdict_of_nobody(card, engine, state, trouble)


def verdict_of_cpu(cpu: Device, engine: EngineDescribed | None, state: EngineState) -> Headline:
    """Return the verdict on a CPU beside cards, which the findings are about."""
    if engine is None:
        return _verdict_of_nobody(cpu, engine, state, "")
    simd = f" with {engine.cpu_capability}" if engine.cpu_capability else ""
    return Headline(
        code="ok",
        sentence=f"PyTorch runs on your {cpu.short_name}.",
        detail=f"torch {engine.torch_version} uses {engine.cpu_threads} of its threads{simd}",
        tone="good",
    )


def _verdict_of_nobody(
    device: Device, engine: EngineDescribed | None, state: EngineState, trouble: str
) -> Headline:
    """Return what to say as long as PyTorch has not been heard about a device."""
    if state is EngineState.FAILED:
        sentence = f"PyTorch did not start, so nobody knows if it can use {device.short_name}."
        return Headline(code="unknown", sentence=sentence)
    if engine is None:
        sentence = f"Asking PyTorch whether it can use your {device.short_name} …"
        return Headline(code="waiting", sentence=sentence, tone="")
    if engine.cards_asleep:
        sentence = f"PyTorch was not asked about your {device.short_name}, since it slept."
        return Headline(code="unknown", sentence=sentence, action=WAKE, tone="")
    sentence = f"PyTorch says nothing about your {device.short_name}."
    return Headline(code="unknown", sentence=sentence, detail=trouble)
