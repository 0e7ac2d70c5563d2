"""The packages for Linux: a .deb, and a folder to unpack anywhere."""

from __future__ import annotations

import gzip
import io
import json
import lzma
import os
import shutil
import tarfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from gpu_studio.core.program_version import portable_archive
from studio_build import app_folder, changes, sizes
from studio_build.address import address_of
from studio_build.console import BuildError
from studio_build.template import filled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from studio_build.app_folder import Program

APP_ID = "gpu-studio"
_HOME = "usr/lib/gpu-studio"
# numpy is inside three times: a dictionary as large as the first one finds the others in it.
_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 64 << 20}]
_FAST_FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 0}]
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
    f"python3 (>= 3.{app_folder.DEBIAN_MINOR})", "python3 (<< 3.15)",
    *(
        f"python3-pyside6.{part} (>= 6.8)"
        for part in ("qtcore", "qtgui", "qtopengl", "qtopenglwidgets", "qtsvg", "qtwidgets")
    ),
    "python3-msgspec (>= 0.19)",
    "python3-numpy (>= 1:1.26)", "python3-platformdirs (>= 4.2)",
    "python3-psutil (>= 5.9)", "python3-typing-extensions", "libegl1", "libgl1",
    "qt6-qpa-plugins", "qt6-svg-plugins", _FONT,
)  # fmt: skip
_RECOMMENDS = ("libwayland-client0", "libwayland-cursor0", "ca-certificates")
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
# Lintian's rules for what Debian builds itself, against a package that carries wheels.
_WHEELS = "the libraries of PySide6 and numpy stay as their projects release them"
_OVERRIDES = {
    "embedded-library": _WHEELS,
    "unstripped-binary-or-object": _WHEELS,
    "library-not-linked-against-libc": _WHEELS,
    "shared-library-lacks-prerequisites": _WHEELS,
}
_MANUAL = """.TH GPU\\-STUDIO 1 "{date}" "GPU Studio {version}"
.SH NAME
gpu-studio \\- see what your graphics card can do with PyTorch
.SH SYNOPSIS
.B gpu-studio
.RI [ COMMAND " [" OPTIONS ]]
.SH DESCRIPTION
Without a command, the window opens. With one, the answer is printed:
.B devices
and
.B doctor
tell what the graphics cards are and whether PyTorch can use them,
.B bench
and
.B race
compare them with the processor.
.B gpu-studio \\-\\-help
lists all commands.
"""


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
SELF_CONTAINED = Kind("", _DEPENDS, 200_000_000)
ON_DEBIAN = Kind("+debian13", _DEPENDS_ON_DEBIAN, 30_000_000)


class Member(NamedTuple):
    """A file, folder or link of a package.

    Attributes:
        name: Its path, without a slash in front.
        content: Of a file; None for a folder and for a link.
        link: Where a link points to.
        is_run: Whether a file is a program.
    """

    name: str
    content: bytes | None = None
    link: str | None = None
    is_run: bool = False


def add_starter(program: Program, app: Path) -> None:
    """Add the shell script that opens the window to the program's folder."""
    source = program.root / "packaging" / "linux"
    for name in ("gpu-studio", "fit_pc.py", "menu.py"):
        shutil.copy(source / name, app / name)


def tar_name(version: str) -> str:
    """Return the file name of the portable folder of a version."""
    return portable_archive(version)


def write_tar(program: Program, app: Path, out: Path, is_fast: bool = False) -> Path:
    """Write the folder that runs where it is unpacked; return the archive."""
    app_folder.mark(program, app, "tar")
    target = out / tar_name(program.version)
    name = target.name.removesuffix(".tar.xz")
    members = [
        *members_of(app, name),
        Member(f"{name}/{APP_ID}.desktop", _desktop_entry(program)),
        # For whoever makes a package of this folder.
        Member(f"{name}/{address_of(program.root).app_id}.metainfo.xml", metainfo(program)),
    ]
    target.write_bytes(_packed(members, program.epoch, is_fast=is_fast))
    return target


def deb_name(version: str, kind: Kind) -> str:
    """Return the file name of a Debian package of a version."""
    return f"gpu-studio_{version}{kind.suffix}_amd64.deb"


def write_deb(program: Program, app: Path, out: Path, kind: Kind, is_fast: bool = False) -> Path:
    """Write a Debian package; return it.

    Raises:
        BuildError: it would take more on the disk than it may.
    """
    app_folder.mark(program, app, "deb")
    target = out / deb_name(program.version, kind)
    own = [
        # Debian's packages have relative links inside /usr.
        one._replace(link=os.path.relpath(one.link, f"/{os.path.dirname(one.name)}"))
        if one.link
        else one
        for one in members_of(app, _HOME)
    ]
    members = [*own, *_system_files(program, app, kind)]
    size = sum(len(one.content) for one in members if one.content is not None)
    if size > kind.largest:
        raise BuildError(f"{target.name} takes {sizes.in_words(size)} on the disk.")
    control = [
        Member("control", control_file(program.version, maintainer(), size // 1024, kind).encode()),
        Member("postinst", _AFTER_INSTALLATION.encode(), is_run=True),
        Member("prerm", _BEFORE_REMOVAL.encode(), is_run=True),
    ]
    control.insert(1, Member("md5sums", _md5sums(members)))
    pieces = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": _packed(control, program.epoch, "./"),
        "data.tar.xz": _packed(members, program.epoch, "./", is_fast=is_fast),
    }
    target.write_bytes(_ar(pieces, program.epoch))
    return target


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


def members_of(folder: Path, below: str) -> list[Member]:
    """Return everything in a folder, sorted, as it would lie below another one."""
    found = []
    for path in sorted(folder.rglob("*"), key=lambda one: one.as_posix()):
        name = f"{below}/{path.relative_to(folder).as_posix()}"
        if path.is_symlink():
            found.append(Member(name, link=str(path.readlink())))
        elif path.is_dir():
            found.append(Member(name))
        else:
            is_run = bool(path.stat().st_mode & 0o100)
            found.append(Member(name, path.read_bytes(), is_run=is_run))
    return found


def _system_files(program: Program, app: Path, kind: Kind) -> Iterable[Member]:
    """Yield the files of the .deb outside the program's own folder."""
    icons, documents = "usr/share/icons/hicolor", "usr/share/doc/gpu-studio"
    pictures = program.root / "resources" / "app"
    history = changes.releases_in((program.root / "CHANGES.md").read_text(encoding="utf-8"))
    told = changes.debian_changelog(history, maintainer(), kind.suffix).encode()
    yield Member("usr/bin/gpu-studio", link="../lib/gpu-studio/gpu-studio")
    yield Member(f"usr/share/applications/{APP_ID}.desktop", _desktop_entry(program))
    app_id = address_of(program.root).app_id
    yield Member(f"usr/share/metainfo/{app_id}.metainfo.xml", metainfo(program))
    yield Member(f"{icons}/scalable/apps/{APP_ID}.svg", (pictures / "gpu-studio.svg").read_bytes())
    yield Member(f"{icons}/256x256/apps/{APP_ID}.png", (pictures / "gpu-studio.png").read_bytes())
    yield Member(f"{documents}/changelog.gz", gzip.compress(told, 9, mtime=0))
    yield Member(f"{documents}/copyright", copyright_file(app).encode())
    manual = _MANUAL.format(date=history[0].date, version=program.version).encode()
    yield Member("usr/share/man/man1/gpu-studio.1.gz", gzip.compress(manual, 9, mtime=0))
    rows = "".join(f"# {why}\ngpu-studio: {tag}\n" for tag, why in _OVERRIDES.items())
    yield Member("usr/share/lintian/overrides/gpu-studio", rows.encode())


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


def _packed(
    members: Iterable[Member], epoch: int, prefix: str = "", *, is_fast: bool = False
) -> bytes:
    """Return a .tar.xz of members and the folders above them; all belong to root."""
    every = {member.name: member for member in members}
    for name in list(every):
        for folder in list(Path(name).parents)[:-1]:
            every.setdefault(folder.as_posix(), Member(folder.as_posix()))
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name in sorted(every):
            archive.addfile(*_entry(every[name], epoch, prefix))
    filters = _FAST_FILTERS if is_fast else _FILTERS
    return lzma.compress(plain.getvalue(), lzma.FORMAT_XZ, filters=filters)


def _entry(member: Member, epoch: int, prefix: str) -> tuple[tarfile.TarInfo, io.BytesIO | None]:
    entry = tarfile.TarInfo(prefix + member.name)
    entry.mtime, entry.uname, entry.gname = epoch, "root", "root"
    if member.link is not None:
        entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, member.link, 0o777
        return entry, None
    if member.content is None:
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
        return entry, None
    entry.size, entry.mode = len(member.content), 0o755 if member.is_run else 0o644
    return entry, io.BytesIO(member.content)


def _md5sums(members: Iterable[Member]) -> bytes:
    import hashlib

    rows = sorted(
        f"{hashlib.md5(one.content, usedforsecurity=False).hexdigest()}  {one.name}\n"
        for one in members
        if one.content is not None
    )
    return "".join(sorted(rows, key=lambda row: row[34:])).encode()


def _ar(pieces: dict[str, bytes], epoch: int) -> bytes:
    """Return an archive as deb(5) wants it: the traditional ar format.

    Raises:
        BuildError: a piece is larger than the format allows.
    """
    whole = b"!<arch>\n"
    for name, content in pieces.items():
        if len(content) >= 10**10:
            raise BuildError(f"{name} is too large for a .deb.")
        whole += f"{name:<16}{epoch:<12}{0:<6}{0:<6}{'100644':<8}{len(content):<10}`\n".encode()
        whole += content + b"\n" * (len(content) % 2)
    return whole
