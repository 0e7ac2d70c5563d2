"""The packages for Linux: a .deb, and a folder to unpack anywhere."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import re
import shutil
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple

from gpu_studio.core.program_version import portable_archive
from studio_build import app_folder, changes, sizes
from studio_build.address import address_of
from studio_build.console import BuildError, run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from studio_build.app_folder import Program

APP_ID = "gpu-studio"
_HOME = "usr/lib/gpu-studio"
# Of xz. numpy is inside three times: level 9 has a dictionary that spans them.
_SMALL: Literal[9] = 9
_FAST: Literal[0] = 0
MAINTAINER = ("DEBFULLNAME", "DEBEMAIL")
_NO_MAINTAINER = "GPU Studio (not a release) <gpu-studio@example.org>"
_DESCRIPTION = """see what your graphics card can do with PyTorch
 GPU Studio shows what your graphics card is, whether PyTorch can use it, how
 much faster or slower it is than your CPU, and where its memory goes.
 .
 PyTorch is not in this package: the window downloads the build that fits your
 card into your own folder, about 200 MB for the CPU."""
_FONT = "fonts-dejavu-core | fonts-freefont-ttf"  # with the window's check mark
# Found with readelf on what is packed, and by opening the window in a bare Debian.
_DEPENDS = (
    "python3 (>= 3.10)", f"python3 (<< 3.{app_folder.DEBIAN_MINOR})", "libc6 (>= 2.34)",
    "libgcc-s1", "libstdc++6", "zlib1g", "libzstd1", "libegl1", "libgl1",
    "libglib2.0-0 | libglib2.0-0t64", "libfontconfig1", "libfreetype6", "libdbus-1-3", "libx11-6",
    "libx11-xcb1", "libxkbcommon0", "libxkbcommon-x11-0",
    "libxcb-cursor0", "libxcb-icccm4", "libxcb-image0", "libxcb-keysyms1", "libxcb-randr0",
    "libxcb-render-util0", "libxcb-render0", "libxcb-shape0", "libxcb-shm0", "libxcb-sync1",
    "libxcb-util1", "libxcb-xfixes0", "libxcb-xkb1", "libxcb1", _FONT,
)  # fmt: skip
_DEPENDS_ON_DEBIAN = (
    f"python3 (>= 3.{app_folder.DEBIAN_MINOR})", "python3 (<< 3.15)", "libc6 (>= 2.34)",
    *(
        f"python3-pyside6.{part} (>= 6.8)"
        for part in ("qtcore", "qtgui", "qtopengl", "qtopenglwidgets", "qtsvg", "qtwidgets")
    ),
    "python3-msgspec (>= 0.19)",
    "python3-numpy (>= 1:1.26)", "python3-platformdirs (>= 4.2)",
    "python3-psutil (>= 5.9)", "python3-typing-extensions", "libegl1", "libgl1",
    "qt6-qpa-plugins", "qt6-svg-plugins", _FONT,
)  # fmt: skip
_RECOMMENDS = (
    "libwayland-client0", "libwayland-cursor0", "ca-certificates", "mesa-vulkan-drivers",
)  # fmt: skip
_AFTER_INSTALLATION = f"""#!/bin/sh
set -e
if [ "$1" = configure ]; then
    # Users cannot write here, and without bytecode every start takes seconds longer.
    /{_HOME}/bin/python3 /{_HOME}/fit_pc.py compile || true
fi
"""
_BEFORE_REMOVAL = f"""#!/bin/sh
set -e
find /{_HOME} -name __pycache__ -type d -prune -exec rm -rf {{}} +
"""
_PRINT_MANUAL = """
import site, sys
site.addsitedir(sys.argv[1])
from gpu_studio.cli.manual import manual
sys.stdout.write(manual(sys.argv[2]))
"""
# Lintian's rules for what Debian builds itself, against a package that carries wheels.
_WHEELS = "the libraries of PySide6 and numpy stay as their projects release them"
_OVERRIDES = {
    "embedded-library": _WHEELS,
    "unstripped-binary-or-object": _WHEELS,
    "library-not-linked-against-libc": _WHEELS,
    "shared-library-lacks-prerequisites": _WHEELS,
}


class Kind(NamedTuple):
    """Which Debian a package is for.

    Attributes:
        suffix: Of its version, so that the newer Debian's package is an update.
        depends: What it needs.
        largest: What it may take on the disk, in bytes.
    """

    suffix: str
    depends: tuple[str, ...]
    largest: int


# For Debian 12, Ubuntu 22.04 and newer: all is inside. And for those whose own packages do.
SELF_CONTAINED = Kind("", _DEPENDS, 210_000_000)
ON_DEBIAN = Kind("+debian13", _DEPENDS_ON_DEBIAN, 30_000_000)


def add_starter(program: Program, app: Path) -> None:
    """Add the shell script that opens the window to the program's folder."""
    source = program.root / "packaging" / "linux"
    for name in ("gpu-studio", "fit_pc.py", "menu.py", "system_libraries.py"):
        shutil.copy(source / name, app / name)


def tar_name(version: str) -> str:
    """Return the file name of the portable folder of a version."""
    return portable_archive(version)


def write_tar(program: Program, app: Path, out: Path, is_fast: bool = False) -> Path:
    """Write the folder that runs where it is unpacked; return the archive."""
    app_folder.mark(program, app, "tar")
    target = out / tar_name(program.version)
    name = target.name.removesuffix(".tar.xz")

    def plain(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid, entry.gid, entry.uname, entry.gname = 0, 0, "root", "root"
        is_run = entry.isdir() or bool(entry.mode & 0o100)
        entry.mode = 0o777 if entry.issym() else 0o755 if is_run else 0o644
        entry.mtime = program.epoch
        return entry

    system_files = {
        f"{APP_ID}.desktop": _desktop_entry(program),
        # For whoever makes a package of this folder.
        f"{address_of(program.root).app_id}.metainfo.xml": metainfo(program),
    }
    preset: Literal[0, 9] = _FAST if is_fast else _SMALL
    with tarfile.open(target, "w:xz", format=tarfile.GNU_FORMAT, preset=preset) as archive:
        for path in [app, *sorted(app.rglob("*"))]:
            below = (Path(name) / path.relative_to(app)).as_posix()
            archive.add(path, below, recursive=False, filter=plain)
        for below, content in system_files.items():
            entry = plain(tarfile.TarInfo(f"{name}/{below}"))
            entry.size = len(content)
            archive.addfile(entry, io.BytesIO(content))
    return target


def deb_name(version: str, kind: Kind) -> str:
    """Return the file name of a Debian package of a version."""
    return f"gpu-studio_{version}{kind.suffix}_amd64.deb"


def manual_of(program: Program, app: Path) -> bytes:
    """Return the manual page of a self-contained folder's program, which knows its options.

    Raises:
        BuildError: this Python cannot run that program.
    """
    site = app / "lib" / "python{}.{}".format(*sys.version_info[:2]) / "site-packages"
    history = changes.releases_in((program.root / "CHANGES.md").read_text(encoding="utf-8"))
    command = [
        sys.executable,
        "-ISB",
        "-X",
        "utf8",
        "-c",
        _PRINT_MANUAL,
        str(site),
        history[0].date,
    ]
    try:
        return run(command)
    except BuildError as error:
        raise BuildError(
            f"Run build.py with Python 3.10 to 3.14. The manual page: {error}"
        ) from error


def write_deb(
    program: Program, app: Path, out: Path, kind: Kind, manual: bytes, is_fast: bool = False
) -> Path:
    """Write a Debian package; return it.

    Args:
        program: what is built.
        app: its folder.
        out: where the package goes.
        kind: which Debian it is for.
        manual: see `manual_of`.
        is_fast: whether it may be larger.

    Raises:
        BuildError: it would take more on the disk than it may, or there is no dpkg-deb.
    """
    app_folder.mark(program, app, "deb")
    target = out / deb_name(program.version, kind)
    with tempfile.TemporaryDirectory(prefix="gpu-studio-deb-") as work:
        root = Path(work) / "root"
        _lay_out(program, app, root, kind, manual)
        files = [
            path for path in sorted(root.rglob("*")) if path.is_file() and not path.is_symlink()
        ]
        size = sum(path.stat().st_size for path in files)
        if size > kind.largest:
            raise BuildError(f"{target.name} takes {sizes.in_words(size)} on the disk.")
        sums = [
            f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  "
            f"{path.relative_to(root).as_posix()}\n"
            for path in files
        ]
        control = {
            "control": control_file(program.version, maintainer(), size // 1024, kind),
            "md5sums": "".join(sums),
            "postinst": _AFTER_INSTALLATION,
            "prerm": _BEFORE_REMOVAL,
        }
        for name, text in control.items():
            _write(root / "DEBIAN" / name, text.encode(), is_run=text.startswith("#!"))
        level = _FAST if is_fast else _SMALL
        # One thread: with several, the bytes depend on their number.
        pack = ["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level}", "--threads-max=1"]
        epoch = {"SOURCE_DATE_EPOCH": str(program.epoch)}  # the time of every file
        run([*pack, "--build", str(root), str(target)], environ=epoch)
    return target


def _lay_out(program: Program, app: Path, root: Path, kind: Kind, manual: bytes) -> None:
    """Write everything that the package puts on a PC into a folder."""
    shutil.copytree(app, root / _HOME, symlinks=True)
    for name, content in _system_files(program, app, kind, manual):
        _write(root / name, content)
    (root / "usr/bin").mkdir()
    (root / "usr/bin/gpu-studio").symlink_to("/usr/lib/gpu-studio/gpu-studio")
    for path in [root, *root.rglob("*")]:
        if path.is_symlink():
            # Debian's packages have relative links inside /usr.
            inside = os.path.relpath(os.readlink(path), f"/{path.parent.relative_to(root)}")
            path.unlink()
            path.symlink_to(inside)
        else:
            path.chmod(0o755 if path.is_dir() or path.stat().st_mode & 0o100 else 0o644)
        os.utime(path, (program.epoch, program.epoch), follow_symlinks=False)


def _write(path: Path, content: bytes, *, is_run: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o755 if is_run else 0o644)


def maintainer() -> str:
    """Return the package's maintainer: DEBFULLNAME and DEBEMAIL, as Debian's own tools do.

    A package that is built without them says that it is not released: its address, of a domain that
    belongs to no one (RFC 2606), only satisfies the format.
    """
    name, address = (os.environ.get(one, "") for one in MAINTAINER)
    return f"{name} <{address}>" if name and address else _NO_MAINTAINER


def control_file(version: str, who: str, size_kib: int, kind: Kind) -> str:
    """Return the file control of a .deb."""
    rows = {
        "Package": "gpu-studio",
        "Version": f"{version}{kind.suffix}",
        "Architecture": "amd64",
        "Maintainer": who,
        "Installed-Size": str(size_kib),
        "Depends": ", ".join(kind.depends),
        "Recommends": ", ".join(_RECOMMENDS),
        "Section": "utils",
        "Priority": "optional",
        "Description": _DESCRIPTION,
    }
    return "".join(f"{name}: {value}\n" for name, value in rows.items())


def _system_files(
    program: Program, app: Path, kind: Kind, manual: bytes
) -> Iterator[tuple[str, bytes]]:
    """Yield the path and content of each file of the .deb outside the program's own folder."""
    icons, documents = "usr/share/icons/hicolor", "usr/share/doc/gpu-studio"
    pictures = program.root / "resources" / "app"
    history = changes.releases_in((program.root / "CHANGES.md").read_text(encoding="utf-8"))
    told = changes.debian_changelog(history, maintainer(), kind.suffix).encode()
    yield f"usr/share/applications/{APP_ID}.desktop", _desktop_entry(program)
    app_id = address_of(program.root).app_id
    yield f"usr/share/metainfo/{app_id}.metainfo.xml", metainfo(program)
    yield f"{icons}/scalable/apps/{APP_ID}.svg", (pictures / "gpu-studio.svg").read_bytes()
    yield f"{icons}/256x256/apps/{APP_ID}.png", (pictures / "gpu-studio.png").read_bytes()
    yield f"{documents}/changelog.gz", gzip.compress(told, 9, mtime=0)
    yield f"{documents}/copyright", copyright_file(app).encode()
    yield "usr/share/man/man1/gpu-studio.1.gz", gzip.compress(manual, 9, mtime=0)
    rows = "".join(f"# {why}\ngpu-studio: {tag}\n" for tag, why in _OVERRIDES.items())
    yield "usr/share/lintian/overrides/gpu-studio", rows.encode()


def metainfo(program: Program) -> bytes:
    """Return what software centers show: AppStream's metainfo."""
    template = (program.root / "packaging" / "linux" / "metainfo.xml").read_text("utf-8")
    history = changes.releases_in((program.root / "CHANGES.md").read_text(encoding="utf-8"))
    address = address_of(program.root)
    values = {
        "APP_ID": address.app_id,
        "DEVELOPER_ID": address.app_id.rpartition(".")[0],
        "URL": address.url,
        "PICTURES": address.file(program.version, "docs/pictures"),
        "RELEASES": changes.appstream_releases(history),
    }
    return filled(template, values).encode()


def copyright_file(app: Path) -> str:
    """Return the file copyright: the license of the program, and of each part it carries."""
    own = (app / "LICENSE").read_text(encoding="utf-8").strip()
    parts = json.loads((app / "licenses" / "index.json").read_text(encoding="utf-8"))
    rows = [f"  {one['name']} {one['version']}: {one['license']}" for one in parts[1:]]
    return (
        f"GPU Studio\n\n{own}\n\nThis package carries, as their projects release them:\n\n"
        + "\n".join(rows)
        + f"\n\nTheir texts are in /{_HOME}/licenses. On Debian, the LGPL and GPL are also in\n"
        "/usr/share/common-licenses/LGPL-3 and /usr/share/common-licenses/GPL-3.\n"
    )


def _desktop_entry(program: Program) -> bytes:
    return (program.root / "packaging" / f"{APP_ID}.desktop").read_bytes()


def filled(template: str, values: dict[str, str]) -> str:
    """Return a template with its values in the place of their ``@NAMES@``.

    Raises:
        BuildError: there is no value of a name.
    """

    def value(match: re.Match[str]) -> str:
        if match[1] not in values:
            raise BuildError(f"A template wants @{match[1]}@, which nothing gives.")
        return values[match[1]]

    return re.sub(r"@([A-Z0-9_]+)@", value, template)
