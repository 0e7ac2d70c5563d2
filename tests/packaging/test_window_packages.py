import pytest
from studio_build.window_packages import (
    SHARED_NUMPY,
    is_kept,
    requirements,
    with_shared_numpy,
)

from gpu_studio.builds.lock_file import read_lock


@pytest.mark.parametrize("minor", range(10, 15))
def test_the_window_has_its_packages_and_no_pytorch(minor: int) -> None:
    lines = requirements(read_lock(), minor)
    names = {line.partition("==")[0] for line in lines}
    assert names >= {"numpy", "pyside6-essentials", "pyqtgraph", "msgspec", "psutil", "pip"}
    assert not names & {"torch", "jinja2", "sympy", "networkx", "triton", "pytest", "setuptools"}
    assert all("--hash=sha256:" in line and ";" not in line for line in lines)
    (numpy,) = [one.partition(" ")[0] for one in lines if one.startswith("numpy")]
    wanted = {10: "numpy==2.2.6", 11: "numpy==2.4.6"}.get(minor)
    assert numpy == wanted or (wanted is None and numpy > "numpy==2.4.6")


@pytest.mark.parametrize("minor", range(10, 15))
def test_four_pythons_share_the_numpy_of_the_oldest(minor: int) -> None:
    lines = with_shared_numpy(requirements(read_lock(), minor), minor)
    (numpy,) = [one.partition(" --hash")[0] for one in lines if one.startswith("numpy")]
    assert (numpy == SHARED_NUMPY) == (minor < 14)


@pytest.mark.parametrize(
    "name",
    [
        "PySide6/QtWidgets.pyd",
        "PySide6/Qt6Svg.dll",
        "PySide6/plugins/platforms/qwindows.dll",
        "PySide6/plugins/styles/qmodernwindowsstyle.dll",
        "PySide6/support/deprecated.py",
        "PySide6/msvcp140.dll",
        "shiboken6/Shiboken.pyd",
        "numpy/_core/_multiarray_umath.cp311-win_amd64.pyd",
        "numpy.libs/libscipy_openblas64_.dll",
        "numpy-2.4.6.dist-info/licenses/LICENSE.txt",
    ],
)
def test_what_the_window_imports_stays(name: str) -> None:
    assert is_kept(name, "windows")


@pytest.mark.parametrize(
    "name",
    [
        "PySide6/Qt6Quick.dll",
        "PySide6/qml/QtQuick/qmldir",
        "PySide6/QtWidgets.pyi",
        "PySide6/opengl32sw.dll",
        "PySide6/translations/qtbase_de.qm",
        "PySide6/designer.exe",
        "PySide6/plugins/tls/qopensslbackend.dll",
        "PySide6/support/__pycache__/deprecated.cpython-311.pyc",
        "numpy/_core/tests/test_umath.py",
        "numpy/f2py/crackfortran.py",
        "pyqtgraph/examples/__main__.py",
        "shiboken6/msvcp140.dll",
        "pyqtgraph-0.14.0.dist-info/RECORD",
        "pip/__init__.py",
    ],
)
def test_what_nothing_imports_is_left_out(name: str) -> None:
    assert not is_kept(name, "windows")


@pytest.mark.parametrize("kind", ["gif", "jpeg", "webp"])
def test_the_pictures_that_a_race_opens_keep_their_decoders(kind: str) -> None:
    """PNG and BMP are in Qt itself."""
    assert is_kept(f"PySide6/plugins/imageformats/q{kind}.dll", "windows")
    assert is_kept(f"PySide6/Qt/plugins/imageformats/libq{kind}.so", "linux")
