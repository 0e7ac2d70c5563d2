"""The line to copy, in the three shells that it may be pasted into."""

from __future__ import annotations

import shlex

import msgspec
import pytest

from gpu_studio.core.pythons.coverage import Choice
from gpu_studio.core.pythons.environment import Environment, PythonKind
from gpu_studio.core.pythons.mend import line_for
from gpu_studio.core.pythons.torch_files import TorchFiles

CHOICE = Choice("2.7.1+cu126", "cu126", "https://download.pytorch.org/whl/cu126",
                vision="0.22.1+cu126", audio="2.7.1+cu126")  # fmt: skip
REST = "torch==2.7.1+cu126 --index-url https://download.pytorch.org/whl/cu126"


def environment(python, kind=PythonKind.VENV, **fields):
    torch = TorchFiles(version="2.5.1+cpu", kind="cpu", tag="cpu", records=("2.5.1+cpu",))
    one = Environment(kind=kind, folder="f", site="s", python=python, minor=11, torch=torch)
    return msgspec.structs.replace(one, **fields)


def windows(python, **fields):
    line = line_for(environment(python, **fields), CHOICE, "Windows")
    return line.text, line.cmd


def test_a_path_without_spaces_is_the_same_line_for_both_windows_shells():
    python = r"D:\sd\venv\Scripts\python.exe"
    assert windows(python) == (rf"{python} -m pip install {REST}", "")


@pytest.mark.parametrize(
    ("python", "power"),
    [
        (r"C:\Users\Ann Lee\venv\Scripts\python.exe", None),
        (r"C:\O'Neil (new)\venv\Scripts\python.exe", r"C:\O''Neil (new)\venv\Scripts\python.exe"),
        (r"C:\Jos’s $x `n;&|\v\python.exe", r"C:\Jos’’s $x `n;&|\v\python.exe"),
        (r"C:\Müller\venv\Scripts\python.exe", None),
    ],
)
def test_powershell_gets_its_call_sign_and_cmd_double_quotes(python, power):
    text, cmd = windows(python)
    assert text == f"& '{power or python}' -m pip install {REST}"
    assert cmd == f'"{python}" -m pip install {REST}'


def test_cmd_gets_no_line_where_it_would_replace_a_variable():
    text, cmd = windows(r"C:\100%sure%\venv\Scripts\python.exe")
    assert text.startswith("& 'C:\\100%sure%")
    assert cmd == ""


@pytest.mark.parametrize("folder", ["/home/a b", "/home/it's", "/home/$(reboot)", "/home/`id`"])
def test_sh_reads_exactly_the_words(folder):
    line = line_for(environment(f"{folder}/venv/bin/python"), CHOICE, "Linux")
    assert shlex.split(line.text)[0] == f"{folder}/venv/bin/python"
    assert shlex.split(line.text)[1:] == ["-m", "pip", "install", *REST.split()]


@pytest.mark.parametrize("name", ["a\nb", "a\u202eb", "a\x1bb", "caf\ufffd"])
def test_a_name_that_cannot_be_typed_gets_no_line(name):
    line = line_for(environment(f"/{name}/bin/python"), CHOICE, "Linux")
    assert (line.text, bool(line.why_none)) == ("", True)


def test_a_python_that_is_no_environment_keeps_away_from_the_users_packages():
    python = r"D:\ComfyUI\python_embeded\python.exe"
    text, _ = windows(python, kind=PythonKind.EMBEDDED)
    assert text == rf"{python} -s -m pip install {REST}"


def test_the_users_own_packages_are_exchanged_where_they_are():
    text, _ = windows("py -3.11", kind=PythonKind.USER)
    assert text == f"py -3.11 -m pip install --user {REST}"


def test_a_python_that_its_system_manages_needs_to_be_told():
    one = environment("/usr/bin/python3.11", kind=PythonKind.USER, is_managed=True)
    line = line_for(one, CHOICE, "Linux")
    assert line.text.split()[:6] == [
        "/usr/bin/python3.11", "-m", "pip", "install", "--user", "--break-system-packages",
    ]  # fmt: skip
    assert "left alone" in line.note


def test_without_pip_uv_does_it():
    line = line_for(environment("/p/.venv/bin/python", has_pip=False), CHOICE, "Linux")
    assert line.text == f"uv pip install --python /p/.venv/bin/python {REST}"
    text, cmd = windows(r"C:\a b\python.exe", has_pip=False)
    assert text == rf"uv pip install --python 'C:\a b\python.exe' {REST}"
    assert cmd == rf'uv pip install --python "C:\a b\python.exe" {REST}'


def test_a_record_that_pip_cannot_read_goes_first():
    one = environment("/v/bin/python", site="/v/lib")
    torch = msgspec.structs.replace(one.torch, unreadable=("torch-2.5.1.dist-info",))
    one = msgspec.structs.replace(one, torch=torch)
    line = line_for(one, CHOICE, "Linux")
    assert line.text == f"rm -r /v/lib/torch-2.5.1.dist-info && /v/bin/python -m pip install {REST}"
    assert "--ignore-installed --no-deps" in line_for(one, CHOICE, "Windows").text


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({"lost": "/media/gone"}, "drive"),
        ({"python": ""}, "no Python"),
        ({"kind": PythonKind.SYSTEM}, "Linux"),
    ],
)
def test_what_nothing_can_be_installed_for_gets_a_reason(fields, word):
    line = line_for(environment("/v/bin/python", **{"kind": PythonKind.VENV} | fields)
                    if "python" not in fields else environment(""), CHOICE, "Linux")  # fmt: skip
    assert line.text == ""
    assert word in line.why_none


def test_conda_is_told_honestly():
    one = environment("/c/envs/a/bin/python", kind=PythonKind.CONDA)
    torch = msgspec.structs.replace(one.torch, by_conda="conda-forge")
    line = line_for(msgspec.structs.replace(one, torch=torch), CHOICE, "Linux")
    assert "conda" in line.note
    assert "-s -m pip" in line.text
