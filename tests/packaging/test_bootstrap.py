import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import bootstrap
import fit_pc
import pytest
import system_libraries

on_linux = pytest.mark.skipif(sys.platform == "win32", reason="a shell script stands in for uv")
TOGETHER = ["-n", "auto", "--dist", "worksteal", "--max-worker-restart", "0"]
UV = """#!/bin/sh
echo "uv $* [$UV_DEFAULT_INDEX]" >> '{log}'
case "$*" in
    *--check*) [ -e '{root}/is_fresh' ] ;;
    venv*) mkdir -p '{root}/.venv/bin' && cp '{root}/python' '{root}/.venv/bin/' ;;
    *) [ ! -e '{root}/has_no_network' ] ;;
esac
"""
PYTHON = """#!/bin/sh
echo "python $*" >> '{log}'
exit 1
"""


class Checkout:
    """A checkout whose uv and Python only note what they were asked."""

    def __init__(self, root: Path) -> None:
        self.root, self._log = root, root / "log"
        (root / "path").mkdir()
        for path, text in ((root / "path" / "uv", UV), (root / "python", PYTHON)):
            path.write_text(text.format(root=root, log=self._log), encoding="utf-8")
            path.chmod(0o755)

    def run(self, *arguments: str) -> tuple[object, list[str]]:
        """Run bootstrap.py; return its status and what it called."""
        self._log.write_text("", encoding="utf-8")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["bootstrap.py", *arguments])
            try:
                status: object = bootstrap.main()
            except _BecameError as error:
                status = error.args[0]
        return status, self._log.read_text(encoding="utf-8").splitlines()


class _BecameError(Exception):
    """This process would be another one now."""


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    def become(_python: str, command: list[str], environ: dict[str, str]) -> None:
        assert not {"PYTHONHOME", "PYTHONPATH", "UV_DEFAULT_INDEX"} & set(environ)
        raise _BecameError(command[1:])

    monkeypatch.setattr(bootstrap, "ROOT", str(tmp_path))
    monkeypatch.setattr(bootstrap, "ENVIRONMENT", str(tmp_path / ".venv"))
    monkeypatch.setattr(os, "execve", become)
    monkeypatch.setattr(system_libraries, "missing_libraries", lambda screen: {})
    monkeypatch.setenv("PATH", str(tmp_path / "path") + os.pathsep + os.environ["PATH"])
    monkeypatch.setenv("PYTHONHOME", "/other/python")
    monkeypatch.chdir(tmp_path)
    for name in ("UV_DEFAULT_INDEX", "DISPLAY", "WAYLAND_DISPLAY"):
        monkeypatch.delenv(name, raising=False)
    return Checkout(tmp_path)


@on_linux
def test_the_first_start_makes_the_environment_and_opens_without_pytorch_too(
    checkout: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    status, calls = checkout.run("run", "devices")
    assert status == ["-m", "gpu_studio", "devices"]
    assert calls == [
        f"uv venv --quiet --allow-existing --python {sys.executable} {checkout.root}/.venv []",
        "uv sync --frozen --compile-bytecode []",
        "python -m gpu_studio engine install auto",
    ]
    assert "starts without it" in capfd.readouterr().err


@on_linux
def test_a_later_start_only_looks(checkout: Checkout) -> None:
    checkout.run("run")
    (checkout.root / "is_fresh").touch()
    (checkout.root / ".venv" / "engines" / "cpu.json").touch()
    assert checkout.run("run")[1] == ["uv sync --frozen --check --quiet []"]
    (checkout.root / "is_fresh").unlink()  # `git pull` brought another lock
    assert checkout.run("run")[1][1:] == ["uv sync --frozen --compile-bytecode []"]


@on_linux
@pytest.mark.parametrize(("record", "is_asked"), [("cpu.plan.json", True), ("xpu.json", False)])
def test_an_interrupted_pytorch_is_continued(
    checkout: Checkout, record: str, is_asked: bool
) -> None:
    checkout.run("run")
    (checkout.root / ".venv" / "engines" / record).touch()
    calls = checkout.run("run")[1]
    assert ("python -m gpu_studio engine install auto" in calls) is is_asked
    assert "install auto" not in "".join(checkout.run("run", "engine", "list")[1])


@on_linux
def test_a_mirrors_files_are_compared_with_the_lock(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://mirror/simple")
    monkeypatch.setattr(os, "execve", lambda *_: None)
    calls = [one.removesuffix(" [https://mirror/simple]") for one in checkout.run("run", "-V")[1]]
    wanted = f"{checkout.root}/.venv/requirements.txt"
    assert calls[1:4] == [
        f"uv export --frozen --quiet --no-emit-project -o {wanted}",
        f"uv pip install --python {checkout.root}/.venv --require-hashes -r {wanted}",
        "uv sync --frozen --compile-bytecode",
    ]


@on_linux
def test_what_stops_uv_is_a_sentence_and_status_1(
    checkout: Checkout, capfd: pytest.CaptureFixture[str]
) -> None:
    (checkout.root / "has_no_network").touch()
    assert checkout.run("test")[0] == 1
    assert "The setup stopped" in capfd.readouterr().err
    (checkout.root / ".venv").rename(checkout.root / "other")
    (checkout.root / ".venv").symlink_to("other")
    assert checkout.run("run")[0] == 1
    assert "is a link" in capfd.readouterr().err


@pytest.mark.parametrize("arguments", [[], ["start"], ["--help"]])
def test_wrong_use_shows_the_help(
    checkout: Checkout, arguments: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert checkout.run(*arguments) == (0 if arguments == ["--help"] else 2, [])
    assert "bootstrap.py test --windows" in capsys.readouterr().err


def test_a_python_that_does_not_fit_is_a_sentence(
    checkout: Checkout, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(fit_pc, "unfit_python", lambda: "This is Python 3.9.")
    assert checkout.run("run") == (1, [])
    assert capsys.readouterr().err == "This is Python 3.9.\n"


@pytest.mark.parametrize("name", ["bootstrap.py", "linux/fit_pc.py", "linux/system_libraries.py"])
def test_an_old_python_can_read_what_it_is_given(root: Path, name: str) -> None:
    text = (root / "packaging" / name).read_text(encoding="utf-8")
    ast.parse(text.replace("from __future__ import annotations\n", ""), feature_version=(3, 6))


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("run bench matmul --json", ["-m", "gpu_studio", "bench", "matmul", "--json"]),
        ("test", ["-m", "pytest", *TOGETHER]),
        ("test --quick", ["-m", "pytest", *TOGETHER, "--quick"]),
        ("test -x tests/core", ["-m", "pytest", *TOGETHER, "-x", "tests/core"]),
        ("test tests/core/test_units.py -q", ["-m", "pytest", "tests/core/test_units.py", "-q"]),
        ("test --soft-cards --discard", ["-m", "tests.softcards", "--discard"]),
        ("test --windows --short engine", ["-m", "tests.windows", "--short", "engine"]),
    ],
)
def test_the_arguments_are_handed_on(typed: str, told: list[str]) -> None:
    command, *arguments = typed.split()
    assert bootstrap.python_arguments(command, arguments) == told


def test_uv_is_told_what_pip_is_told(tmp_path: Path) -> None:
    settings = tmp_path / "pip.conf"
    settings.write_text(
        "[global]\nindex-url = https://a/simple\nextra-index-url = https://b\n    https://c\n"
        "cert = /ca.pem\n[install]\ntrusted-host = d\n",
        encoding="utf-8",
    )
    environ = {name: one for name, one in os.environ.items() if not name.startswith("PIP_")}
    environ |= {"PIP_CONFIG_FILE": str(settings), "PIP_INDEX_URL": "https://o'k/%20"}
    command = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(command, env=environ, capture_output=True, text=True, check=True).stdout
    told = bootstrap.uv_variables(listed)
    assert told["UV_DEFAULT_INDEX"] == "https://o'k/%20"
    assert told["UV_INDEX"].endswith("https://b https://c")
    assert (told["SSL_CERT_FILE"], told["UV_INSECURE_HOST"]) == ("/ca.pem", "d")


@on_linux
@pytest.mark.parametrize(
    ("has_apt", "user", "told"),
    [(True, 1000, "sudo apt-get install -y python3"), (False, 0, "Install python3")],
)
def test_without_pip_and_venv_a_sentence_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, has_apt: bool, user: int, told: str
) -> None:
    def nothing(*_: Any) -> None: ...

    monkeypatch.setattr(bootstrap, "_TOOLS", str(tmp_path))
    monkeypatch.setattr(importlib.util, "find_spec", nothing)
    monkeypatch.setattr(system_libraries, "has_apt", lambda: has_apt)
    monkeypatch.setattr(os, "geteuid", lambda: user)
    with pytest.raises(bootstrap.SetupError, match=told) as raised:
        bootstrap.own_pip()
    assert f"python3.{sys.version_info[1]}-venv" in str(raised.value)
