"""``gpu-studio engine``: the builds that this program installs, listed and installed."""

from __future__ import annotations

import json
from typing import ClassVar

import pytest

from gpu_studio.builds.shelf import OWN_PYTHON, BuildShelf
from gpu_studio.cli import engine
from gpu_studio.cli.command import DONE, FAILED, INTERRUPTED, WRONG_USE
from gpu_studio.cli.main import main
from gpu_studio.core.builds.progress import InstallProgress, InstallStage
from gpu_studio.core.builds.record import BuildRecord, Wanted
from gpu_studio.core.builds.trouble import no_network
from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.wheel_table import load_table
from tests.fakes.pc import cpu_only, gt_1030


class FakeInstaller:
    """Puts a record on the shelf, or ends otherwise."""

    outcome = InstallProgress(InstallStage.READY, fraction=1.0, result="It ran.")
    families: ClassVar[list[str]] = []

    def __init__(self, shelf, on_progress, is_over):
        self._shelf, self._on_progress = shelf, on_progress

    def install(self, family):
        self.families.append(family)
        self._on_progress(InstallProgress(InstallStage.DOWNLOADING, 50, 100, 0.4))
        if self.outcome.stage is InstallStage.READY:
            put(self._shelf, family)
        self._on_progress(self.outcome)


def put(shelf, family):
    shelf.folder(family).mkdir(parents=True)
    version = f"{load_table().torch_version}+{family}"
    shelf.write_record(BuildRecord(family, version, OWN_PYTHON, note="It ran."))


@pytest.fixture
def shelf(tmp_path, monkeypatch):
    shelf = BuildShelf(tmp_path / "engines")
    monkeypatch.setattr(engine, "own_shelf", lambda _folder: shelf)
    monkeypatch.setattr(engine, "read_inventory", lambda _path: gt_1030())
    monkeypatch.setattr(engine, "BuildInstaller", FakeInstaller)
    monkeypatch.setattr(FakeInstaller, "families", [])
    monkeypatch.setattr("gpu_studio.cli.main._start_log", lambda: tmp_path / "log")
    return shelf


def test_the_build_for_the_card_is_installed_and_the_best_one_is_used(shelf, capsys):
    assert main(["engine", "install", "auto"]) == DONE
    assert FakeInstaller.families == ["cu126"]
    assert shelf.wanted() == Wanted(("cu126",), "")
    output = capsys.readouterr()
    assert "GT 1030 (6.1)" in output.err
    assert "cu126 engine is ready" in output.out


def test_a_build_that_is_named_is_used_from_now_on(shelf, capsys):
    put(shelf, "cpu")
    assert main(["engine", "install", "cu126"]) == DONE
    assert shelf.wanted().used == "cu126"
    assert shelf.used() == "cu126"


def test_what_is_installed_is_not_installed_again(shelf, capsys):
    put(shelf, "cpu")
    assert main(["engine", "install", "cpu", "--json"]) == DONE
    assert FakeInstaller.families == []
    assert json.loads(capsys.readouterr().out)["stage"] == "ready"


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
    assert FakeInstaller.families == ["cpu"]


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
    assert "CPU engine: 2." in output
    assert "in use" in output
    assert "cu126" in output
    main(["engine", "list", "--json"])
    value = json.loads(capsys.readouterr().out)
    assert value["recommended"] == "cu126"
    assert [(one["family"], one["is_used"]) for one in value["engines"]] == [("cpu", True)]


@pytest.mark.parametrize("arguments", [["install", "cu999"], ["cu999"], []])
def test_a_build_that_there_is_not_is_wrong_use(shelf, capsys, arguments):
    assert main(["engine", *arguments]) == WRONG_USE
    (line,) = capsys.readouterr().err.splitlines()
    assert all(build in line for build in ("cpu", "cu126", "cu130", "auto"))
    assert FakeInstaller.families == []


def test_a_python_with_its_own_pytorch_installs_none(shelf, monkeypatch, capsys):
    monkeypatch.setattr(engine, "own_shelf", lambda _folder: None)
    assert main(["engine", "cpu"]) == WRONG_USE
    assert "package of this Python" in capsys.readouterr().err
