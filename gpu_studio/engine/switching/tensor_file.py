"""The user's own file of tensors: looked at, then opened with ``weights_only`` and nothing else."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.protocol import FileInspected
from gpu_studio.core.units import format_bytes
from gpu_studio.engine.switching.tensor_header import FileHeader, read_header
from gpu_studio.engine.switching.tensor_pickle import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)


def inspect_file(path: str) -> FileInspected:
    """Return what a file says of itself; raises `StudioError` for one that is not opened."""
    header = read_header(Path(path))
    return FileInspected(
        path=path,
        size_bytes=header.size_bytes,
        tensors=len(header.tensors),
        tensor_bytes=header.tensor_bytes,
        left_out=header.left_out,
        is_mapped=header.is_zip,
        snippet=f"{snippet_to_open(path)}\n{_LIST}",
    )


def snippet_to_open(path: str) -> str:
    """Return lines that open a file as `open_tensors` does, into a dictionary ``tensors``."""
    return _OPEN.format(path=path)


def open_tensors(path: str) -> dict[str, torch.Tensor]:
    """Return a file's tensors on the CPU by their dotted names, in the file's order.

    Those of a zip archive stay in the file until they are read (``mmap``).

    Raises:
        StudioError: the file is refused, or does not fit into the PC's memory.
    """
    header = read_header(Path(path))
    needed = 0 if header.is_zip else header.tensor_bytes
    available = psutil.virtual_memory().available
    if needed > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"The file's tensors need {format_bytes(needed)}, {format_bytes(available)} of the "
            "PC's memory are free.",
        )
    try:
        root = torch.load(path, map_location="cpu", weights_only=True, mmap=header.is_zip)
    except Exception as error:  # of many classes, by PyTorch's version and the file's fault
        _log.warning("%s was refused: %s", path, error)
        refuse(
            f"“{Path(path).name[:60]}” was refused by PyTorch's safe reader (weights_only). It was "
            "not opened otherwise."
        )
    tensors = dict(_tensors(root, ""))
    _compare(tensors, header)
    return tensors


def _tensors(mapping: Any, prefix: str) -> Iterator[tuple[str, torch.Tensor]]:
    for key, value in mapping.items():
        name = f"{prefix}{key}" if isinstance(key, (str, int)) else f"{prefix}?"
        if isinstance(value, torch.Tensor):
            yield name, value.detach()
        elif isinstance(value, dict):
            yield from _tensors(value, f"{name}.")


def _compare(tensors: dict[str, torch.Tensor], header: FileHeader) -> None:
    """Refuse what PyTorch reads otherwise than the header was read."""
    told = {tensor.name: (tensor.shape, tensor.dtype) for tensor in header.tensors}
    found = {
        name: (tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))
        for name, tensor in tensors.items()
    }
    if told != found:
        refuse("The file's list of tensors and its tensors do not agree: it is damaged.")


_OPEN = """\
import torch


def tensors_of(mapping, prefix=""):
    for name, value in mapping.items():
        if isinstance(value, torch.Tensor):
            yield f"{{prefix}}{{name}}", value
        elif isinstance(value, dict):
            yield from tensors_of(value, f"{{prefix}}{{name}}.")


path = {path!r}
file = torch.load(path, map_location="cpu", weights_only=True)  # runs no code of the file
tensors = dict(tensors_of(file))
"""
_LIST = """\
for name, tensor in tensors.items():
    print(name, tuple(tensor.shape), tensor.dtype)
print(len(tensors), "tensors of", sum(one.nbytes for one in tensors.values()), "bytes")
"""
