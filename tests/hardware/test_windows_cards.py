import ctypes

import pytest

from gpu_studio.core.telemetry import Telemetry
from gpu_studio.hardware.card_reader import AdapterUse, CardUnreadableError, DriverUnavailableError
from gpu_studio.hardware.display_adapters import joined
from gpu_studio.hardware.pci import DisplayAdapter
from gpu_studio.hardware.windows import counters as counters_module
from gpu_studio.hardware.windows import d3dkmt
from gpu_studio.hardware.windows.counters import GraphicsCounters
from gpu_studio.hardware.windows.d3dkmt import open_adapters
from gpu_studio.hardware.windows.reader import WindowsReader, kernel_adapters
from tests.hardware.fake_windows import REFUSED, FakeGdi32, FakePdh

LUID = "luid_0x00000000_0x0000d1f2"
SLOT = "00000000:03:00.0"


def used_by_two() -> FakePdh:
    other = "luid_0x00000000_0x00000001"
    return FakePdh(
        {
            counters_module._LOAD: {
                f"pid_41_{LUID}_phys_0_eng_0_engtype_3D": 20.0,
                f"pid_42_{LUID}_phys_0_eng_0_engtype_3D": 15.0,
                f"pid_42_{LUID}_phys_0_eng_1_engtype_Compute 0": 30.0,
                f"pid_42_{other}_phys_0_eng_0_engtype_3D": 99.0,
                "nothing like the others": 99.0,
            },
            counters_module._OWN: {f"{LUID}_phys_0".replace("d1f2", "D1F2"): float(2 << 30)},
            counters_module._SHARED: {f"{LUID}_phys_0": float(1 << 30)},
            counters_module._OWN_OF_PROCESS: {
                f"pid_41_{LUID}_phys_0": float(1 << 20),
                f"pid_42_{LUID}_phys_0": float(2 << 20),
            },
        }
    )


def reader_of(library: FakeGdi32, pdh: FakePdh) -> WindowsReader:
    return WindowsReader(lambda: open_adapters(library), GraphicsCounters(pdh))


def test_any_makers_card_is_read():
    library = FakeGdi32()
    reader = reader_of(library, used_by_two())
    opened = reader.card(SLOT)
    card = opened.describe()
    assert (card.maker, card.name, card.pci_bus_id) == ("AMD", "AMD Radeon RX 6600", SLOT)
    assert (card.chip, card.architecture, card.memory_total_bytes) == (
        "Navi 23", "gfx1032", 8 << 30,
    )  # fmt: skip
    now = opened.telemetry()
    assert (now.temperature_c, now.fan_rpm, now.memory_clock_mhz) == (61.5, 1200.0, 875.0)
    assert (now.utilization_percent, now.memory_used_bytes, now.power_w) == (35.0, 2 << 30, None)
    assert [
        (one.pid, one.kind, one.memory_bytes, one.busy_percent) for one in opened.processes()
    ] == [(41, "graphics", 1 << 20, 20.0), (42, "compute and graphics", 2 << 20, 30.0)]
    reader.close()
    assert library.open_handles == 0


def test_what_a_driver_does_not_answer_is_not_reported():
    library = FakeGdi32(
        refused=(d3dkmt._PERFORMANCE, d3dkmt._PERFORMANCE_LIMITS, d3dkmt._SEGMENT_SIZE)
    )
    now = reader_of(library, FakePdh({})).card(SLOT).telemetry()
    assert now == Telemetry()


SIZES_AND_PLACES = [  # of d3dkmthk.h, compiled for 64-bit Windows
    (d3dkmt._AdapterInfo, 20, "luid", 4),
    (d3dkmt._Adapters, 16, "adapters", 8),
    (d3dkmt._Question, 24, "answer", 8),
    (d3dkmt._Handle, 4, "handle", 0),
    (d3dkmt.SegmentSize, 24, "shared", 16),
    (d3dkmt._Address, 12, "function", 8),
    (d3dkmt._Registry, 2080, "bios", 520),
    (d3dkmt._Type, 4, "bits", 0),
    (d3dkmt._DeviceIds, 28, "revision", 20),
    (d3dkmt.Performance, 64, "fan_rpm", 48),
    (d3dkmt.PerformanceLimits, 40, "fan_max_rpm", 24),
]


@pytest.mark.parametrize(("structure", "size_bytes", "field", "place"), SIZES_AND_PLACES)
def test_structures_are_laid_out_as_windows_has_them(structure, size_bytes, field, place):
    assert ctypes.sizeof(structure) == size_bytes
    assert getattr(structure, field).offset == place


class Faulty:
    """A library whose calls end in a fault, but for those that have an answer."""

    def __init__(self, **answers):
        self.answers = answers

    def __getattr__(self, name):
        if name in self.answers:
            return self.answers[name]
        return self._fault

    @staticmethod
    def _fault(*_arguments):
        message = "exception: access violation reading 0x0000000000000010"
        raise OSError(message)


def test_a_fault_in_the_drivers_library_is_not_reported():
    with pytest.raises(DriverUnavailableError):
        WindowsReader(lambda: open_adapters(Faulty()), GraphicsCounters(Faulty()))
    (adapter,) = open_adapters(Faulty(D3DKMTEnumAdapters2=FakeGdi32().D3DKMTEnumAdapters2))
    assert (adapter.ids, adapter.name, adapter.memory()) == (None, "", None)
    adapter.close()
    pdh = used_by_two()
    opened = {name: getattr(pdh, name) for name in ("PdhOpenQueryW", "PdhAddEnglishCounterW")}
    counters = GraphicsCounters(Faulty(**opened))
    assert counters.use_of(LUID) == AdapterUse()
    counters.close()


@pytest.mark.parametrize("library", [object(), FakeGdi32(status=REFUSED)])
def test_without_the_call_the_reason_is_a_sentence(library):
    with pytest.raises(DriverUnavailableError) as raised:
        WindowsReader(lambda: open_adapters(library), GraphicsCounters(object()))
    assert raised.value.driver.error.startswith(("This Windows", "Windows does not"))
    assert kernel_adapters(lambda: open_adapters(library)) == []


def test_an_adapter_that_is_on_no_bus_or_draws_with_the_processor_is_no_card():
    assert kernel_adapters(lambda: open_adapters(FakeGdi32(refused=(d3dkmt._DEVICE_IDS,)))) == []
    assert kernel_adapters(lambda: open_adapters(FakeGdi32(refused=(d3dkmt._ADDRESS,)))) == []


def test_the_kernels_adapters_replace_the_registrys_but_nvidias():
    geforce = DisplayAdapter(vendor_id=0x10DE, device_id=1, name="GeForce")
    radeon = DisplayAdapter(vendor_id=0x1002, device_id=2, name="Radeon")
    matrox = DisplayAdapter(vendor_id=0x102B, device_id=3, name="Matrox")
    in_kernel = [
        DisplayAdapter(vendor_id=0x10DE, device_id=1, name="GeForce", pci_bus_id="0"),
        DisplayAdapter(vendor_id=0x1002, device_id=2, name="Radeon", pci_bus_id=SLOT),
    ]
    assert joined([geforce, radeon, matrox], in_kernel) == [geforce, matrox, in_kernel[1]]


def test_a_card_that_is_gone_is_lost():
    with pytest.raises(CardUnreadableError):
        reader_of(FakeGdi32(), FakePdh({})).card("00000000:09:00.0")
