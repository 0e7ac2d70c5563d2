"""Makes a wheel of a source archive, where an index has no wheel.

AMD's index has ``rocm`` only as source, plain Python below ``src``, whose module finds the
libraries of the other packages when PyTorch is imported. Its build script only chooses those
packages for the PC, which `plan.py` has done already: nothing of it is run.
"""

from __future__ import annotations

import base64
import hashlib
import io
import tarfile
import zipfile
from pathlib import PurePosixPath

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.trouble import TroubleError

_MOST_BYTES = 16 << 20
_SOURCE = "src"


def wheel_name(name: str, version: str) -> str:
    """Return the file name of the wheel: "rocm-10.0.0-py3-none-any.whl"."""
    return f"{name.replace('-', '_')}-{version}-py3-none-any.whl"


def wheel_of_source(archive: bytes, name: str, version: str) -> bytes:
    """Return a wheel with the modules of a source archive.

    Args:
        archive: The content of ``NAME-VERSION.tar.gz``.
        name: The package, "rocm".
        version: Its version, "10.0.0".

    Raises:
        TroubleError: It is no such archive, has no modules, or is larger than any such package.
    """
    try:
        modules = _modules(archive)
    except (tarfile.TarError, OSError, EOFError, ValueError) as error:
        raise TroubleError(_broken(name, version, str(error))) from error
    if not modules:
        raise TroubleError(_broken(name, version, f"it has no modules below {_SOURCE}"))
    folder = f"{name.replace('-', '_')}-{version}.dist-info"
    files = modules | {
        f"{folder}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n".encode(),
        f"{folder}/WHEEL": b"Wheel-Version: 1.0\nGenerator: gpu-studio\nRoot-Is-Purelib: true\n"
        b"Tag: py3-none-any\n",
    }
    lines = [f"{path},sha256={_digest(data)},{len(data)}" for path, data in files.items()]
    record = "\n".join([*lines, f"{folder}/RECORD,,", ""]).encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as wheel:
        for path, data in (files | {f"{folder}/RECORD": record}).items():
            # A fixed time: the same archive gives the same wheel.
            wheel.writestr(zipfile.ZipInfo(path), data, zipfile.ZIP_DEFLATED)
    return out.getvalue()


def _modules(archive: bytes) -> dict[str, bytes]:
    """Return the files below ``NAME-VERSION/src``, by path.

    Raises:
        ValueError: A path leads elsewhere, or all of them are too large.
    """
    found: dict[str, bytes] = {}
    left = _MOST_BYTES
    with tarfile.open(fileobj=io.BytesIO(archive), mode="r:gz") as packed:
        for member in packed:
            parts = PurePosixPath(member.name).parts
            if not member.isfile() or len(parts) < 3 or parts[1] != _SOURCE:
                continue
            if ".." in parts or "\\" in member.name or ":" in member.name:
                raise ValueError(f"{member.name!r} leads elsewhere")
            left -= member.size
            if left < 0:
                raise ValueError("it is larger than any such package")
            if parts[2].endswith(".egg-info"):
                continue
            content = packed.extractfile(member)
            found["/".join(parts[2:])] = content.read() if content is not None else b""
    return found


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _broken(name: str, version: str, why: str) -> troubles.Trouble:
    return troubles.broken_wheel(f"{name}-{version}.tar.gz", why)
