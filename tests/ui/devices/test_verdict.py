"""What the Devices tab says of a card that can be used, and of what goes wrong."""

from __future__ import annotations

import msgspec
import pytest
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QLabel, QPushButton

from gpu_studio.core.devices.devices import ASLEEP, CardReading, Device, Inventory
from gpu_studio.core.devices.finding import Finding, worst_first
from gpu_studio.core.messages.engine_messages import DescribeEngine
from gpu_studio.core.telemetry import Telemetry
from gpu_studio.model.pages import QUICK_LOOK
from tests.driving.devices import found, show_reading, start
from tests.driving.window import click, find, property_of, sees, text
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, reading
from tests.patience import limit

WITHOUT_PASCAL = described_with_cuda(torch_version="2.13.0+cu130", cuda_build="13.0",
                                     arch_list=("sm_75", "sm_86"))  # fmt: skip


# ── the verdict ────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_without_code_is_reported_with_the_command(qtbot, studio, engines, tab):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    start(studio, tab)
    assert all(fact in text(tab, "devices.verdict.sentence") for fact in ("GT 1030", "6.1"))
    assert property_of(tab, "devices.verdict.sentence", "tone") == "failure"
    assert not sees(tab, "devices.verdict.evidence")
    click(tab, "devices.verdict.more")
    assert "sm_75 sm_86" in text(tab, "devices.verdict.evidence")
    command = text(tab, "devices.verdict.command")
    assert "cu126" in command
    click(tab, "devices.verdict.copy")
    assert QGuiApplication.clipboard().text() == command


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_the_cure_is_the_blue_button_and_what_cannot_work_is_gray_with_its_reason(
    studio, engines, tab
):
    engines.scripts[DescribeEngine] = [WITHOUT_PASCAL]
    start(studio, tab)
    blue = [one for one in tab.findChildren(QPushButton) if one.property("primary") is True]
    assert [one.objectName() for one in blue if one.isVisible()] == ["devices.verdict.copy"]
    check = find(tab, "devices.check", QPushButton)
    assert not check.isEnabled()
    assert "no code" in check.toolTip()
    compare = find(tab, "devices.compare", QPushButton)
    assert (compare.isEnabled(), compare.text()) == (True, "How fast is my CPU?")


def _without_build(maker: str, name: str, device_id: int, **facts: object) -> Inventory:
    kinds = {"AMD": "rocm", "Intel": "xpu", "NVIDIA": "cuda"}
    card = Device(
        kind=kinds[maker], maker=maker, name=name, pci_device_id=device_id,
        pci_bus_id="00000000:03:00.0", **facts,
    )  # fmt: skip
    plain = cpu_only()
    return msgspec.structs.replace(plain, devices=(*plain.devices, card))


@pytest.mark.parametrize(
    "inventory",
    [
        _without_build("AMD", "AMD Radeon RX 580", 0x67DF, kernel_driver="amdgpu"),
        _without_build("NVIDIA", "NVIDIA GeForce GT 710", 0x128B, kernel_driver="nouveau"),
        gt_1030(),
    ],
)
def test_a_card_that_pytorch_cannot_use_is_offered_a_measurement(studio, tab, inventory):
    start(studio, tab)
    wanted = []
    studio.destination_wanted.connect(lambda to: wanted.append(to.page))
    assert find(tab, "devices.measure", QPushButton).text() == "Measure it by Vulkan"
    click(tab, "devices.measure")
    assert wanted == [QUICK_LOOK]


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_card_of_pytorchs_is_measured_with_pytorch(studio, with_cuda, tab):
    start(studio, tab)
    assert not sees(tab, "devices.measure")


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_finding_is_one_line_that_unfolds_and_has_the_amber_sign_itself(
    qtbot, studio, with_cuda, tab, inventory, monkeypatch
):
    start(studio, tab)
    slow = Finding(
        code="slow_link", sentence="Its link is slow.", detail="x1 of x4", command="look at it",
        device_uuid=inventory.cards[0].identity,
    )  # fmt: skip
    monkeypatch.setattr(studio.doctor, "findings", worst_first([slow, *studio.doctor.findings]))
    studio.doctor.findings_changed.emit()
    qtbot.waitUntil(lambda: sees(tab, "devices.finding.0"))
    assert text(tab, "devices.finding.0.sentence") == slow.sentence
    assert text(tab, "devices.verdict.sentence") == found(studio, "ok")
    assert not sees(tab, "devices.finding.1")  # nothing is said twice
    assert not sees(tab, "devices.finding.0.below")
    click(tab, "devices.finding.0.more")
    assert "x1 of x4" in text(tab, "devices.finding.0.below")
    click(tab, "devices.finding.0.action")
    assert QGuiApplication.clipboard().text() == slow.command


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("inventory", [gt_1030()])
def test_a_lost_card_says_so_instead_of_curves_and_processes(
    qtbot, studio, with_cuda, tab, sensor_source, inventory
):
    start(studio, tab)
    show_reading(studio, sensor_source, reading(inventory, 1.0))
    assert sees(tab, "devices.sensor.temperature")
    assert sees(tab, "devices.processes")
    lost = CardReading(
        uuid=inventory.cards[0].identity, telemetry=Telemetry(), error="It was lost."
    )
    show_reading(
        studio,
        sensor_source,
        msgspec.structs.replace(reading(inventory, 2.0), cards=(lost,)),
    )
    assert "GT 1030" in text(tab, "devices.verdict.sentence")
    assert lost.error in text(tab, "devices.verdict.sentence")
    assert not sees(tab, "devices.sensor.temperature")
    assert sees(tab, "devices.sensor.pc_memory")
    assert not sees(tab, "devices.processes.card")
    assert tab.findChild(QLabel, "devices.details.uuid") is not None
    show_reading(studio, sensor_source, reading(inventory, 3.0))
    assert sees(tab, "devices.sensor.temperature")
    assert sees(tab, "devices.processes")


def test_silent_sensors_are_reported(qtbot, studio, tab, sensor_source, monkeypatch):
    start(studio, tab)
    limit(monkeypatch, sensors_silence_ms=20)
    with qtbot.waitSignal(studio.sensors.silence_changed):
        sensor_source.send(reading(cpu_only(), 1.0))
    assert studio.headlines.headline is not None, "the banner says it"
    assert not sees(tab, "devices.trouble"), "once is enough"
    studio.headlines.dismiss()
    assert sees(tab, "devices.trouble")
    assert sees(tab, "devices.sensors")
    limit(monkeypatch, sensors_silence_ms=6000)
    show_reading(studio, sensor_source, reading(cpu_only(), 2.0))
    assert not sees(tab, "devices.trouble")


SLEEPER = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", pci_bus_id="00000000:01:00.0",
    pci_device_id=0x1D01, unreadable=ASLEEP, unreadable_code="asleep",
)  # fmt: skip


@pytest.mark.parametrize(
    "inventory", [msgspec.structs.replace(gt_1030(), devices=(gt_1030().cpu, SLEEPER))]
)
def test_a_sleeping_card_is_woken_by_a_button_and_reported_once(qtbot, studio, engines, tab):
    left_alone = described_with_cuda(
        cuda_available=False, device_count=0, cuda_reason="It sleeps.", cards_asleep=True
    )
    engines.scripts[DescribeEngine] = lambda _engine, request: [
        described_with_cuda() if request.wakes_cards else left_alone
    ]
    start(studio, tab)
    assert text(tab, "devices.verdict.sentence") == found(studio, "card_asleep")
    assert not sees(tab, "devices.trouble")
    assert not sees(tab, "devices.verdict.command")
    find(tab, "devices.verdict.action", QPushButton).click()
    qtbot.waitUntil(lambda: not sees(tab, "devices.verdict.action"))
    assert text(tab, "devices.verdict.sentence") == found(studio, "ok")
