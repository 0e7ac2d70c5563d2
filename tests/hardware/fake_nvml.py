"""A stand-in for the module pynvml with scripted answers: no library, no driver, no card."""

from types import SimpleNamespace
from typing import Any

GT_1030_UUID = "GPU-11111111-2222-3333-4444-555555555555"


class NVMLError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(f"NVML error {value}")
        self.value = value


def garbage_name() -> UnicodeDecodeError:
    return UnicodeDecodeError("utf-8", b"\xf8\x01", 0, 1, "invalid start byte")


def process(pid: int, used_bytes: int | None) -> SimpleNamespace:
    return SimpleNamespace(pid=pid, usedGpuMemory=used_bytes)


# What nvidia-smi prints of an idle GT 1030; the card has no power sensor.
GT_1030: dict[str, Any] = {
    "Name": "NVIDIA GeForce GT 1030",
    "UUID": GT_1030_UUID,
    "PciInfo": SimpleNamespace(busId=b"00000000:01:00.0\0\0"),
    "Index": 0,
    "MemoryInfo": SimpleNamespace(total=2048 << 20, used=4 << 20, free=2000 << 20),
    ("MemoryInfo", 0x02000028): SimpleNamespace(
        total=2048 << 20, used=4 << 20, free=2000 << 20, reserved=44 << 20
    ),
    "CudaComputeCapability": (6, 1),
    "NumGpuCores": 384,
    "Architecture": 4,
    "MemoryBusWidth": 64,
    ("MaxClockInfo", 1): 1911,
    ("MaxClockInfo", 2): 3004,
    ("ClockInfo", 1): 139,
    ("ClockInfo", 2): 405,
    "MaxPcieLinkGeneration": 3,
    "MaxPcieLinkWidth": 4,
    "CurrPcieLinkGeneration": 1,
    "CurrPcieLinkWidth": 4,
    ("PcieThroughput", 0): 3,
    ("PcieThroughput", 1): 5,
    "VbiosVersion": b"86.08.0C.00.1A",
    "DisplayActive": 1,
    "ComputeMode": 0,
    "UtilizationRates": SimpleNamespace(gpu=7, memory=2),
    "PowerUsage": NVMLError(3),
    "EnforcedPowerLimit": NVMLError(3),
    "PowerManagementLimit": 19_000,
    ("Temperature", 0): 26,
    "FanSpeed": 35,
    "PerformanceState": 8,
    "CurrentClocksEventReasons": 1,
    "ComputeRunningProcesses": [],
    "GraphicsRunningProcesses": [],
}


class FakeNvml:
    """Answers by function name without nvmlDeviceGet, or (name, argument); an error is raised.

    ``asked`` lists every question put to a card.
    """

    nvmlMemory_v2 = 0x02000028  # noqa: N815

    def __init__(
        self, *cards: dict[Any, Any], init: Exception | None = None, **system: Any
    ) -> None:
        self.cards = list(cards)
        self.init = init
        self.system = {
            "DriverVersion": "570.86.15",
            "CudaDriverVersion_v2": 12080,
            "NVMLVersion": "12.570.86.15",
            **system,
        }
        self.asked: list[tuple[str, tuple[Any, ...]]] = []
        self.open_sessions = 0

    def nvmlInit(self) -> None:
        if self.init:
            raise self.init
        self.open_sessions += 1

    def nvmlShutdown(self) -> None:
        self.open_sessions -= 1

    def nvmlDeviceGetCount(self) -> int:
        return len(self.cards)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:
        error = self.cards[index].get("Handle")
        if error:
            raise error
        return index

    def nvmlDeviceGetHandleByPciBusId(self, bus_id: str) -> int:
        for index, card in enumerate(self.cards):
            if card["PciInfo"].busId.rstrip(b"\0").decode() == bus_id:
                return index
        raise NVMLError(6)

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> int:
        for index, card in enumerate(self.cards):
            if card["UUID"] == uuid:
                return index
        raise NVMLError(6)

    def __getattr__(self, function: str) -> Any:
        if function.startswith("nvmlSystemGet"):
            return lambda *arguments: _answer(self.system, function[len("nvmlSystemGet") :], ())
        if function.startswith("nvmlDeviceGet"):
            name = function[len("nvmlDeviceGet") :]

            def ask(handle: int, *arguments: Any) -> Any:
                self.asked.append((name, arguments))
                return _answer(self.cards[handle], name, arguments)

            return ask
        raise AttributeError(function)


def _answer(answers: dict[Any, Any], name: str, arguments: tuple[Any, ...]) -> Any:
    key = (name, *arguments) if arguments else name
    answer = answers.get(key, NVMLError(13))
    if isinstance(answer, Exception):
        raise answer
    return answer
