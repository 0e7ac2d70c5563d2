"""What one poll of one card costs, against nvitop's API reading the same fields.

    python -m tests.bench.polling --make FOLDER      makes an environment with nvitop there, first
    python -m tests.bench.polling --python PYTHON    takes the Python of one that has it

nvitop pins an older nvidia-ml-py than this program uses, so it has an environment of its own. Both
sides poll a soft card (`tests/softcards`), whose NVML answers at once: what is compared is the CPU
time of everything above the driver. This Python must be that of an environment with a CUDA build
of PyTorch, as for all soft cards. A process that computes is on the card, so that there is one to
name. This program's side does more: it reads PCIe generation and width and clock-event reasons as
well, and watches that the driver answers.

The target: half of nvitop's CPU time, at most.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import venv
from pathlib import Path

from tests.bench.ratios import describe_machine, paired_ratio, verdict
from tests.softcards.cards import MIB, Other, soft_cards
from tests.softcards.catalogue import RTX_3060

_TARGET = 0.5
_ROUNDS = 25
_POLLS = 200
_ROOT = Path(__file__).resolve().parent.parent.parent

# Each side answers a line with the CPU seconds that its polls took.
_OURS = """
import sys, time
from gpu_studio.hardware.reader import PcSensors
sensors = PcSensors(find_adapters=lambda: [], visible_devices=None)
sensors.inventory()
def poll():
    (card,) = sensors.card_readings()
    assert card.telemetry.temperature_c == 41
    assert card.processes[0].name and card.processes[0].memory_bytes
"""
_NVITOP = """
import sys, time
from nvitop import Device
device = Device(0)
def poll():
    with device.oneshot():
        fields = (
            device.power_usage(), device.power_limit(), device.temperature(), device.fan_speed(),
            device.gpu_utilization(), device.memory_utilization(), device.memory_used(),
            device.memory_free(), device.memory_total(), device.performance_state(),
            device.sm_clock(), device.memory_clock(), device.pcie_tx_throughput(),
            device.pcie_rx_throughput(),
        )
        found = [
            (process.name(), process.username(), process.type, process.gpu_memory())
            for process in device.processes().values()
        ]
    assert fields[2] == 41 and found[0][0] and found[0][3]
"""
_LOOP = """
poll()
for line in sys.stdin:
    began_s = time.process_time()
    for _ in range(int(line)):
        poll()
    print(time.process_time() - began_s, flush=True)
"""


class Side:
    """One process that polls when it is told to."""

    def __init__(self, python: str, code: str, environment: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [python, "-c", code + _LOOP],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment, cwd=_ROOT,
        )  # fmt: skip

    def poll(self, count: int) -> float:
        """Return the CPU seconds that so many polls took."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{count}\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            msg = "one side ended; what it said is above"
            raise SystemExit(msg)
        return float(answer)

    def end(self) -> None:
        """Let the process end."""
        self._process.communicate()


def make_environment(folder: Path) -> str:
    """Make an environment with nvitop; return its Python."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "nvitop"], check=True)
    return str(python)


def main() -> int:
    """Measure and print the ratio; return 0 if the target is reached."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    chosen = parser.add_mutually_exclusive_group(required=True)
    chosen.add_argument("--make", type=Path, metavar="FOLDER")
    chosen.add_argument("--python", metavar="PYTHON")
    options = parser.parse_args()
    python = options.python or make_environment(options.make)
    print(describe_machine())
    with soft_cards([RTX_3060]) as pc:
        pc.set_others(0, Other(os.getpid(), 300 * MIB))
        # NVML alone: nvitop's environment has no PyTorch whose runtime could be replaced.
        environment = {name: value for name, value in pc.env.items() if name != "LD_PRELOAD"}
        sides = Side(sys.executable, _OURS, environment), Side(python, _NVITOP, environment)
        ours_s, nvitop_s = [], []
        for _ in range(_ROUNDS):
            ours_s.append(sides[0].poll(_POLLS))
            nvitop_s.append(sides[1].poll(_POLLS))
        for side in sides:
            side.end()
    for name, spent_s in (("GPU Studio", ours_s), ("nvitop", nvitop_s)):
        print(f"{name:<12}{min(spent_s) / _POLLS * 1e6:8.0f} µs of CPU a poll, at best")
    ratio = paired_ratio(ours_s, nvitop_s)
    print(f"ratio       {ratio}; {verdict(ratio.median, _TARGET)}")
    return 0 if ratio.median <= _TARGET else 1


if __name__ == "__main__":
    raise SystemExit(main())
