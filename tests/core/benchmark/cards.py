"""The card of these tests, as its driver describes it."""

from gpu_studio.core.devices.devices import Device
from gpu_studio.core.telemetry import Telemetry

GT_1030 = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", compute_capability="6.1", multiprocessors=3,
    memory_bus_width_bits=64, sm_clock_max_mhz=1468, memory_clock_max_mhz=3004,
    pcie_generation_max=3, pcie_width_max=4,
    telemetry=Telemetry(pcie_generation=3, pcie_width=4),
)  # fmt: skip
