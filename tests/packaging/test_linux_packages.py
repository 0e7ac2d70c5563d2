import io
import json
import subprocess
import sys
import sysconfig
import tarfile
from pathlib import Path

import pytest
from studio_build import linux_packages
from studio_build.app_folder import Program
from studio_build.console import BuildError
from studio_build.linux_packages import (
    ON_DEBIAN,
    SELF_CONTAINED,
    control_file,
    write_deb,
)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="built on Linux alone")


MANUAL = b".TH GPU\\-STUDIO 1\n"


@pytest.fixture
def app(tmp_path: Path) -> Path:
    """A small program's folder."""
    folder = tmp_path / "app"
    for name in ("bin", "gpu_studio", "licenses"):
        (folder / name).mkdir(parents=True)
    (folder / "bin" / "python3").symlink_to("/usr/bin/python3")
    (folder / "gpu-studio").write_text("#!/bin/sh\n", encoding="utf-8")
    (folder / "gpu-studio").chmod(0o755)
    (folder / "gpu_studio" / "app.py").write_text("pass\n", encoding="utf-8")
    (folder / "LICENSE").write_text("MIT License\n", encoding="utf-8")
    parts = [
        {"name": "GPU Studio", "version": "0.1.0", "license": "MIT", "files": []},
        {"name": "numpy", "version": "2.4.6", "license": "BSD-3-Clause", "files": []},
    ]
    (folder / "licenses" / "index.json").write_text(json.dumps(parts), encoding="utf-8")
    return folder


def _entries(package: Path) -> dict[str, tarfile.TarInfo]:
    """Return what a package puts on a PC."""
    if package.suffix != ".deb":
        with tarfile.open(package) as archive:
            return {one.name: one for one in archive.getmembers()}
    plain = subprocess.run(["dpkg-deb", "--fsys-tarfile", package], capture_output=True, check=True)
    with tarfile.open(fileobj=io.BytesIO(plain.stdout)) as archive:
        return {one.name: one for one in archive.getmembers()}


def test_the_manual_is_asked_of_the_program_that_is_packed(root: Path, tmp_path: Path) -> None:
    site = tmp_path / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"
    site.mkdir(parents=True)
    here = sysconfig.get_path("purelib")
    (site / "program.pth").write_text(f"{root}\n{here}\n", encoding="utf-8")
    page = linux_packages.manual_of(Program(root, "0.1.0", 1700000000), tmp_path).decode("utf-8")
    assert page.startswith(".TH GPU")
    assert "--sweep" in page.replace("\\-", "-")
    with pytest.raises(BuildError, match=r"3\.10 to 3\.14"):
        linux_packages.manual_of(Program(root, "0.1.0", 1), tmp_path / "nothing")


def test_the_deb_has_what_dpkg_wants(root: Path, app: Path, tmp_path: Path) -> None:
    deb = write_deb(Program(root, "0.1.0", 1700000000), app, tmp_path, SELF_CONTAINED, MANUAL, True)
    assert deb.name == "gpu-studio_0.1.0_amd64.deb"
    subprocess.run(["dpkg-deb", "--control", deb, tmp_path / "control"], check=True)
    files = {path.name: path.read_text() for path in (tmp_path / "control").iterdir()}
    assert set(files) == {"control", "postinst", "prerm", "md5sums"}
    assert "  usr/lib/gpu-studio/gpu_studio/app.py\n" in files["md5sums"]
    entries = _entries(deb)
    assert {(one.uid, one.gid, one.uname, one.mtime) for one in entries.values()} == {
        (0, 0, "root", 1700000000)
    }
    assert entries["./usr/lib/gpu-studio/gpu-studio"].mode == 0o755
    assert entries["./usr/lib/gpu-studio/gpu_studio/app.py"].mode == 0o644
    assert entries["./usr/lib/gpu-studio/bin/python3"].linkname == "../../../bin/python3"
    assert entries["./usr/bin/gpu-studio"].linkname == "../lib/gpu-studio/gpu-studio"
    assert "./usr/share/applications/gpu-studio.desktop" in entries


def test_two_builds_give_the_same_bytes(root: Path, app: Path, tmp_path: Path) -> None:
    program = Program(root, "0.1.0", 1700000000)
    collected = []
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        collected.append(
            [
                write_deb(program, app, tmp_path / name, ON_DEBIAN, MANUAL, True).read_bytes(),
                linux_packages.write_tar(program, app, tmp_path / name, True).read_bytes(),
            ]
        )
    assert collected[0] == collected[1]


def test_the_portable_folder_starts_with_the_systems_python(
    root: Path, app: Path, tmp_path: Path
) -> None:
    tar = linux_packages.write_tar(Program(root, "0.1.0", 1), app, tmp_path, is_fast=True)
    entries = _entries(tar)
    home = "gpu-studio-0.1.0-linux-x86_64"
    assert tar.name == f"{home}.tar.xz"
    assert {name.split("/")[0] for name in entries} == {home}
    assert entries[f"{home}/bin/python3"].linkname == "/usr/bin/python3"
    assert json.loads((app / "installed.json").read_text(encoding="utf-8"))["package"] == "tar"


def test_the_control_file_declares_what_qt_needs_besides_its_wheel() -> None:
    rows = dict(
        line.split(": ", 1)
        for line in control_file(
            "0.1.0", "A B <a@example.org>", 280_000, SELF_CONTAINED
        ).splitlines()
        if not line.startswith(" ")
    )
    depends = {one.split(" ")[0] for one in rows["Depends"].split(", ")}
    assert rows["Version"] == "0.1.0"
    assert rows["Installed-Size"] == "280000"
    assert {"python3", "libegl1", "libgl1", "libxcb-cursor0", "libxkbcommon-x11-0"} <= depends
    assert {"python3 (>= 3.10)", "python3 (<< 3.13)"} <= set(rows["Depends"].split(", "))


def test_each_debian_has_one_package_and_the_newer_one_is_an_update() -> None:
    older, newer = (control_file("0.1.0", "A", 1, kind) for kind in (SELF_CONTAINED, ON_DEBIAN))
    assert "python3 (<< 3.13)" in older
    assert "python3 (>= 3.13)" in newer
    assert ("Version: 0.1.0\n" in older, "Version: 0.1.0+debian13\n" in newer) == (True, True)
    assert "python3-pyside6.qtwidgets" in newer
    assert "pyqtgraph" not in newer
