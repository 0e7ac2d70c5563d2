from __future__ import annotations

import os
import subprocess
import sys

import psutil

from gpu_studio.hardware.maker_cards import ProcessNames


def test_this_process_has_a_name_and_a_user():
    name, user = ProcessNames()(os.getpid())
    assert name == psutil.Process().name()
    assert user == psutil.Process().username().rpartition("\\")[2]  # Windows names the PC as well


def test_windows_puts_the_pc_before_the_user(monkeypatch):
    monkeypatch.setattr("psutil.Process.username", lambda self: "DESKTOP-1\\ai")
    assert ProcessNames()(os.getpid())[1] == "ai"


def test_a_process_that_ended_is_not_remembered():
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    names = ProcessNames()
    before = names(child.pid)
    child.communicate(b"\n")
    assert before[0]
    assert names(child.pid) == ("", None)


def test_the_driver_names_what_the_system_hides(monkeypatch):
    def hide(pid):
        raise psutil.AccessDenied(pid)

    monkeypatch.setattr("psutil.Process", hide)
    names = ProcessNames(lambda pid: "C:\\Games\\game.exe" if pid == 4 else None)
    assert names(4) == ("game.exe", None)
    assert names(5) == ("", None)


def test_a_name_of_any_bytes_can_be_sent(monkeypatch):
    monkeypatch.setattr("psutil.Process.name", lambda self: "gam\udce9\n")
    assert ProcessNames()(os.getpid())[0] == "gam\ufffd\ufffd"
