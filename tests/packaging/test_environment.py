from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from studio_setup import environment as environments
from studio_setup import lock
from studio_setup import stamp as stamps
from studio_setup.console import Log, SetupError
from studio_setup.environment import (
    import_hint,
    install_packages,
    lead_to,
    make_environment,
    read_project,
    require_space,
    try_imports,
)
from studio_setup.lock import one_at_a_time
from studio_setup.pip_runner import Pip, what_to_do

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / ".setup" / "log.txt")


@pytest.fixture
def venv_call(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Takes the place of `python -m venv`."""
    calls: list[list[str]] = []

    def run(command: list[str], **options: object) -> Any:
        calls.append(command)
        return SimpleNamespace(returncode=0, stdout="", stderr="")

    monkeypatch.setattr(environments.subprocess, "run", run)
    return calls


def test_a_half_built_environment_is_emptied_first(
    tmp_path: Path, console: Any, log: Log, venv_call: list[list[str]]
) -> None:
    environment = tmp_path / ".venv"
    stamps.mark_ours(str(environment))
    (environment / "lib" / "torch").mkdir(parents=True)
    (environment / "pyvenv.cfg").write_text("", encoding="utf-8")
    make_environment(environment, console, log)
    assert [path.name for path in environment.iterdir()] == ["made-by-gpu-studio"]
    assert venv_call[0][-3:] == ["-m", "venv", str(environment)]
    assert console.lines == []


def test_an_environment_is_made_by_the_interpreter_with_a_console(
    tmp_path: Path,
    console: Any,
    log: Log,
    venv_call: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("sys._base_executable", "C:/Python313/pythonw.exe")
    monkeypatch.setattr(environments, "interpreter", lambda own: own.replace("pythonw", "python"))
    make_environment(tmp_path / ".venv", console, log)
    assert venv_call[0][0] == "C:/Python313/python.exe"


def test_a_kill_while_emptying_leaves_the_folder_ours(
    tmp_path: Path,
    console: Any,
    log: Log,
    venv_call: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    environment = tmp_path / ".venv"
    stamps.mark_ours(str(environment))
    (environment / "lib").mkdir()

    def killed(path: Path) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(environments.shutil, "rmtree", killed)
    with pytest.raises(KeyboardInterrupt):
        make_environment(environment, console, log)
    assert stamps.is_ours(str(environment))


def test_someone_elses_environment_is_kept_aside(
    tmp_path: Path, console: Any, log: Log, venv_call: list[list[str]]
) -> None:
    environment = tmp_path / ".venv"
    environment.mkdir()
    (environment / "theirs").write_text("precious", encoding="utf-8")
    make_environment(environment, console, log)
    [aside] = tmp_path.glob(".venv.other-*")
    assert (aside / "theirs").read_text(encoding="utf-8") == "precious"
    assert aside.name in console.lines[0]
    assert stamps.is_ours(str(environment))


@pytest.mark.skipif(sys.platform == "win32", reason="a link needs a privilege there")
@pytest.mark.parametrize("is_there", [True, False])
def test_a_link_to_another_environment_is_refused(
    tmp_path: Path, console: Any, log: Log, venv_call: list[list[str]], is_there: bool
) -> None:
    other = tmp_path / "other" / ".venv"
    if is_there:
        stamps.mark_ours(str(other))
        (other / "precious").write_text("kept", encoding="utf-8")
    link = tmp_path / ".venv"
    link.symlink_to(other)
    with pytest.raises(SetupError, match=r"is a link to .*other.*remove the link"):
        make_environment(link, console, log)
    assert link.is_symlink()
    assert not is_there or (other / "precious").exists()
    assert other.exists() == is_there
    assert venv_call == []


def test_a_venv_that_fails_says_why(
    tmp_path: Path, console: Any, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = SimpleNamespace(returncode=1, stdout="", stderr="Error: no room\n")
    monkeypatch.setattr(environments.subprocess, "run", lambda *_, **__: answer)
    with pytest.raises(SetupError, match="no room"):
        make_environment(tmp_path / ".venv", console, log)


def test_a_full_disk_is_noticed_before_the_download(tmp_path: Path) -> None:
    require_space(tmp_path, 1)
    require_space(tmp_path / "not" / "yet", 1)
    with pytest.raises(SetupError, match=r"needs 1000000\.0 GB"):
        require_space(tmp_path, 10**15)


def _with_this_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stamps, "python_in", lambda environment: sys.executable)


def test_a_broken_installation_is_found(
    tmp_path: Path, log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    _with_this_python(monkeypatch)
    try_imports(tmp_path, ["json"], log)
    with pytest.raises(SetupError, match="No module named 'no_such_module'"):
        try_imports(tmp_path, ["json", "no_such_module"], log)
    assert "Traceback" in log.path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("ImportError: libEGL.so.1: cannot open shared object file", "system library"),
        ("OSError: [WinError 126] The specified module could not be found", "Visual C++"),
        ("ImportError: DLL load failed while importing QtWidgets", "Visual C++"),
        ("SyntaxError: null bytes", "again"),
    ],
)
def test_what_to_do_about_a_failed_import(line: str, words: str) -> None:
    assert words in import_hint(line)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("ERROR: [Errno 28] No space left on device", "disk is full"),
        ("SSLError(SSLCertVerificationError: CERTIFICATE_VERIFY_FAILED", "PIP_CERT"),
        ("NewConnectionError: Temporary failure in name resolution", "internet connection"),
        ("ERROR: [WinError 32] The process cannot access the file", "close GPU Studio"),
        ("ERROR: No matching distribution found for torch", "another Python version"),
        ("OSError: [WinError 206] The filename or extension is too long", "name is too long"),
        ("[Errno 2] HINT: … does not have Windows Long Path support enabled.", "name is too long"),
        ("something new", "log"),
    ],
)
def test_what_to_do_about_pip(text: str, words: str) -> None:
    assert words in what_to_do(text)


def test_pip_words_go_to_the_log_and_its_progress_to_the_console(
    tmp_path: Path, console: Any, log: Log
) -> None:
    lines = [
        "Collecting torch==2.13.0+cu126\n",
        "Collecting nvidia-ml-py>=12.560 (from gpu-studio)\n",
        "  Downloading https://x/torch-2.13.0%2Bcu126-cp311-cp311-linux.whl (800.1 MB)\n",
        "Progress 0 of 0\n",
        "Progress 200 of 800\n",
        "Installing collected packages: torch\n",
    ]
    Pip(tmp_path, console, log)._follow(SimpleNamespace(stdout=lines))
    downloading = "downloading torch 2.13.0+cu126 (800.1 MB)"
    assert console.details == [
        ("collecting torch==2.13.0+cu126", None),
        ("collecting nvidia-ml-py>=12.560 (from gpu-studio)", None),
        (downloading, None),
        (downloading, None),
        (downloading, 0.25),
        ("installing torch", None),
    ]
    assert "Progress" not in log.path.read_text(encoding="utf-8")


def test_a_failure_shows_the_last_lines_and_where_the_rest_is(
    tmp_path: Path, console: Any, log: Log
) -> None:
    for number in range(10):
        log.write(f"line {number}\n\n")
    log.write("ERROR: No matching distribution found for numpy")
    text = str(Pip(tmp_path, console, log).failure("Installing numpy"))
    assert text.startswith("Installing numpy failed.")
    assert "another Python version" in text
    assert "line 8" in text
    assert "line 5" not in text
    assert str(log.path) in text


def test_a_folder_that_cannot_be_written_to_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / ".setup").write_text("a file in the way", encoding="utf-8")
    with pytest.raises(SetupError, match="cannot write to"):
        Log(tmp_path / ".setup" / "log.txt")


@pytest.mark.skipif(sys.platform == "win32", reason="file locks of other kinds")
def test_the_second_set_up_waits_and_says_so(
    tmp_path: Path, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".setup" / "lock"
    first = one_at_a_time(path, console)
    first.__enter__()
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        first.__exit__(None, None, None)

    monkeypatch.setattr(lock.time, "sleep", sleep)
    with one_at_a_time(path, console) as pass_fds:
        assert len(pass_fds) == 1
    assert len(waits) == 1
    assert len(console.lines) == 1
    assert console.lines[0].startswith("Another GPU Studio setup")


@pytest.mark.skipif(sys.platform == "win32", reason="descriptors are not handed on there")
def test_the_lock_outlives_a_killed_set_up_while_its_child_works(
    tmp_path: Path, console: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ".setup" / "lock"
    with one_at_a_time(path, console) as pass_fds:
        child = subprocess.Popen(
            [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=pass_fds
        )
    waits: list[float] = []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        child.communicate(b"\n")

    monkeypatch.setattr(lock.time, "sleep", sleep)
    with one_at_a_time(path, console):
        assert child.returncode == 0
    assert len(waits) == 1


def test_the_environment_finds_the_program_and_its_engine(tmp_path: Path) -> None:
    site = tmp_path / ("Lib" if sys.platform == "win32" else "lib/python3.11") / "site-packages"
    site.mkdir(parents=True)
    folders = (tmp_path / "Grüße und Leerzeichen", tmp_path / "engine")
    for folder, name in zip(folders, ("program", "engine"), strict=True):
        (folder / f"of_{name}").mkdir(parents=True)
        (folder / f"of_{name}" / "__init__.py").write_text("", encoding="utf-8")
    lead_to(tmp_path, *folders)
    code = "import site, sys; site.addsitedir(sys.argv[1]); import of_program, of_engine"
    subprocess.run([sys.executable, "-S", "-I", "-c", code, str(site)], check=True)


@pytest.mark.parametrize("torch", ["", "torch===2.13.0"])
def test_pytorch_is_no_package_of_the_environment_unless_it_is_there(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, torch: str
) -> None:
    _with_this_python(monkeypatch)
    asked: list[tuple[str, ...]] = []

    def install(*arguments: str) -> bool:
        asked.append(arguments)
        return True

    pip: Any = SimpleNamespace(environment=tmp_path, install=install)
    install_packages(pip, root, ("test",), newest=True, torch=torch)
    [arguments] = asked
    assert arguments[:3] == ("--upgrade", "--upgrade-strategy", "eager")
    assert [one for one in arguments if one.startswith("torch")] == ([torch] if torch else [])
    assert any(one.startswith("numpy") for one in arguments)
    assert any(one.startswith("pytest") for one in arguments)


def test_a_broken_pyproject_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[project", encoding="utf-8")
    with pytest.raises(SetupError, match=r"pyproject\.toml"):
        read_project(sys.executable, tmp_path / "pyproject.toml")
