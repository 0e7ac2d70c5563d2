from __future__ import annotations

import json
import os
import random
import sys

import pytest

from gpu_studio.builds import install
from gpu_studio.builds.client import BuildInstallChild
from gpu_studio.builds.install import BuildInstaller, CheckedBuild, check_build
from gpu_studio.builds.shelf import BuildShelf
from gpu_studio.core.builds.progress import InstallStage
from gpu_studio.core.builds.record import BuildRecord
from gpu_studio.core.builds.trouble import (
    TroubleError,
    TroubleKind,
    disk_full,
    failed_check,
    missing_runtime,
)
from tests.builds.indexes import NEEDS, OWN, TAGS, TORCH, put_needed, put_torch
from tests.builds.wheels import write_wheel

STAGES = InstallStage


class Watch:
    """A clock in which a second goes by at each look."""

    now_s = 0.0

    def __call__(self) -> float:
        self.now_s += 1
        return self.now_s


class Bench:
    """An installer with everything that it reports."""

    def __init__(self, folder, table) -> None:
        self.shelf = BuildShelf(folder / "Übung eins" / "engines")
        self.reports = []
        self.over = False
        self.checked = []
        self.stop_at = None
        self.needs = "."
        self.outcome = CheckedBuild("9.1.0+cpu", False, "It ran.")
        self.installer = BuildInstaller(
            self.shelf,
            self.report,
            lambda: self.over,
            clock=Watch(),
            wait=lambda _seconds: None,
            table=table,
            check=self.check,
        )

    def report(self, progress):
        self.reports.append(progress)
        if progress.stage is self.stop_at:
            self.over = True

    def check(self, family, folder, _log, _is_over):
        self.checked.append((family, (folder / "torch/__init__.py").exists()))
        if isinstance(self.outcome, TroubleError):
            raise self.outcome
        if not (folder / self.needs).exists():
            raise TroubleError(failed_check(family, f"no {self.needs}"))
        return self.outcome

    @property
    def stages(self):
        """Return the stages in order, each once."""
        return list(dict.fromkeys(one.stage for one in self.reports))


@pytest.fixture
def bench(tmp_path, wheel_table):
    return Bench(tmp_path, wheel_table)


def test_a_build_is_downloaded_unpacked_tested_and_recorded_last(
    pip_as_it_is, server, tmp_path, wheel_table
):
    bench = Bench(tmp_path, wheel_table)  # with whatever it asks of pip
    put_torch(server)
    put_needed(server)
    assert bench.installer.install("cpu")
    assert bench.stages == [
        STAGES.PLANNING, STAGES.DOWNLOADING, STAGES.INSTALLING, STAGES.TESTING, STAGES.READY,
    ]  # fmt: skip
    assert bench.checked == [("cpu", True)]
    record = bench.shelf.record("cpu")
    assert record == BuildRecord(
        "cpu", "9.1.0+cpu", OWN, size_bytes=bench.shelf.size_bytes("cpu"), note="It ran.",
        made_by=record.made_by,
    )  # fmt: skip
    assert os.path.samefile(record.made_by, getattr(sys, "_base_executable", sys.executable))
    assert (bench.shelf.folder("cpu") / "deeper.py").exists()
    assert bench.shelf.downloads_bytes() == 0  # the wheels are of no use any more
    fractions = [one.fraction for one in bench.reports]
    assert fractions == sorted(fractions)
    assert fractions[-1] == 1.0
    downloads = [one for one in bench.reports if one.stage is STAGES.DOWNLOADING]
    assert downloads[-1].done_bytes == downloads[-1].total_bytes > 0
    test = next(one for one in bench.reports if one.stage is STAGES.TESTING)
    assert test.total_bytes == 0  # a test has no bytes


def test_the_start_after_a_pause_continues(server, bench, tmp_path, wheel_table):
    put_torch(server, ballast=random.Random(1).randbytes(3_000_000))
    put_needed(server)
    bench.stop_at = STAGES.DOWNLOADING
    assert not bench.installer.install("cpu")
    assert bench.reports[-1].stage is STAGES.PAUSED
    assert bench.shelf.record("cpu") is None
    asked = len(server.asked)
    again = Bench(tmp_path, wheel_table)
    assert again.installer.install("cpu")
    first = next(one for one in again.reports if one.stage is STAGES.DOWNLOADING)
    assert first.done_bytes > 0
    # The plan was kept: only files are asked for, and PyTorch's from its middle on.
    assert server.asked[asked][1:] == (f"/whl/cpu/{TORCH}", f"bytes={first.done_bytes}-")
    assert all(path.endswith(".whl") for _, path, _ in server.asked[asked:])


def paused_in_torch(server, bench):
    put_torch(server, ballast=random.Random(1).randbytes(3_000_000))
    put_needed(server)
    bench.stop_at = STAGES.DOWNLOADING
    assert not bench.installer.install("cpu")


def test_a_file_that_has_moved_meanwhile_is_found_and_continued(
    server, bench, tmp_path, wheel_table
):
    paused_in_torch(server, bench)
    for name in (TORCH, f"{TORCH}.metadata"):
        server.files[f"/other/{name}"] = server.files.pop(f"/whl/cpu/{name}")
    page = server.files["/whl/cpu/torch/"]
    page.content = page.content.replace(b"../torch-", b"/other/torch-")
    again = Bench(tmp_path, wheel_table)
    assert again.installer.install("cpu")
    (wish,) = server.ranges_of(f"/other/{TORCH}")
    assert int(wish.removeprefix("bytes=").rstrip("-")) > 0  # the same hash: the same bytes


def test_without_a_network_the_kept_plan_stays(server, bench, tmp_path, wheel_table):
    paused_in_torch(server, bench)
    server.files.clear()
    again = Bench(tmp_path, wheel_table)
    assert not again.installer.install("cpu")
    assert again.reports[-1].trouble is not None
    kept = bench.shelf.downloads / f"{TORCH}.part"
    assert kept.stat().st_size > 0


def test_a_stop_while_unpacking_leaves_no_build_and_downloads_nothing_twice(
    server,
    bench,
    tmp_path,
    wheel_table,
):
    put_torch(server)
    put_needed(server)
    bench.stop_at = STAGES.INSTALLING
    assert not bench.installer.install("cpu")
    assert bench.shelf.records() == ()
    asked = len(server.asked)
    again = Bench(tmp_path, wheel_table)
    assert again.installer.install("cpu")
    assert len(server.asked) == asked
    assert again.shelf.record("cpu") is not None


def test_too_small_a_disk_is_refused_before_the_download(server, bench, monkeypatch):
    put_torch(server)
    put_needed(server)
    monkeypatch.setattr(BuildShelf, "free_bytes", lambda _self: 100)
    assert not bench.installer.install("cpu")
    assert bench.reports[-1].trouble.kind is TroubleKind.DISK_FULL
    assert server.ranges_of(f"/whl/cpu/{TORCH}") == []


def test_a_fetched_build_changes_nothing_and_needs_no_network_later(server, bench):
    bench.shelf.folder("cpu").mkdir(parents=True)
    old = BuildRecord("cpu", "8.0+cpu", OWN)
    bench.shelf.write_record(old)
    put_torch(server)
    put_needed(server)
    assert bench.installer.fetch("cpu")
    assert bench.reports[-1].stage is STAGES.FETCHED
    assert bench.shelf.record("cpu") == old
    asked = len(server.asked)
    assert bench.installer.install("cpu")
    assert len(server.asked) == asked
    assert bench.shelf.record("cpu").torch_version == "9.1.0+cpu"


def test_a_build_that_fails_its_test_is_no_engine_but_stays_on_the_list(server, bench):
    """From the list, it can be repaired and removed."""
    put_torch(server)
    put_needed(server)
    bench.outcome = TroubleError(missing_runtime("DLL load failed"))
    assert not bench.installer.install("cpu")
    assert bench.reports[-1].stage is STAGES.FAILED
    assert bench.reports[-1].trouble.kind is TroubleKind.NO_RUNTIME
    (rest,) = bench.shelf.records()
    assert not rest.is_ready
    assert rest.size_bytes == bench.shelf.size_bytes("cpu") > 0
    assert bench.shelf.used() == ""
    asked = len(server.asked)
    bench.outcome = CheckedBuild("9.1.0+cpu", False, "It ran.")
    assert bench.installer.install("cpu")  # with the runtime installed meanwhile
    assert len(server.asked) == asked
    assert bench.shelf.record("cpu").is_ready


def test_an_older_build_is_replaced_as_a_whole(server, bench):
    old = bench.shelf.folder("cpu") / "torch-8.0.dist-info"
    old.mkdir(parents=True)
    (bench.shelf.folder("cpu") / "old.py").write_text("")
    bench.shelf.write_record(BuildRecord("cpu", "8.0+cpu", OWN))
    put_torch(server)
    put_needed(server)
    assert bench.installer.install("cpu")
    assert bench.shelf.record("cpu").torch_version == "9.1.0+cpu"
    assert not old.exists()
    assert not (bench.shelf.folder("cpu") / "old.py").exists()


def folder_of_wheels(tmp_path, init=""):
    folder = tmp_path / "my wheels äö"
    write_wheel(folder, "torch", "9.1.0+cpu", {"torch/__init__.py": init}, NEEDS, TAGS)
    write_wheel(folder, "needed", "1.5", {"needed.py": ""})
    return folder


def test_a_repair_writes_only_what_is_damaged(server, bench, tmp_path):
    folder = folder_of_wheels(tmp_path)
    assert bench.installer.install("cpu", folder)
    home = bench.shelf.folder("cpu")
    (home / "needed.py").unlink()
    (home / "torch" / "made later.pyc").write_text("")
    assert bench.installer.repair("cpu", folder)
    assert (home / "needed.py").exists()
    assert (home / "torch" / "made later.pyc").exists()
    assert bench.shelf.record("cpu") is not None


def test_a_repair_of_a_sound_build_needs_neither_network_nor_wheels(server, bench, tmp_path):
    assert bench.installer.install("cpu", folder_of_wheels(tmp_path))
    assert bench.installer.repair("cpu")
    assert bench.reports[-1].stage is STAGES.READY
    assert server.asked == []


# The child that tests a build, with a stand-in for PyTorch.
_GOOD = """
import json, sys
import torch
print(json.dumps({"torch_version": torch.__version__, "runs_on_card": False, "sentence": "ran"}))
"""


def check_with(tmp_path, monkeypatch, script, init="__version__ = '9.1.0+cpu'"):
    build = tmp_path / "engines äö" / "cpu"
    (build / "torch").mkdir(parents=True)
    (build / "torch" / "__init__.py").write_text(init)
    path = tmp_path / "check.py"
    path.write_text(script)
    return check_build("cpu", build, tmp_path / "log", module=path, longest_s=60)


def test_a_test_imports_from_the_builds_folder(tmp_path, monkeypatch):
    checked = check_with(tmp_path, monkeypatch, _GOOD)
    assert checked == CheckedBuild("9.1.0+cpu", False, "ran")


@pytest.mark.parametrize(
    ("init", "kind", "fact"),
    [
        ("raise ImportError('DLL load failed while importing _C')", TroubleKind.NO_RUNTIME, "DLL"),
        ("raise OSError('[WinError 126] c10.dll or one of its parts')", TroubleKind.NO_RUNTIME,
         "126"),
        ("raise ImportError('libcudart.so.12: cannot open')", TroubleKind.CHECK, "libcudart"),
        ("import os; os._exit(3)", TroubleKind.CHECK, "without an answer"),
    ],
)  # fmt: skip
def test_a_build_that_does_not_run_says_why(tmp_path, monkeypatch, init, kind, fact):
    with pytest.raises(TroubleError) as raised:
        check_with(tmp_path, monkeypatch, _GOOD, init)
    assert raised.value.trouble.kind is kind
    assert fact in raised.value.trouble.detail


def test_the_installers_process_reports_every_step_and_its_exit_code(tmp_path):
    """The folder lacks PyTorch: the sentence comes as the last line."""
    engines = tmp_path / "engines"
    (tmp_path / "empty").mkdir()
    child = BuildInstallChild(engines, tmp_path / "log")
    result = list(child.installing("cpu", tmp_path / "empty"))
    assert [one.stage for one in result] == [STAGES.PLANNING, STAGES.FAILED]
    assert result[-1].trouble.kind is TroubleKind.FOLDER


def test_a_pause_ends_the_installers_process(server, tmp_path, monkeypatch):
    """It waits for a server that does not answer: the end of its input ends it all the same."""
    served = put_torch(server)
    put_needed(server)
    served.stalls = True
    part = tmp_path / "engines" / "downloads" / f"{TORCH}.part"
    part.parent.mkdir(parents=True)
    part.write_bytes(served.content[:100])
    url = f"{server.url}/whl/cpu/{TORCH.replace('+', '%2B')}"
    part.with_name(f"{part.name}.json").write_text(json.dumps({"url": url, "etag": served.etag}))
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    script = tmp_path / "serve.py"
    script.write_text(
        "import sys\n"
        "from gpu_studio.builds import install, serve\n"
        "from gpu_studio.core.wheel_table import TorchBuild, WheelTable\n"
        f"build = TorchBuild('cpu', '{server.url}/whl/cpu', {{}}, {{}})\n"
        "table = WheelTable('9.1.0', (build,))\n"
        "install.load_table = lambda: table\n"
        "sys.exit(serve.main())\n"
    )
    monkeypatch.setattr("gpu_studio.builds.client._MODULE", script)
    child = BuildInstallChild(tmp_path / "engines", tmp_path / "log")
    collected = []
    for progress in child.installing("cpu"):
        collected.append(progress)
        if progress.stage is STAGES.DOWNLOADING:
            child.pause()
    assert collected[-1].stage is STAGES.PAUSED
    assert collected[-1].done_bytes >= 100  # the person sees that nothing is lost
    assert collected[-1].fraction == collected[-2].fraction > 0
    assert (tmp_path / "engines" / "downloads" / "cpu.plan.json").exists()


def test_a_disk_that_fills_up_reports_the_room_for_all_that_is_left(server, bench, monkeypatch):
    put_torch(server, ballast=random.Random(1).randbytes(300_000))
    put_needed(server)
    free = [10_000_000]
    monkeypatch.setattr(BuildShelf, "free_bytes", lambda _self: free[0])

    def fill(_self, wheel, _told):
        free[0] = 1000
        raise TroubleError(disk_full("/deep/down", 12, "no space left"))

    monkeypatch.setattr(install.Unpacker, "unpack", fill)
    assert not bench.installer.install("cpu")
    trouble = bench.reports[-1].trouble
    assert trouble.kind is TroubleKind.DISK_FULL
    assert str(bench.shelf.root) in trouble.next_step
    assert "/deep/down" not in trouble.next_step
    assert "1.1\u202fMB" in trouble.next_step  # 3.7 times the wheels
    assert trouble.detail == "no space left"
