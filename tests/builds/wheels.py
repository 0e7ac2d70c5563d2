"""Small wheels for the tests, with everything that a real one has."""

from __future__ import annotations

import base64
import hashlib
import io
import sys
import zipfile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

PYTHON = f"cp{sys.version_info[0]}{sys.version_info[1]}"


def wheel_bytes(
    name: str,
    version: str,
    files: Mapping[str, str | bytes],
    requires: Sequence[str] = (),
    tags: str = "py3-none-any",
    executables: Sequence[str] = (),
) -> bytes:
    """Return a wheel.

    Args:
        name: As in its file name.
        version: Its version.
        files: The content by path.
        requires: The lines of Requires-Dist.
        tags: As in its file name.
        executables: The files that are programs.
    """
    folder = f"{name}-{version}.dist-info"
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    everything = dict(files) | {
        f"{folder}/METADATA": metadata(name, version, requires),
        f"{folder}/WHEEL": "Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\n"
        + "".join(f"Tag: {tag}\n" for tag in [tags]),
    }
    assert needs in everything[f"{folder}/METADATA"]
    lines = []
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, content in everything.items():
            data = content.encode() if isinstance(content, str) else content
            info = zipfile.ZipInfo(path)
            info.external_attr = (0o100755 if path in executables else 0o100644) << 16
            archive.writestr(info, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            lines.append(f"{path},sha256={digest},{len(data)}")
        lines.append(f"{folder}/RECORD,,")
        archive.writestr(f"{folder}/RECORD", "\n".join(lines) + "\n")
    return out.getvalue()


def metadata(name: str, version: str, requires: Sequence[str] = ()) -> str:
    """Return the METADATA of a wheel."""
    needs = "".join(f"Requires-Dist: {one}\n" for one in requires)
    return f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}"


def metadata_in(wheel: Path) -> str:
    """Return the METADATA of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(one for one in archive.namelist() if one.endswith(".dist-info/METADATA"))
        return archive.read(name).decode("utf-8")


def write_wheel(folder: Path, name: str, version: str, files: Mapping[str, str | bytes],
                requires: Sequence[str] = (), tags: str = "py3-none-any",
                executables: Sequence[str] = ()) -> Path:  # fmt: skip
    """Write a wheel into a folder and return its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}-{version}-{tags}.whl"
    path.write_bytes(wheel_bytes(name, version, files, requires, tags, executables))
    return path
