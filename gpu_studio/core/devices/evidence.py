"""All that is known of cards that cannot be used, in the terms of the system: for Details."""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpu_studio.core.devices.devices import CUDA_BUILD
from gpu_studio.core.devices.hiding_variables import HIDING_VARIABLES
from gpu_studio.core.texts import listed

if TYPE_CHECKING:
    from gpu_studio.core.devices.devices import Device
    from gpu_studio.core.devices.unused_cards import UnusedCards

_LONGEST_TEXT = 200


def evidence_of(case: UnusedCards) -> str:
    """Return what a finding about these cards rests on; the same for every cause."""
    own = "NVRM|nvidia" if case.maker == "NVIDIA" else "amdgpu|kfd|i915|xe"
    line = case.logged(own)
    parts = (
        _engine_words(case),
        *_driver_words(case),
        *map(_card_words, case.cards),
        _file_words(case),
        f"Linux was started with {case.options}" if case.options else "",
        f"in {case.sandbox}" if case.is_boxed else "",
        "WSL 2, with the driver of Windows" if case.facts.inventory.is_wsl else "",
        *_variable_words(case),
        f"the kernel's log: “{line}”" if line else "",
    )
    return "; ".join(part for part in parts if part) or "the system shows no such card"


def _driver_words(case: UnusedCards) -> tuple[str, ...]:
    """Return NVIDIA's own error, and the versions of the driver's two halves."""
    driver = case.driver
    if case.maker != "NVIDIA":
        return ()
    kind = {True: " (open)", False: " (proprietary)", None: ""}[case.signs.is_open_module]
    version = driver.version or case.signs.nvidia_version
    half = f"kernel module {version}{kind}" if case.is_on_linux else f"driver {version}"
    library = f"library {driver.library_version}" if driver.library_version else ""
    return driver.evidence, half if version else "", library


def _file_words(case: UnusedCards) -> str:
    if not case.knows_signs:
        return ""
    return listed([one.words for one in case.files()]) or _missing_words(case)


def _variable_words(case: UnusedCards) -> list[str]:
    variables = case.facts.inventory.variables
    names = (*HIDING_VARIABLES.get(case.kind, ()), "HSA_OVERRIDE_GFX_VERSION")
    if case.kind == CUDA_BUILD:
        return []
    return [f"{name} is “{variables[name]}”" for name in names if name in variables]


def _engine_words(case: UnusedCards) -> str:
    engine = case.facts.engine
    if engine is None or not case.reason:
        return ""
    words = f"torch {engine.torch_version}, built for {engine.built_for}"
    if case.error is not None:
        text, library = case.error.text[:_LONGEST_TEXT], case.error.library
        words += f"; PyTorch says “{text}”" if text else ""
        words += f"; it loaded {library}" if library else ""
    return words


def _card_words(card: Device) -> str:
    number = f"{card.pci_device_id:04x}" if card.pci_device_id is not None else "unknown"
    held = f", driven by {card.kernel_driver}" if card.kernel_driver else ""
    revision = ", revision ff" if card.is_off_bus else ""
    where = f"{card.short_name} at {card.pci_bus_id or 'an unknown slot'}, device id {number}"
    return f"{where}{held}{revision}"


def _missing_words(case: UnusedCards) -> str:
    if case.facts.inventory.is_wsl:
        return "" if case.signs.files_at("/dev/dxg") else "no /dev/dxg"
    names = {"NVIDIA": "/dev/nvidia*", "AMD": "/dev/kfd and /dev/dri/renderD*"}
    return f"no {names.get(case.maker, '/dev/dri/renderD*')}"
