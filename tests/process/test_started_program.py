"""Starting the user's own program: its words arrive, whatever is in them."""

import os
import signal
import sys

import pytest

from gpu_studio.process.started_program import (
    StartFailedError,
    shell_status,
    start_line,
    start_program,
)
from tests.patience import PATIENCE_S

HOSTILE = ["a b", 'say "hi"', "50%", "a&b", "^", "it's", "ümläut", "$HOME", "", "-q", "--"]


def echo(folder):
    script = folder / "wörter und more.py"
    script.write_text(
        "import os, sys\nopen(sys.argv[1], 'w', encoding='utf-8').write(repr(sys.argv[2:]))\n"
        "sys.exit(7)\n",
        encoding="utf-8",
    )
    return [sys.executable, str(script), str(folder / "said")]


def test_every_word_arrives_and_the_status_comes_back(tmp_path):
    child = start_program([*echo(tmp_path), *HOSTILE], {})
    assert shell_status(child.wait(PATIENCE_S)) == 7
    assert (tmp_path / "said").read_text(encoding="utf-8") == repr(HOSTILE)


def test_it_has_what_is_set_and_nothing_that_is_unset(tmp_path, monkeypatch):
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("KEPT", "yes")
    script = "import os; open(os.environ['SAID'], 'w').write(repr(sorted(os.environ)))"
    said = tmp_path / "said"
    set_for_it = {"SAID": str(said), "CUDA_VISIBLE_DEVICES": "GPU-1"}
    start_program([sys.executable, "-c", script], set_for_it, {"HIP_VISIBLE_DEVICES"}).wait()
    names = set(eval(said.read_text()))
    assert {"CUDA_VISIBLE_DEVICES", "KEPT"} <= names
    assert "HIP_VISIBLE_DEVICES" not in names


@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_signal_is_told_as_shells_tell_it():
    child = start_program(["sleep", str(PATIENCE_S)], {})
    child.send_signal(signal.SIGTERM)
    assert shell_status(child.wait(PATIENCE_S)) == 128 + signal.SIGTERM


def test_what_is_not_there_is_a_sentence(tmp_path):
    with pytest.raises(StartFailedError, match=r"nothing-here cannot be started: "):
        start_program([str(tmp_path / "nothing-here")], {})


@pytest.mark.skipif(os.name != "posix", reason="a shortcut of Linux")
def test_a_desktop_file_is_started_by_its_line(tmp_path):
    path = tmp_path / "my app.desktop"
    path.write_text('[Desktop Entry]\nExec="/opt/My App/run" --flag %U "a b"\nName=x\n')
    assert start_line([str(path), "more"]) == ["/opt/My App/run", "--flag", "a b", "more"]
    path.write_text("nothing\n")
    with pytest.raises(StartFailedError):
        start_program([str(path)], {})


@pytest.mark.parametrize(
    ("name", "words", "line"),
    [
        ("my tool.exe", ["a b"], None),
        ("run nvidia.bat", ["a b", 'q"q', "50%", "a&b"],
         '"cmd" /d /v:off /s /c "{path} "a b" "q""q" "50%%cd:~,%" "a&b""'),
        ("Ollama.lnk", ["serve"], '"cmd" /d /v:off /s /c "start "" /wait {path} "serve""'),
    ],
)  # fmt: skip
def test_windows_starts_programs_itself_and_the_rest_through_cmd(
    tmp_path, monkeypatch, name, words, line
):
    monkeypatch.setenv("COMSPEC", "cmd")
    path = tmp_path / name
    path.touch(mode=0o755)
    started = start_line([str(path), *words], "win32")
    path_words = f'"{path}"'.replace("%", "%%cd:~,%")
    assert started == ([str(path), *words] if line is None else line.format(path=path_words))
