"""The user's own file of tensors, opened by PyTorch's safe reader (``weights_only``) alone.

The safe reader runs no code of a file, but a few bytes can still cost it all memory or an hour. So
a child process with limits opens a file first (`answer`), and this process opens the same file
after that. Before torch 2.10 a file can corrupt memory through the reader (CVE-2026-24747): there
no file is opened.
"""

from __future__ import annotations

import functools
import itertools
import logging
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import psutil
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.messages.placement_messages import FileInspected
from gpu_studio.core.texts import file_name, plain_text
from gpu_studio.core.units import format_bytes
from gpu_studio.core.user_file import UnusableFileError, open_user_file
from gpu_studio.process.child_call import ChildCall

if TYPE_CHECKING:
    from collections.abc import Iterator

_log = logging.getLogger(__name__)
_MODULE = "gpu_studio.engine.switcher.tensor_file"
_OLDEST_SAFE = (2, 10)
# The mapped file comes on top. On Windows PyTorch's CUDA libraries alone count for some GiB.
_MEMORY_BYTES = (8 if sys.platform == "win32" else 4) << 30
_LONGEST_S = 60.0
_MOST_ANSWER_BYTES = 1 << 20
_MOST_VALUES = 200_000
_DEEPEST = 8

_ONLY = "This program opens torch.save files that map names to tensors."
_SAVE = "Save only the tensors, with torch.save(model.state_dict(), …)."
_ZIP = b"PK\x03\x04"
# Two opcodes and torch.serialization.MAGIC_NUMBER: the format before 1.6 begins with these.
_LEGACY = b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19"
_OTHER_FORMATS = {
    b"\x80": "is a Python pickle, but not one that torch.save wrote",
    b"\x89HDF": "is an HDF5 file (Keras writes these)",
    b"GGUF": "is a GGUF file (llama.cpp reads these)",
}


def inspect_file(path: str) -> FileInspected:
    """Return a file's description of itself; raises `StudioError` if it is refused."""
    if tuple(map(int, torch.__version__.split(".")[:2])) < _OLDEST_SAFE:
        raise _refused(
            "Opening your own files needs PyTorch 2.10 or newer. Before that, a file could harm "
            f"this program (CVE-2026-24747), and this is PyTorch {torch.__version__}."
        )
    return _inspected(path, version_of(path))


def version_of(path: str) -> tuple[int, ...]:
    """Return values that change if the file is written; empty if the file is gone."""
    try:
        status = Path(path).stat()
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


@functools.lru_cache(maxsize=4)
def _inspected(path: str, version: tuple[int, ...]) -> FileInspected:
    """Return what the child says of a file, which is asked once for each version of it."""
    size_bytes = version[1] if version else 0
    call = ChildCall(_MODULE, memory_bytes=_MEMORY_BYTES + size_bytes)
    try:
        ended = call.run(
            msgspec.json.encode(path), longest_s=_LONGEST_S, most_bytes=_MOST_ANSWER_BYTES
        )
    except OSError as error:
        raise _refused(f"No process can be started to open {_shown(path)}.") from error
    if ended.exit_code != 0:
        late = f"{_shown(path)} takes longer than {_LONGEST_S:.0f} s to open and was stopped."
        raise _refused(ended.reason or (late if ended.is_late else _too_much(path)))
    return msgspec.json.decode(ended.content, type=FileInspected)


def answer(content: bytes) -> bytes:
    """Return the description of a file, in a child process; raise ValueError with the reason."""
    path = msgspec.json.decode(content, type=str)
    try:
        found = read_tensors(path, mmap=True)
    except MemoryError as error:
        raise ValueError(_too_much(path)) from error
    except StudioError as error:
        raise ValueError(str(error)) from error
    tensors = [value for _, value in found if value is not None]
    inspected = FileInspected(
        path=path,
        size_bytes=Path(path).stat().st_size,
        tensors=len(tensors),
        tensor_bytes=sum(tensor.nbytes for tensor in tensors),
        left_out=len(found) - len(tensors),
        snippet=f"{snippet_to_open(path)}\n{_LIST}",
    )
    return msgspec.json.encode(inspected)


def open_tensors(path: str) -> dict[str, torch.Tensor]:
    """Return a file's tensors on the CPU by their dotted names, in the file's order.

    They stay in the file until they are read (``mmap``), unless it has the format before 1.6. On
    Windows a mapped file cannot be written: your training could not save its next checkpoint.

    Raises:
        StudioError: the file is refused, or does not fit into the PC's memory.
    """
    inspected = inspect_file(path)
    is_mapped = sys.platform != "win32" and _is_zip(path)
    available = psutil.virtual_memory().available
    if not is_mapped and inspected.tensor_bytes > available:
        raise StudioError(
            FailureKind.TOO_LARGE,
            f"The file's tensors need {format_bytes(inspected.tensor_bytes)}, but only "
            f"{format_bytes(available)} of the PC's memory is free.",
        )
    found = read_tensors(path, mmap=is_mapped)
    return {name: tensor for name, tensor in found if tensor is not None}


def read_tensors(path: str, *, mmap: bool) -> list[tuple[str, torch.Tensor | None]]:
    """Return the tensors of a file by their dotted names, and None for each other value.

    Raises:
        StudioError: the file is damaged, unsafe, or not a mapping of names to tensors. The sentence
            names the reason and the next step.
    """
    shown = _shown(path)
    is_zip = _is_zip(path)
    try:
        root = torch.load(path, map_location="cpu", weights_only=True, mmap=mmap and is_zip)
    except MemoryError:
        raise
    except Exception as error:  # of many classes, by PyTorch's version and the file's fault
        _log.warning("%s was refused: %s", path, error)
        raise _unsafe(path) from None
    if not isinstance(root, dict):
        what = "one tensor" if isinstance(root, torch.Tensor) else f"a {type(root).__name__}"
        raise _refused(f"{shown} holds {what}, not a mapping of names to tensors. {_SAVE}")
    found = list(itertools.islice(_walk(root, "", 0, shown), _MOST_VALUES + 1))
    if len(found) > _MOST_VALUES:
        raise _refused(f"{shown} holds more than {_MOST_VALUES} values, too many for a model.")
    _require_plain([(name, value) for name, value in found if value is not None], path)
    return found


def _walk(
    mapping: dict[Any, Any], prefix: str, depth: int, shown: str
) -> Iterator[tuple[str, torch.Tensor | None]]:
    if depth > _DEEPEST:
        raise _refused(f"{shown} nests mappings more than {_DEEPEST} deep.")
    for key, value in mapping.items():
        name = f"{prefix}{key}" if isinstance(key, (str, int)) else f"{prefix}?"
        if isinstance(value, dict):
            yield from _walk(value, f"{name}.", depth + 1, shown)
        else:
            yield name, value.detach() if isinstance(value, torch.Tensor) else None


def _require_plain(tensors: list[tuple[str, torch.Tensor]], path: str) -> None:
    """Refuse tensors without a name of their own, and those with other numbers than the file's."""
    shown = _shown(path)
    if not tensors:
        raise _refused(f"{shown} holds a mapping, but it has no tensors.")
    if len(dict(tensors)) < len(tensors):
        raise _refused(
            f"{shown} holds several tensors with the same name. Give each its own, as a text."
        )
    storages = {}
    for name, tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized or not tensor.is_cpu:
            raise _refused(
                f"{shown} holds a sparse, quantized or meta tensor, “{plain_text(name)[:60]}”. "
                "Save plain tensors, such as tensor.to_dense()."
            )
        storage = tensor.untyped_storage()
        storages[storage.data_ptr()] = storage.nbytes()
        if tensor.nbytes > storage.nbytes():
            raise _refused(
                f"“{plain_text(name)[:60]}” in {shown} repeats the same numbers, as expand() does: "
                f"{format_bytes(storage.nbytes())} become {format_bytes(tensor.nbytes)}. Save "
                "tensor.contiguous() instead."
            )
    stored_bytes, declared = _stored_bytes(path), sum(storages.values())
    if declared > stored_bytes:
        raise _refused(
            f"{shown} declares {format_bytes(declared)} of tensors, but has only "
            f"{format_bytes(stored_bytes)}: it is cut off or forged."
        )


def _is_zip(path: str) -> bool:
    """Return whether a file begins as an archive of ``torch.save``; otherwise it is its old format.

    Raises:
        StudioError: it is neither.
    """
    shown = _shown(path)
    try:
        with open_user_file(Path(path)) as file:
            head = file.read(len(_LEGACY))
    except UnusableFileError as error:
        raise _refused(f"{shown} cannot be opened: {error}.") from error
    except OSError as error:
        raise _refused(f"{shown} cannot be read: {error.strerror or error}.") from error
    if not head:
        raise _refused(f"{shown} is empty.")
    if head.startswith((_ZIP, _LEGACY)):
        return head.startswith(_ZIP)
    what = "looks like a safetensors file" if head[8:9] == b"{" else "is not a torch.save file"
    for sign, other in _OTHER_FORMATS.items():
        what = other if head.startswith(sign) else what
    raise _refused(f"{shown} {what}. {_ONLY}")


def _stored_bytes(path: str) -> int:
    """Return the most bytes that a file's tensors can have."""
    if not _is_zip(path):
        return Path(path).stat().st_size
    with zipfile.ZipFile(path) as archive:
        records = archive.infolist()
    if any(record.compress_type != zipfile.ZIP_STORED for record in records):
        raise _refused(f"{_shown(path)} is a compressed zip archive. torch.save does not compress.")
    return sum(one.file_size for one in records if "/data/" in one.filename)


def _unsafe(path: str) -> StudioError:
    """Return the refusal of a file that the safe reader did not open, with the first name in it."""
    try:
        names = torch.serialization.get_unsafe_globals_in_checkpoint(path)
    except Exception as error:  # of as many classes as the reader's own
        _log.warning("%s has no list of names: %s", path, error)
        names = []
    if names:
        name = plain_text(names[0])[:60]
        what = "That is no tensor and may be code"
        if name.rpartition(".")[2][:1].isupper():  # as in a whole saved model, or its settings
            name, what = f"the class {name}", "A class is no tensor, and its code may run"
        return _refused(
            f"{_shown(path)} asks for {name}. {what}: PyTorch's safe reader (weights_only) does "
            f"not open it, and none of it has run. {_SAVE}"
        )
    return _refused(
        f"{_shown(path)} was refused by PyTorch's safe reader (weights_only). It is cut off, "
        f"damaged or forged, or holds more than tensors. {_SAVE}"
    )


def _too_much(path: str) -> str:
    return f"{_shown(path)} needs more memory than a file of its size may."


def _refused(sentence: str) -> StudioError:
    return StudioError(FailureKind.FILE_REFUSED, sentence)


def snippet_to_open(path: str) -> str:
    """Return lines that open a file as `open_tensors` does, into a dictionary ``tensors``."""
    return _OPEN.format(path=path)


def _shown(path: str | Path) -> str:
    return f"“{file_name(Path(path))[:60]}”"


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
