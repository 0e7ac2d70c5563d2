"""What the files of an installed PyTorch say of it; nothing of it is imported or run.

The version that counts is that of ``torch/version.py``, which PyTorch itself reads. An index of
packages takes the local off (``2.7.1`` in the metadata, ``2.7.1+cu126`` in the file), and what an
interrupted installation leaves are further records of other versions.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import msgspec

from gpu_studio.core.maker_builds import version_numbers
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Iterator

_MOST_BYTES = 1 << 16
MOST_NAMES = 20_000
"""Of more entries in one folder, only the first are looked at."""
_VALUE = r"^{}\s*(?::[^=\n]*)?=\s*(?:TorchVersion\()?['\"]([^'\"\n]{{1,80}})['\"]"
_RECORD = re.compile(r"torch-([^-]{1,80})(?:-[^/]{1,40})?\.(?:dist|egg)-info")
_COMPANION = re.compile(r"(torchvision|torchaudio)-([^-]{1,80})(?:-[^/]{1,40})?\.(?:dist|egg)-info")
_DEVICE = re.compile(r"amd_torch_device_(gfx[0-9a-z_]+)-([^-]{1,80})\.dist-info")
_CHIP = re.compile(r"gfx[0-9a-f]{3,5}(?![0-9a-f])")
_PYTHON_TAG = re.compile(r"\.c(?:p|python-)3(\d{1,2})-")
_LIBRARIES = {"cuda": "torch_cuda", "rocm": "torch_hip", "xpu": "torch_xpu"}
CPU, CUDA, ROCM, XPU = "cpu", "cuda", "rocm", "xpu"


class TorchFiles(msgspec.Struct, frozen=True, kw_only=True):
    """An installed PyTorch, as its files describe it.

    Attributes:
        version: ``2.7.1+cu126``; "" if no file says it.
        kind: ``cpu``, ``cuda``, ``rocm`` or ``xpu``; "" if unknown.
        tag: the build: ``cu126``, ``rocm6.4``, ``xpu``, ``cpu``; "" if unknown.
        records: the versions of all its records beside it: one if all is well.
        trouble: ``incomplete`` if it cannot work, ``source`` for a folder of sources, ``closed``
            if this user may not read it.
        unreadable: the records that pip fails on: not UTF-8, or without a list of files.
        vision, audio: the versions of torchvision and torchaudio; "" without them.
        chips: AMD's chips that its libraries are named for.
        devices: the versions of AMD's packages with code for a chip, by its name.
        python_minor: the 11 of Python 3.11, as its modules are named; None if unknown.
        by_conda: the channel that conda has it from; "" if pip or uv installed it.
    """

    version: str = ""
    kind: str = ""
    tag: str = ""
    records: tuple[str, ...] = ()
    trouble: str = ""
    unreadable: tuple[str, ...] = ()
    vision: str = ""
    audio: str = ""
    chips: tuple[str, ...] = ()
    devices: dict[str, str] = msgspec.field(default_factory=dict)
    python_minor: int | None = None
    by_conda: str = ""


def names_in(folder: str) -> list[str]:
    """Return the names in a folder, up to a limit; none if it cannot be read."""
    try:
        with os.scandir(folder) as entries:
            return [entry.name for _, entry in zip(range(MOST_NAMES), entries, strict=False)]
    except OSError:
        return []


def is_closed(path: str) -> bool:
    """Return whether this user may not read what is there."""
    return os.path.lexists(path) and os.path.exists(path) and not os.access(path, os.R_OK)


def text_of(path: str, most_bytes: int = _MOST_BYTES) -> str:
    """Return the beginning of an ordinary file; "" for anything else, such as a pipe."""
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if not os.path.isfile(path):  # opening a device may trigger an action
            return ""
        descriptor = os.open(path, flags)
        with open(descriptor, "rb") as file:
            return file.read(most_bytes).decode(errors="replace") if os.path.isfile(path) else ""
    except (OSError, ValueError):
        return ""


def torch_in(site: str, conda_meta: str = "") -> TorchFiles | None:
    """Return the PyTorch of a folder of packages; None without any.

    Args:
        site: the folder, ``…/site-packages``.
        conda_meta: conda's folder of records, if it is a conda environment.
    """
    names = names_in(site)
    records = sorted(found[1] for name in names if (found := _RECORD.fullmatch(name)))
    folder = os.path.join(site, "torch")
    inside = names_in(folder) if "torch" in names else []
    if not records and not {"version.py", "__init__.py"} & set(inside):
        return None
    said = text_of(os.path.join(folder, "version.py"))
    version = _said(said, "__version__")
    kind, tag = _build(said, version, folder)
    lists = [name for name in names if _RECORD.fullmatch(name) and name.endswith("dist-info")]
    installers = {text_of(os.path.join(site, name, "INSTALLER"), 64).strip() for name in lists}
    by_conda = "" if installers & {"pip", "uv"} else _conda_channel(conda_meta)
    companions = dict(sorted(_companions(site, names)))
    devices = {found[1]: found[2] for name in names if (found := _DEVICE.fullmatch(name))}
    tags = (found for name in inside if (found := _PYTHON_TAG.search(name)))
    return TorchFiles(
        version=plain_text(version or (records[0] if len(records) == 1 else "")),
        kind=kind,
        tag=plain_text(tag),
        records=tuple(map(plain_text, records)),
        trouble=_trouble(site, names, inside, version, kind, by_conda),
        unreadable=tuple(name for name in lists if _is_unreadable(os.path.join(site, name))),
        vision=companions.get("torchvision", ""),
        audio=companions.get("torchaudio", ""),
        chips=tuple(_chips(folder)) if kind == ROCM else (),
        devices=devices,
        python_minor=next((int(found[1]) for found in tags), None),
        by_conda=by_conda,
    )


def _is_unreadable(record: str) -> bool:
    """Return whether pip fails on a record: then it neither removes nor replaces PyTorch."""
    texts = [text_of(os.path.join(record, name)) for name in ("METADATA", "RECORD")]
    return not os.path.isfile(os.path.join(record, "RECORD")) or any("\ufffd" in t for t in texts)


def _said(text: str, name: str) -> str:
    found = re.search(_VALUE.format(re.escape(name)), text, re.MULTILINE)
    return found[1] if found else ""


def _build(said: str, version: str, folder: str) -> tuple[str, str]:
    """Return the kind and the tag of a build: by its own values, then local, then libraries."""
    local = version.partition("+")[2].partition(".git")[0]
    hip, cuda = _said(said, "hip"), _said(said, "cuda")
    if hip or local.startswith("rocm"):
        own = re.match(r"rocm\d+(?:\.\d+){0,2}", local)
        return ROCM, own[0] if own else "rocm" + ".".join(hip.split(".")[:2])
    if cuda:
        return CUDA, "cu" + "".join(map(str, version_numbers(cuda)[:2]))
    if re.fullmatch(r"cu\d{2,4}", local):
        return CUDA, local
    if _said(said, "xpu") or local == XPU:
        return XPU, XPU
    libraries = " ".join(names_in(os.path.join(folder, "lib")))
    found = next((kind for kind, name in _LIBRARIES.items() if name in libraries), CPU)
    if not version or (local and local != CPU and found == CPU):
        return (found, "") if found != CPU else ("", "")
    return found, found if found in (CPU, XPU) else ""


def _trouble(
    site: str, names: list[str], inside: list[str], version: str, kind: str, by_conda: str
) -> str:
    folder = os.path.join(site, "torch")
    if is_closed(folder) or is_closed(os.path.join(folder, "version.py")):
        return "closed"
    if not inside:
        is_linked = any("editable" in name and "torch" in name for name in names)
        return "source" if is_linked else "incomplete"
    if not version:
        return "incomplete"
    libraries = " ".join(names_in(os.path.join(site, "torch", "lib")))
    wanted = _LIBRARIES.get(kind, "")
    is_short = "torch_cpu" in libraries and wanted not in libraries and not by_conda
    return "incomplete" if is_short else ""


def _companions(site: str, names: list[str]) -> Iterator[tuple[str, str]]:
    """Yield torchvision and torchaudio with their versions, theirs before their records'."""
    for name in names:
        found = _COMPANION.fullmatch(name)
        if found is not None:
            yield (
                found[1],
                plain_text(
                    _said(text_of(os.path.join(site, found[1], "version.py")), "__version__")
                    or found[2]
                ),
            )


def _chips(folder: str) -> list[str]:
    """Return the chips that AMD's libraries beside a build are named for."""
    places = (os.path.join(folder, "lib", name, "library") for name in ("rocblas", "hipblaslt"))
    return sorted({chip for place in places for name in names_in(place)
                   for chip in _CHIP.findall(name)})  # fmt: skip


def _conda_channel(conda_meta: str) -> str:
    """Return the channel that conda has PyTorch from; "" if conda did not install it."""
    for name in names_in(conda_meta) if conda_meta else []:
        if re.fullmatch(r"pytorch-\d[^-]*-.*\.json", name):
            found = re.search(r'"channel":\s*"([^"]{1,200})"', text_of(f"{conda_meta}/{name}"))
            return plain_text(found[1]) if found else "conda"
    return ""
