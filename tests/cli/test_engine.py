import json
import sys
from pathlib import Path
from typing import ClassVar

import pytest

from gpu_studio.builds.shelf import OWN_PYTHON, BuildShelf
from gpu_studio.cli import engine
from gpu_studio.cli.command import DONE, FAILED, INTERRUPTED, WRONG_USE
from gpu_studio.cli.main import main
from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import BuildRecord, Wanted
from gpu_studio.core.builds.trouble import failed_check, no_network
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.program_form import typed
from gpu_studio.core.wheel_table import load_table
from tests.cli.test_doctor import Watch
from tests.fakes.pc import cpu_only, gt_1030


class FakeInstaller:
    """Puts a record on the shelf, or ends otherwise."""

    outcome = InstallProgress(InstallStage.READY, fraction=1.0, result="It ran.")
    asked: ClassVar[list[tuple[str, str]]] = []
    wheels: ClassVar[list[Path | None]] = []

    def __init__(self, root, _log_path):
        self._shelf = BuildShelf(root)

    def installing(self, family, wheels, what):
        self.asked.append((what, family))
        self.wheels.append(wheels)
        yield InstallProgress(InstallStage.DOWNLOADING, 50, 100, 0.4)
        if self.outcome.stage is InstallStage.READY:
            put(self._shelf, family)
        yield self.outcome

    def close(self):
        pass


def put(shelf, family, python=OWN_PYTHON, **facts):
    shelf.folder(family).mkdir(parents=True, exist_ok=True)
    version = f"{load_table().torch_version}+{family}"
    shelf.write_record(BuildRecord(family, version, python, note="It ran.", **facts))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    shelf = BuildShelf(tmp_path / "engines")
    monkeypatch.setattr(engine, "own_shelf", lambda _folder: shelf)
    monkeypatch.setattr(engine, "read_inventory", lambda _path: gt_1030())
    monkeypatch.setattr(engine, "BuildInstallChild", FakeInstaller)
    monkeypatch.setattr(FakeInstaller, "asked", [])
    monkeypatch.setattr(FakeInstaller, "wheels", [])
    monkeypatch.setattr("gpu_studio.cli.main._start_log", lambda: tmp_path / "log")
    return shelf


def test_the_build_for_the_card_is_installed_and_the_best_one_is_used(shelf, capsys):
    assert main(["engine", "install", "auto"]) == DONE
    assert FakeInstaller.asked == [("install", "cu126")]
    assert shelf.wanted() == Wanted(("cu126",), "")
    output = capsys.readouterr()
    assert "GT 1030 (6.1)" in output.err
    assert "cu126 build is ready" in output.out


@pytest.mark.parametrize(
    "error", [None, StudioError(FailureKind.INTERNAL, "The driver does not answer.")]
)
def test_without_a_card_that_answers_it_is_the_cpus(shelf, monkeypatch, error):
    def look(_path):
        if error is not None:
            raise error
        return cpu_only()

    monkeypatch.setattr(engine, "read_inventory", look)
    assert main(["engine", "install", "auto", "--json"]) == DONE
    assert FakeInstaller.asked == [("install", "cpu")]


def test_progress_is_lines_of_json_with_the_build_and_its_reason(shelf, capsys):
    main(["engine", "install", "auto", "--json"])
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["stage"] for one in lines] == ["downloading", "ready"]
    assert {one["family"] for one in lines} == {"cu126"}
    assert "GT 1030" in lines[0]["reason"]


@pytest.mark.parametrize(
    ("outcome", "status"),
    [
        (InstallProgress(InstallStage.FAILED, trouble=no_network("x.org")), FAILED),
        (InstallProgress(InstallStage.PAUSED), INTERRUPTED),
    ],
)
def test_another_end_is_in_the_exit_status_and_changes_no_wish(
    shelf, monkeypatch, capsys, outcome, status
):
    monkeypatch.setattr(FakeInstaller, "outcome", outcome)
    assert main(["engine", "install", "cpu"]) == status
    assert shelf.wanted() == Wanted()
    assert ("x.org" in capsys.readouterr().err) is (status == FAILED)


def test_the_list_has_what_is_installed_and_what_fits_this_pc(shelf, capsys):
    assert main(["engine", "list"]) == DONE
    assert "No engine" in capsys.readouterr().out
    put(shelf, "cpu")
    main(["engine", "list"])
    output = capsys.readouterr().out
    assert "CPU build: 2." in output
    assert "in use" in output
    assert "cu126" in output
    main(["engine", "list", "--json"])
    value = json.loads(capsys.readouterr().out)
    assert value["recommended"] == "cu126"
    assert [(one["family"], one["is_used"]) for one in value["engines"]] == [("cpu", True)]


@pytest.mark.parametrize("arguments", [["install", "cu999"], ["cu999"], ["use", "cu999"]])
def test_a_build_that_there_is_not_is_wrong_use(shelf, capsys, arguments):
    assert main(["engine", *arguments]) == WRONG_USE
    (line,) = capsys.readouterr().err.splitlines()
    assert all(build in line for build in ("cpu", "cu126", "cu130", "rocm-"))
    assert FakeInstaller.asked == []


def test_a_folder_of_wheels_decides_what_auto_can_be(shelf, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("gpu_studio.cli.engine.builds_in", lambda _folder: ("cpu",))
    assert main(["engine", "install", "--wheels", str(tmp_path)]) == DONE
    assert FakeInstaller.asked == [("install", "cpu")]
    assert FakeInstaller.wheels == [tmp_path]
    missing = tmp_path / "missing"
    assert main(["engine", "install", "cpu", "--wheels", str(missing)]) == WRONG_USE
    assert "is not a folder" in capsys.readouterr().err


def test_a_trouble_names_the_command_and_no_button(shelf, monkeypatch, capsys):
    outcome = InstallProgress(InstallStage.FAILED, trouble=failed_check("cpu", "no torch"))
    monkeypatch.setattr(FakeInstaller, "outcome", outcome)
    assert main(["engine", "install", "cpu"]) == FAILED
    errors = capsys.readouterr().err
    assert typed("gpu-studio engine repair cpu") in errors
    assert "no torch" in errors
    assert "“Repair”" not in errors


def test_a_build_of_another_python_cannot_be_used(shelf, capsys):
    put(shelf, "cpu", python="3.1")
    assert main(["engine", "use", "cpu"]) == FAILED
    errors = capsys.readouterr().err
    assert "3.1" in errors
    assert typed("gpu-studio engine install cpu") in errors
    assert shelf.wanted() == Wanted()


def test_another_installed_build_is_used_and_repaired(shelf, capsys):
    put(shelf, "cpu")
    put(shelf, "cu126", runs_on_card=True)
    assert main(["engine", "use", "cpu"]) == DONE
    assert shelf.used() == "cpu"
    assert main(["engine", "repair"]) == DONE
    assert FakeInstaller.asked == [("repair", "cpu")]
    assert main(["engine", "use", "auto"]) == DONE
    assert shelf.used() == "cu126"
    assert main(["engine", "repair", "cu130"]) == FAILED


def test_a_removed_build_is_wanted_no_longer(shelf, capsys):
    put(shelf, "cpu")
    (shelf.folder("cpu") / "file").write_bytes(bytes(5000))
    shelf.write_wanted(Wanted(("cpu", "cu126"), "cpu"))
    assert main(["engine", "remove", "cpu", "--json"]) == DONE
    value = json.loads(capsys.readouterr().out)
    freed = {"removed": "cpu", "freed_bytes": 5000, "used": ""}
    assert value == {"type": "engine_changed", "schema": 1, **freed}
    assert not shelf.folder("cpu").exists()
    assert shelf.wanted() == Wanted(("cu126",), "")
    assert main(["engine", "remove", "cpu"]) == FAILED


@pytest.mark.skipif(sys.platform == "win32", reason="Windows itself locks what is loaded")
def test_a_build_that_a_running_engine_has_loaded_stays(shelf, tmp_path, monkeypatch, capsys):
    put(shelf, "cpu")
    library = shelf.folder("cpu") / "torch" / "libtorch.so"
    process = tmp_path / "proc" / "77"
    process.mkdir(parents=True)
    (process / "maps").write_text(f"7f00-7f01 r-xp 00000000 08:01 5 {library}\n")
    unused = engine.require_unused
    monkeypatch.setattr(
        engine, "require_unused", lambda shelf, family: unused(shelf, family, process.parent)
    )
    for arguments in (["remove", "cpu"], ["repair", "cpu"]):
        assert main(["engine", *arguments]) == FAILED
        assert "process 77" in capsys.readouterr().err
    assert shelf.record("cpu") is not None
    assert FakeInstaller.asked == []


def test_a_command_without_an_engine_says_how_to_get_one(shelf, monkeypatch, capsys):
    monkeypatch.setattr("gpu_studio.cli.pc.own_shelf", lambda _folder: shelf)
    monkeypatch.setattr("gpu_studio.cli.devices.SensorWatch", Watch(gt_1030()))
    monkeypatch.setattr("gpu_studio.cli.devices.read_inventory", lambda _path: gt_1030())
    install = typed("gpu-studio engine install")
    assert main(["pitfall", "tiny_model"]) == FAILED
    assert install in capsys.readouterr().err
    assert main(["devices"]) == DONE
    assert install in capsys.readouterr().out
    assert main(["doctor", "--json"]) == FAILED
    findings = json.loads(capsys.readouterr().out)["findings"]
    missing = next(one for one in findings if one["code"] == "engine_missing")
    assert missing["action"] == typed("gpu-studio engine install cu126")
    put(shelf, "cpu", python="3.1")
    assert main(["pitfall", "tiny_model"]) == FAILED
    assert "3.1" in capsys.readouterr().err
