import os
import subprocess
import sys
from pathlib import Path

import platformdirs
import pytest

from gpu_studio.builds import shelf as shelves
from gpu_studio.builds.shelf import OWN_PYTHON, BuildShelf
from gpu_studio.cli import main as cli
from gpu_studio.core.builds.record import BuildRecord
from gpu_studio.core.packages_folder import VARIABLE, has_own_torch, variables_for
from gpu_studio.core.wheel_table import load_table
from gpu_studio.process.child_process import ChildProcess

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def folder(tmp_path):
    """A build whose PyTorch says only where it is."""
    created = tmp_path / "engines äö" / "cpu"
    (created / "torch").mkdir(parents=True)
    (created / "torch" / "__init__.py").write_text("")
    return created


def test_without_a_folder_nothing_changes():
    assert variables_for(None) == {}


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


def test_a_childs_children_import_it_as_well(tmp_path, folder):
    """Torchrun's workers and the scripts of the pitfalls know nothing of the folder."""
    script = tmp_path / "child.py"
    script.write_text(
        "import subprocess, sys\n"
        "code = 'import sys, torch; sys.stdout.buffer.write(torch.__file__.encode())'\n"
        "sys.stdout.buffer.write(subprocess.check_output([sys.executable, '-c', code]) + b'\\n')\n"
    )
    child = ChildProcess(script, environment=variables_for(folder))
    try:
        line = next(child.lines())
    finally:
        child.end()
    assert Path(line.decode().strip()) == folder / "torch" / "__init__.py"


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
