"""How an installation survives kills and power cuts: each time, the build is whole in the end.

``python -m tests.bench.power_cuts [--times 200] [--seed 1]``

An installer's process is killed at a random moment of its download or its unpacking. Then what a
power cut takes is taken: bytes of files that were not yet synced, of parts of downloads, of the
plan, or of a wheel's RECORD, with the files that it stood for. After that, the next installation
must leave every file of every wheel as it is published, by its SHA-256.
"""

from __future__ import annotations

import argparse
import collections
import hashlib
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from gpu_studio.builds.install import BuildInstaller, CheckedBuild
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.wheel_table import TorchBuild, WheelTable
from tests.builds.indexes import put_needed, put_torch
from tests.builds.wheel_server import WheelServer
from tests.builds.wheels import wheel_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.builds.progress import InstallProgress

_BALLAST = 6 << 20
_FILES = 60


def installer(
    engines: Path, url: str, on_progress: Callable[[InstallProgress], object]
) -> BuildInstaller:
    """Return an installer of the server's build, which needs no computation to be tested."""
    table = WheelTable("9.1.0", (TorchBuild("cpu", f"{url}/whl/cpu", {}, {}),))
    checked = CheckedBuild("9.1.0+cpu", False, "It ran.")
    return BuildInstaller(BuildShelf(engines), on_progress, table=table, check=lambda *_: checked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--child", nargs=3, metavar=("ENGINES", "URL", "S"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child is not None:
        install_and_die(Path(options.child[0]), options.child[1], float(options.child[2]))
        return
    dice = random.Random(options.seed)
    counts: collections.Counter[str] = collections.Counter()
    with tempfile.TemporaryDirectory() as folder, WheelServer() as server:
        os.environ |= {
            "no_proxy": "*", "NO_PROXY": "*", "PIP_CONFIG_FILE": os.devnull,
            "PIP_INDEX_URL": f"{server.url}/simple", "PIP_NO_CACHE_DIR": "1",
        }  # fmt: skip
        wanted = serve_wheels(server, dice)
        plan, whole_s = first_installation(Path(folder) / "first", server.url, wanted)
        for number in range(options.times):
            engines = Path(folder) / f"{number}"
            (engines / "downloads").mkdir(parents=True)
            (engines / "downloads" / "cpu.plan.json").write_bytes(plan)
            die_s = dice.uniform(0.0, 1.1) * whole_s
            subprocess.run(child(engines, server.url, die_s), check=False)
            where = stage_of(engines)
            lost = cut_power(engines, dice)
            end = end_of(engines, server.url)
            problem = "" if end is InstallStage.READY else f"it ended {end.value}"
            problem = problem or wrong_file(engines / "cpu", wanted)
            counts[f"killed {where}"] += 1
            counts["lost bytes of a file" if lost else "lost nothing"] += 1
            if problem:
                counts["not whole"] += 1
                print(f"  {number}: killed {where}, lost {lost or 'nothing'}: {problem}")
    print(f"{options.times} kills; download and unpacking take {whole_s:.2f} s")
    for what, count in sorted(counts.items()):
        print(f"  {what}: {count}")
    print(f"  whole in the end: {options.times - counts['not whole']}")
    sys.exit(1 if counts["not whole"] else 0)


def serve_wheels(server: WheelServer, dice: random.Random) -> dict[str, str]:
    """Serve PyTorch and what it needs; return the SHA-256 of each file by its place."""
    put_torch(server, ballast=dice.randbytes(_BALLAST))
    put_needed(server)
    files = {f"deeper/{one}.py": dice.randbytes(20_000) for one in range(_FILES)}
    many = wheel_bytes("deeper", "2.0", files)
    path = "/files/deeper-2.0-py3-none-any.whl"
    page = server.files["/simple/deeper/"]
    old = server.files[path].sha256
    server.files[path].content = many
    page.content = page.content.replace(old.encode(), server.files[path].sha256.encode())
    wanted = {}
    for name, served in server.files.items():
        if name.endswith(".whl"):
            with zipfile.ZipFile(BytesIO(served.content)) as archive:
                for one in archive.namelist():
                    if not one.endswith("/RECORD"):
                        wanted[one] = hashlib.sha256(archive.read(one)).hexdigest()
    return wanted


def first_installation(engines: Path, url: str, wanted: dict[str, str]) -> tuple[bytes, float]:
    """Install once undisturbed; return its plan, and the seconds of download and unpacking."""
    plan_path = engines / "downloads" / "cpu.plan.json"
    reports: list[InstallProgress] = []
    first = installer(engines, url, reports.append)
    assert first.fetch("cpu"), reports[-1]
    plan = plan_path.read_bytes()
    for path in engines.glob("downloads/*.whl"):
        path.unlink()
    spent = subprocess.run(child(engines, url, 0.0), check=True, capture_output=True, text=True)
    whole_s = float(spent.stdout)
    assert not wrong_file(engines / "cpu", wanted)
    return plan, whole_s


def child(engines: Path, url: str, die_s: float) -> list[str]:
    return [
        sys.executable, "-m", "tests.bench.power_cuts", "--child", str(engines), url, str(die_s)
    ]  # fmt: skip


def install_and_die(engines: Path, url: str, die_s: float) -> None:
    """Install; be killed some seconds after the first byte, in the middle of any instruction.

    Args:
        engines: the folder of all builds.
        url: the server's.
        die_s: the seconds; 0 survives, and prints how many it took.
    """
    begun_s: list[float] = []

    def on_progress(progress: InstallProgress) -> None:
        if progress.stage is InstallStage.DOWNLOADING and not begun_s:
            begun_s.append(time.perf_counter())
            signal.setitimer(signal.ITIMER_REAL, die_s)  # nobody handles the alarm: it kills

    installer(engines, url, on_progress).install("cpu")
    if not die_s:
        print(time.perf_counter() - begun_s[0])


def stage_of(engines: Path) -> str:
    if (engines / "cpu.json").exists():
        return "at its end"
    if (engines / "cpu").exists():
        return "while it unpacked"
    begun = [path for path in engines.glob("downloads/*") if path.name != "cpu.plan.json"]
    return "while it downloaded" if begun else "before its first byte"


def cut_power(engines: Path, dice: random.Random) -> str:
    """Take bytes of files as a power cut does; return the names of some of them."""
    lost: list[Path] = [
        path
        for path in engines.glob("downloads/*")
        # A lost plan asks pip again, which takes longer than all the rest.
        if path.is_file() and dice.random() < (0.03 if path.name.endswith(".json") else 0.5)
    ]
    records = {path.parent: path for path in engines.glob("cpu/*.dist-info/RECORD")}
    doomed = {folder for folder in records if dice.random() < 0.5}
    safe = {
        line.split(",")[0]
        for folder, record in records.items()
        if folder not in doomed
        for line in record.read_text(encoding="utf-8").splitlines()
    }
    for path in engines.glob("cpu/**/*"):
        if path.is_file() and path.relative_to(engines / "cpu").as_posix() not in safe:
            is_record = path.name == "RECORD" and path.parent in doomed
            if is_record or dice.random() < 0.4:
                lost.append(path)
    for path in lost:
        damage(path, dice)
    names = sorted({path.name for path in lost})
    return ", ".join(names[:5])


def damage(path: Path, dice: random.Random) -> None:
    """Leave a file as a power cut does: empty, half, with zeros or with other bytes in it."""
    content = path.read_bytes()
    half = len(content) // 2
    path.write_bytes(
        dice.choice((
            b"", content[:half], bytes(len(content)), content[:half] + bytes(len(content) - half),
            b"\xff" * len(content), dice.randbytes(len(content)), content + b"\xff" * 9,
        ))
    )  # fmt: skip


def end_of(engines: Path, url: str) -> InstallStage:
    """Install again, and once more with Repair as the page offers it; return how it ended."""
    reports: list[InstallProgress] = []
    again = installer(engines, url, reports.append)
    if not again.install("cpu"):
        again.repair("cpu")
    return reports[-1].stage


def wrong_file(folder: Path, wanted: dict[str, str]) -> str:
    """Return the first file that is not as published; empty if all are."""
    for name, sha256 in wanted.items():
        path = folder / name
        if not path.is_file():
            return f"{name} is missing"
        if hashlib.sha256(path.read_bytes()).hexdigest() != sha256:
            return f"{name} is damaged"
    return ""


if __name__ == "__main__":
    main()
