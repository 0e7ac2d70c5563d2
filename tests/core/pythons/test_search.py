"""Hostile folders change nothing: they are left out, and that is said."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from gpu_studio.core.pythons import search, torch_files
from gpu_studio.core.pythons.coverage import PcCard, ThisPc
from gpu_studio.core.pythons.search import AskPythons, ask_for_pythons
from gpu_studio.core.pythons.verdict import PythonVerdict, judged
from gpu_studio.process.child_call import call_child
from tests.core.pythons.made_pythons import LINUX_SITE, find_pythons, make_venv, put_torch
from tests.patience import PATIENCE_S

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="made with links and pipes")

GTX_1060 = ThisPc((PcCard("GTX 1060", "GTX 1060 (6.1)", "NVIDIA", (6, 1)),), "580.95")


def folders_of(found):
    return [one.folder for one in found.environments]


def why_left_out(found):
    return " ".join(one.why for one in found.left_out)


@pytest.fixture
def venv(tmp_path):
    put_torch(make_venv(tmp_path / "app" / "venv"), "2.7.1+cu126")
    return tmp_path / "app" / "venv"


def test_links_in_a_circle_and_to_a_python_are_not_followed(venv, tmp_path):
    (tmp_path / "app" / "again").symlink_to(tmp_path)
    (tmp_path / "linked").symlink_to(venv)
    (venv / "lib64").symlink_to("lib")
    assert folders_of(find_pythons(str(tmp_path))) == [str(venv)]


def test_a_folder_that_may_not_be_read_is_said(venv, tmp_path, monkeypatch):
    closed = str(tmp_path / "closed")
    os.mkdir(closed)
    scandir = os.scandir

    def refuse(folder):
        if folder == closed:  # root may read everything
            raise PermissionError(13, "Permission denied", folder)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refuse)
    found = find_pythons(str(tmp_path))
    assert folders_of(found) == [str(venv)]
    (left_out,) = found.left_out
    assert (left_out.why, left_out.examples) == ("this user may not read it", (closed,))


@pytest.mark.parametrize("closed", ["", "torch", "torch/version.py"])
def test_packages_that_may_not_be_read_are_not_called_broken(venv, tmp_path, monkeypatch, closed):
    path, access = str(venv / LINUX_SITE / closed).rstrip("/"), os.access
    monkeypatch.setattr(os, "access", lambda one, mode: one != path and access(one, mode))
    text_of = torch_files.text_of
    monkeypatch.setattr(
        torch_files, "text_of", lambda one, *most: "" if one == path else text_of(one, *most)
    )
    names_in = torch_files.names_in
    monkeypatch.setattr(torch_files, "names_in", lambda one: [] if one == path else names_in(one))
    found = find_pythons(str(tmp_path))
    if closed:
        (one,) = judged(found.environments, ThisPc())
        assert (one.verdict, one.line.text) == (PythonVerdict.UNSURE, "")
    else:
        assert found.environments == ()
        assert "may not read" in why_left_out(found)


def test_pipes_in_the_place_of_files_hold_nobody_up(tmp_path):
    site = tmp_path / "venv" / LINUX_SITE
    (site / "torch").mkdir(parents=True)
    os.mkfifo(tmp_path / "venv" / "pyvenv.cfg")
    os.mkfifo(site / "torch" / "version.py")
    record = site / "torch-2.7.1.dist-info"
    record.mkdir()
    os.mkfifo(record / "METADATA")
    os.mkfifo(record / "RECORD")
    (one,) = find_pythons(str(tmp_path)).environments
    assert (one.torch.version, one.torch.trouble) == ("2.7.1", "incomplete")


def test_a_folder_of_too_many_files_is_left_out_after_the_first(venv, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "_MOST_ENTRIES", 20)
    (tmp_path / "many").mkdir()
    for number in range(30):
        (tmp_path / "many" / f"{number}").touch()
    found = find_pythons(str(tmp_path))
    assert folders_of(found) == [str(venv)]
    assert "50,000 files in one folder" in why_left_out(found)


def test_a_deep_folder_and_strange_names_are_no_trouble(venv, tmp_path):
    strange = os.fsencode(tmp_path) + b"/\xff\x1b[31m\n"
    os.mkdir(strange)
    os.makedirs(tmp_path.joinpath(*["d" * 200] * 12))
    put_torch(make_venv(tmp_path / "a\u202eb" / "venv"), "2.7.1+cpu")
    found = find_pythons(str(tmp_path))
    assert str(venv) in folders_of(found)
    assert len(found.environments) == 2
    assert "deeper than ten folders" in why_left_out(found)
    assert all(text.isprintable() for one in found.left_out for text in one.examples)


def test_a_name_that_is_no_text_reaches_the_window(tmp_path):
    folder = os.fsencode(tmp_path) + b"/caf\xe9/venv"
    make_venv(tmp_path / "made")
    put_torch(tmp_path / "made" / LINUX_SITE, "2.7.1+cpu")
    os.mkdir(os.path.dirname(folder))
    os.rename(tmp_path / "made", folder)
    found = ask_for_pythons(AskPythons(folders=(str(tmp_path),)), call_child)
    assert [os.path.basename(os.path.dirname(one)) for one in folders_of(found)] == ["caf\ufffd"]


def test_the_time_that_is_over_is_said(venv, tmp_path):
    found = find_pythons(str(tmp_path), longest_s=0.0)
    assert not found.is_whole
    assert "the time was over" in why_left_out(found)


def test_a_walk_that_still_finds_folders_spoils_no_answer():
    class Growing(tuple):
        __slots__ = ()

        def __iter__(self):
            looking._queue.append(("/found/meanwhile", 1))
            return super().__iter__()

    looking = search._Search(0.0)
    looking._queue += [Growing(("/a", 0)), Growing(("/b", 0))]
    assert looking.found().left_out[0].examples[:2] == ("/a", "/b")


def test_drives_that_never_answer_cost_only_what_is_on_them(venv, tmp_path, monkeypatch):
    hung, scandir = [str(tmp_path / f"hung{number}") for number in range(4)], os.scandir
    for folder in hung:
        os.mkdir(folder)

    def hang(folder):
        if folder in hung:
            threading.Event().wait(2 * PATIENCE_S)
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", hang)
    monkeypatch.setattr(search, "_LONGEST_SILENCE_S", 0.5)
    found = find_pythons(*hung, str(tmp_path / "app"), longest_s=PATIENCE_S)
    assert folders_of(found) == [str(venv)]
    assert not found.is_whole
    assert found.elapsed_s < PATIENCE_S / 2
    (left_out,) = found.left_out
    assert (left_out.why, left_out.count) == ("its drive does not answer", 4)


def test_network_drives_wait_for_a_wish(venv, tmp_path, monkeypatch):
    monkeypatch.setattr(search, "_usual_roots", lambda _home: iter([str(tmp_path)]))
    monkeypatch.setattr(search, "_network_drives", lambda: frozenset([str(tmp_path / "app")]))
    assert str(venv) not in folders_of(found := find_pythons())
    assert "network" in why_left_out(found)
    assert folders_of(find_pythons(str(tmp_path / "app"))) == [str(venv)]


def test_a_file_of_a_program_and_its_inner_folder_lead_to_its_python(tmp_path):
    portable = tmp_path / "ComfyUI_windows_portable"
    site = portable / "python_embeded" / "Lib" / "site-packages"
    site.mkdir(parents=True)
    (portable / "python_embeded" / "python.exe").write_text("")
    put_torch(site, "2.9.1+cu130")
    (portable / "ComfyUI" / "comfy").mkdir(parents=True)
    (portable / "ComfyUI" / "main.py").write_text("")
    for named in ("ComfyUI", "run_nvidia_gpu.bat", "python_embeded/python.exe", "."):
        path = portable / named
        if path.suffix == ".bat":
            path.write_text("")
        (one,) = find_pythons(str(path)).environments
        assert one.program == "ComfyUI portable"


def test_gpu_studios_own_builds_are_listed_and_only_one_has_to_fit(tmp_path):
    checkout = tmp_path / "checkout" / ".venv"
    make_venv(checkout)
    for engines in (checkout / "engines", tmp_path / "data" / "engines"):
        for family, version in (("cpu", "2.13.0+cpu"), ("cu126", "2.13.0+cu126")):
            (engines / family).mkdir(parents=True)
            put_torch(engines / family, version)
            (engines / f"{family}.json").write_text("{}")
        (engines / "unfinished").mkdir()
        put_torch(engines / "unfinished", "2.13.0+cu130")
    found = find_pythons(str(tmp_path))
    assert {one.program for one in found.environments} == {"GPU Studio"}
    assert [Path(folder).name for folder in folders_of(found)] == ["cpu", "cu126"] * 2
    verdicts = judged(found.environments, GTX_1060)
    assert {one.verdict for one in verdicts} == {PythonVerdict.RIGHT}
    cpu = [one for one in found.environments if one.torch.kind == "cpu"]
    for one in judged(cpu, GTX_1060):
        assert one.verdict is PythonVerdict.WRONG
        assert "engine install" in one.line.text
