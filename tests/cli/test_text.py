from __future__ import annotations

import io

import pytest

from gpu_studio.cli.bench_runs import verdicts
from gpu_studio.cli.devices import device_lines
from gpu_studio.cli.screen import Progress, TerminalTable, plain
from gpu_studio.core.benchmark.run import Run
from gpu_studio.core.devices.devices import Device, Driver, GpuProcess, Inventory
from gpu_studio.core.messages.run_messages import RunWorkload
from gpu_studio.core.telemetry import Telemetry
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.run_answers import run_events

CPU = Device(
    kind="cpu", name="AMD Ryzen 7 5700G", cores=8, threads=16, memory_total_bytes=32 << 30,
    telemetry=Telemetry(utilization_percent=3.0, memory_used_bytes=4 << 30),
)  # fmt: skip
GT_1030 = Device(
    kind="cuda", name="NVIDIA GeForce GT 1030", uuid="GPU-1", memory_total_bytes=2 << 30,
    compute_capability="6.1", architecture="Pascal", torch_index=0, driver_index=0,
    pci_bus_id="00000000:01:00.0", multiprocessors=3, cuda_cores=384, pcie_generation_max=3,
    pcie_width_max=4, display_active=True,
    telemetry=Telemetry(memory_used_bytes=340 << 20, temperature_c=40.0, pstate=0),
    processes=(GpuProcess(pid=244643, name="python", user="ai", memory_bytes=336 << 20),),
)  # fmt: skip
DRIVER = Driver(version="570.86.15", cuda_version="12.8")


def text_of(*devices, description=None, **facts):
    inventory = Inventory(devices=devices, **facts)
    return plain("\n".join(device_lines(inventory, description)).replace("\n", "|"))


def test_a_card_is_reported_with_what_it_refuses():
    text = text_of(CPU, GT_1030, driver=DRIVER, description=described_with_cuda())
    for words in (
        "cpu       AMD Ryzen 7 5700G", "8 cores", "16 threads", "32 GiB", "AVX2",
        "cuda:0    NVIDIA GeForce GT 1030", "2 GiB", "6.1 (Pascal)",
        "3 multiprocessors", "384 cores", "PCIe 3.0 × 4", "00000000:01:00.0",
        "nvidia-smi 0", "your monitor", "340 MiB", "40 °C", "power n/a", "P0",
        "python", "244643", "336 MiB", "CUDA 12.6", "570.86.15", "12.8",
    ):  # fmt: skip
        assert words in text


def test_a_hidden_and_an_unreadable_card_say_so():
    card = Device(kind="cuda", name="NVIDIA card 0", unreadable="It is lost.")
    text = text_of(CPU, card, driver=DRIVER, other_gpus=("AMD Radeon RX 6600",))
    assert "(hidden)  NVIDIA card 0" in text
    assert card.unreadable in text
    assert "(no CUDA) AMD Radeon RX 6600" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [("1.5\u202fms", "1.5 ms"), ("evil\x1b[2Jname", "evil [2Jname"), ("two\nlines", "two lines")],
)
def test_what_is_written_is_one_plain_line(text, shown):
    assert plain(text) == shown


def test_a_table_aligns_numbers_to_the_right():
    table = TerminalTable([("size", -6), ("device", 8), ("time", -8)])
    assert table.heading == "  size  device        time"
    assert table.row(["64", "cuda:0", "1.5\u202fms"]) == "    64  cuda:0      1.5 ms"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_progress_is_written_over_on_a_terminal_alone():
    terminal, file = Terminal(), io.StringIO()
    for stream in (terminal, file):
        progress = Progress(stream)
        progress.show("a long text")
        progress.show("short")
        progress.clear()
    assert terminal.getvalue() == "\ra long text\rshort      \r     \r"
    assert file.getvalue() == ""


def finished_run(device, size, dtype="float32"):
    request = RunWorkload(run_id="1", workload="matmul", device=device, size=size, dtype=dtype)
    run = Run(request)
    for event in run_events(request):
        run.apply(event)
    return run


def test_there_is_a_verdict_for_each_dtype():
    results = [
        finished_run(device, size, dtype).result
        for dtype in ("float32", "float16")
        for size in (64, 4096)
        for device in ("cpu", "cuda:0")
    ]
    first, second = verdicts(results)
    assert "float32" in first
    assert "float16" in second
    assert "GT 1030" in first
    assert list(verdicts([])) == []
