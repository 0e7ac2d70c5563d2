import json
import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from gpu_studio.builds import shelf as shelves
from gpu_studio.builds.shelf import OWN_PYTHON, BuildShelf
from gpu_studio.cli import main as cli
from gpu_studio.core import program_form
from gpu_studio.core.builds.record import BuildRecord
from gpu_studio.core.packaged_parts import PackagedPart, licenses_text, packaged_parts
from gpu_studio.core.packages_folder import VARIABLE, has_own_torch, variables_for
from gpu_studio.core.program_form import Program, ProgramForm, own_program, python_here
from gpu_studio.core.wheel_table import load_table
from gpu_studio.core.wheels import choice_of_tag

ENDING = ".exe" if sys.platform == "win32" else ""
BIN = "Scripts" if sys.platform == "win32" else "bin"
COMMANDS = (
    "gpu-studio doctor", "python -m pip install torch==2.13.0", "gpu-studio engine install cu126",
    'python -c "import torch"',
)  # fmt: skip


def program(folder: Path, name: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}{ENDING}"
    path.write_text("")
    path.chmod(0o755)
    return str(path)


def has_torch(monkeypatch: pytest.MonkeyPatch, is_there: bool) -> None:
    monkeypatch.setattr(program_form, "has_own_torch", lambda: is_there)


@pytest.fixture
def ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    has_torch(monkeypatch, True)
    return program(tmp_path / ".venv" / BIN, "python")


def typed(command: str, ours: str) -> str:
    folder = Path(ours).parent.parent
    return own_program(ours, home=folder, prefix=str(folder)).typed(command)


def test_an_installed_program_has_no_python_to_type(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_torch(monkeypatch, False)
    (tmp_path / "installed.json").write_text("{}")
    starter = program(tmp_path, "gpu-studio")
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    unpacked = own_program("/app/python", home=tmp_path)
    assert unpacked.form is ProgramForm.INSTALLED
    assert [unpacked.typed(one) for one in COMMANDS] == [
        f"{starter} doctor", "", f"{starter} engine install cu126", "",
    ]  # fmt: skip
    monkeypatch.setenv("PATH", str(tmp_path))
    assert own_program("/app/python", home=tmp_path).typed("gpu-studio doctor") == (
        "gpu-studio doctor"
    )


def test_a_checkout_is_run_by_its_setup_script(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_torch(monkeypatch, False)
    (tmp_path / "packaging").mkdir()
    (tmp_path / "packaging" / "bootstrap.py").write_text("")
    prefix = tmp_path / ".venv"
    prefix.mkdir()
    checkout = own_program("python", home=tmp_path, prefix=str(prefix))
    assert checkout.form is ProgramForm.CHECKOUT
    assert str(tmp_path) in checkout.typed("gpu-studio doctor")
    monkeypatch.chdir(tmp_path)
    here = own_program("python", home=tmp_path, prefix=str(prefix))
    script = Path("packaging", "bootstrap.py")
    start = f"{'py' if os.name == 'nt' else 'python3'} {script} run"
    assert [here.typed(one) for one in COMMANDS] == [
        f"{start} doctor", "", f"{start} engine install cu126", "",
    ]  # fmt: skip


def test_a_python_with_its_own_pytorch_installs_builds_with_what_it_has() -> None:
    form, pip_command = ProgramForm.OWN_ENVIRONMENT, choice_of_tag("cu126").pip_command
    own = Program(form, "gpu-studio", "/v/python", has_own_torch=True)
    command = "gpu-studio engine install cu126"
    assert own.typed(command) == pip_command.replace("python", "/v/python", 1)
    without_pip = Program(form, "gpu-studio", "/v/python", has_own_torch=True, has_pip=False)
    assert without_pip.typed(command).startswith("uv pip install --python /v/python torch==")
    without_torch = Program(form, "gpu-studio", "/v/python")
    assert without_torch.typed(command) == command


def test_in_an_activated_environment_the_short_words_do(
    ours: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(Path(ours).parent, "gpu-studio")
    monkeypatch.setenv("PATH", os.path.dirname(ours))
    for command in ("python -m pip install torch", "gpu-studio bench matmul"):
        assert typed(command, ours) == command


@pytest.mark.skipif(sys.platform == "win32", reason="quoted for a shell of Linux")
def test_a_folder_with_a_space_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    path = program(tmp_path / "my programs" / BIN, "python")
    assert python_here(path) == f"'{path}'"


def test_an_installed_program_names_its_parts(tmp_path: Path) -> None:
    row = {"name": "numpy", "version": "2.4.6", "license": "BSD-3-Clause", "files": ["numpy/L"]}
    (tmp_path / "index.json").write_text(json.dumps([row]), encoding="utf-8")
    (part,) = packaged_parts(tmp_path)
    assert part == PackagedPart("numpy", "2.4.6", "BSD-3-Clause", ("numpy/L",))
    text = licenses_text((part,), tmp_path)
    assert text.startswith("numpy 2.4.6: BSD-3-Clause\n")
    assert str(tmp_path) in text


ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """A build whose PyTorch says only where it is."""
    created = tmp_path / "engines äö" / "cpu"
    (created / "torch").mkdir(parents=True)
    (created / "torch" / "__init__.py").write_text("")
    return created


def test_the_folder_comes_before_other_packages(folder):
    assert variables_for(folder, {}) == {VARIABLE: str(folder), "PYTHONPATH": str(folder)}
    joined = variables_for(folder, {"PYTHONPATH": "mine"})["PYTHONPATH"]
    assert joined == os.pathsep.join([str(folder), "mine"])


@pytest.mark.parametrize(("platform", "name", "place"), [
    ("linux", "LD_LIBRARY_PATH", "lib"), ("win32", "PATH", os.path.join("Library", "bin")),
])  # fmt: skip
def test_a_build_with_libraries_of_its_own_is_looked_for_them_first(folder, platform, name, place):
    assert name not in variables_for(folder, {name: "mine"}, platform)
    (folder / place).mkdir(parents=True)
    found = variables_for(folder, {name: "mine"}, platform)[name]
    assert found == os.pathsep.join([str(folder / place), "mine"])
    assert variables_for(folder, {}, platform)[name] == str(folder / place)


def where_torch_is(tmp_path, folder, *options):
    """Return the file of PyTorch in a new Python that got the folder."""
    script = (
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
        "from gpu_studio.core.packages_folder import use_packages\n"
        "use_packages()\n"
        "import torch; print(torch.__file__)\n"
    )
    done = subprocess.run(
        [sys.executable, *options, "-X", "utf8", "-c", script],
        env=os.environ | variables_for(folder), capture_output=True, text=True, encoding="utf-8",
        cwd=tmp_path, check=True,
    )  # fmt: skip
    return Path(done.stdout.strip())


@pytest.mark.parametrize("options", [(), ("-I",)], ids=["usual", "deaf to PYTHONPATH"])
def test_a_process_imports_the_pytorch_of_the_folder(tmp_path, folder, options):
    assert where_torch_is(tmp_path, folder, *options) == folder / "torch" / "__init__.py"


def test_a_pytorch_of_this_python_is_found_and_one_of_a_build_does_not_count(monkeypatch, folder):
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.delenv(VARIABLE, raising=False)
    assert has_own_torch()
    monkeypatch.setenv(VARIABLE, str(folder))
    assert not has_own_torch()


@pytest.mark.parametrize("has_own", [True, False])
def test_the_terminals_commands_use_the_installed_build(monkeypatch, tmp_path, has_own):
    monkeypatch.setattr(shelves, "has_own_torch", lambda: has_own)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "environment"))
    monkeypatch.setattr(platformdirs, "user_data_path", lambda *_, **__: tmp_path)
    for name in (VARIABLE, "PYTHONPATH"):
        monkeypatch.setenv(name, "")
    shelf = BuildShelf(tmp_path / "engines")
    shelf.folder("cpu").mkdir(parents=True)
    version = load_table().torch_version
    shelf.write_record(BuildRecord("cpu", f"{version}+cpu", OWN_PYTHON))
    cli._use_installed_build()
    assert os.environ[VARIABLE] == ("" if has_own else str(shelf.folder("cpu")))
