"""Describes the tensors of a ``torch.save`` pickle, without making one. No torch here.

This is Python's own unpickler (``pickle._Unpickler``), limited to the opcodes that PyTorch's safe
reader (``weights_only``) knows, and to a few names of PyTorch that stand for functions of this
module. It imports nothing that the file names, and copies no more values than the pickle has bytes.

Before torch 2.10, the safe reader sets entries of any object, and trusts the length that a storage
claims (CVE-2026-24747). Here, entries are set only in dictionaries, and a tensor must lie within
bytes that the file has.
"""

from __future__ import annotations

import pickle
import pickletools
import re
import struct
from typing import TYPE_CHECKING, Any, NoReturn

import msgspec

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.units import format_bytes

if TYPE_CHECKING:
    import io
    from collections.abc import Callable

# Those that PyTorch's safe reader knows, but for NEWOBJ, which makes an instance of a class.
_SAFE_OPCODES = (
    "PROTO", "STOP", "MARK", "GLOBAL", "REDUCE", "BUILD", "BINPERSID", "BINPUT", "LONG_BINPUT",
    "BINGET", "LONG_BINGET", "NONE", "NEWTRUE", "NEWFALSE", "BININT", "BININT1", "BININT2", "LONG1",
    "BINFLOAT", "SHORT_BINSTRING", "BINUNICODE", "EMPTY_LIST", "APPEND", "APPENDS", "EMPTY_TUPLE",
    "TUPLE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_DICT", "SETITEM", "SETITEMS", "EMPTY_SET",
)  # fmt: skip
# The safe reader refuses these of other protocols. Here they are read, so that the refusal names
# the protocol, or the function that the file wants to call.
_OTHER_OPCODES = (
    "STRING", "FRAME", "STACK_GLOBAL", "MEMOIZE", "SHORT_BINUNICODE", "BINUNICODE8",
    "SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "ADDITEMS",
)  # fmt: skip
ITEM_BYTES = {
    "float64": 8, "float32": 4, "float16": 2, "bfloat16": 2, "int64": 8, "int32": 4, "int16": 2,
    "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16, "uint16": 2, "uint32": 4,
    "uint64": 8, "float8_e4m3fn": 1, "float8_e5m2": 1, "float8_e4m3fnuz": 1, "float8_e5m2fnuz": 1,
}  # fmt: skip
# Types of PyTorch beside those above, of which there are more with every version.
_NUMBERS = re.compile(r"(bits|complex|float|q?u?int)\d")
_STORAGES = {
    "DoubleStorage": "float64", "FloatStorage": "float32", "HalfStorage": "float16",
    "BFloat16Storage": "bfloat16", "LongStorage": "int64", "IntStorage": "int32",
    "ShortStorage": "int16", "CharStorage": "int8", "ByteStorage": "uint8", "BoolStorage": "bool",
    "ComplexFloatStorage": "complex64", "ComplexDoubleStorage": "complex128",
    "UntypedStorage": "uint8",
}  # fmt: skip
# Values beside the tensors that PyTorch's safe reader makes; here they are left out.
_LEFT_OUT = frozenset((
    "builtins.set", "builtins.complex", "builtins.bytearray", "_codecs.encode", "torch.device",
))  # fmt: skip
# Values that it does not make, though they do no harm: the names are exact, since the modules
# around some of them have functions that run a text.
_OF_NUMPY = re.compile(
    r"numpy\.(ndarray|dtype|dtypes\.\w+DType)"
    r"|numpy\._?core\.(multiarray\.(_reconstruct|scalar)|numeric\._frombuffer)"
)
_PLAIN = re.compile(
    r"builtins\.(frozenset|x?range|slice)|collections\.(defaultdict|deque)|argparse\.Namespace"
    r"|datetime\.\w+|decimal\.Decimal|fractions\.Fraction|uuid\.UUID"
    # Python 3.13 alone names its module of paths.
    r"|pathlib\.(_local\.)?\w*Path"
)


class StorageHeader(msgspec.Struct, frozen=True):
    """Where a tensor's bytes are in the file, and how many are declared."""

    key: str
    dtype: str
    bytes: int


class DescribedTensor(msgspec.Struct, frozen=True):
    """A tensor that lies within its storage; ``bytes`` is what it takes in memory."""

    shape: tuple[int, ...]
    dtype: str
    bytes: int


class _Dtype(msgspec.Struct, frozen=True):
    name: str


def refuse(sentence: str) -> NoReturn:
    """Raise the error of a file that is not opened."""
    raise StudioError(FailureKind.FILE_REFUSED, sentence)


class Describer(pickle._Unpickler):
    """Builds descriptions: every name it knows is one of this module's own functions.

    Args:
        stream: the pickle.
        storage: returns the record of a key, a dtype and a count, or refuses it.
        shown: the file's name in sentences.
    """

    stack: list[Any]
    memo: dict[int, Any]
    read: Callable[[int], bytes]
    pop_mark: Callable[[], list[Any]]
    proto: int

    def __init__(
        self, stream: io.BytesIO, storage: Callable[[str, str, int], StorageHeader], shown: str
    ) -> None:
        super().__init__(stream)
        self._storage = storage
        self._shown = shown
        self._pickle_bytes = stream.getbuffer().nbytes
        self._copied = 0

    def load_setitem(self) -> None:
        """Set one entry of a dictionary."""
        value = self.stack.pop()
        self._set([self.stack.pop(), value])

    def load_setitems(self) -> None:
        """Set entries of a dictionary."""
        self._set(self.pop_mark())

    def _set(self, items: list[Any]) -> None:
        mapping = self.stack[-1]
        if not isinstance(mapping, dict):
            raise pickle.UnpicklingError("it sets entries of something other than a dictionary")
        mapping.update(zip(items[::2], items[1::2], strict=True))

    def load_build(self) -> None:
        """Leave out an ordered dictionary's attributes, such as ``_metadata``."""
        self.stack.pop()
        if not isinstance(self.stack[-1], dict):
            raise pickle.UnpicklingError("it sets attributes of something other than a dictionary")

    def load_reduce(self) -> None:
        """Call a function of this module, or copy a mapping or a shape."""
        arguments = self.stack.pop()
        self._copied += sum(
            len(one) for one in arguments if isinstance(one, (list, tuple, dict, set))
        )
        if self._copied > self._pickle_bytes:
            raise pickle.UnpicklingError("it copies more values than it has")
        self.stack[-1] = self.stack[-1](*arguments)

    def load_long_binput(self) -> None:
        """Remember a value by a number that the pickle can have reached."""
        (number,) = struct.unpack("<I", self.read(4))
        if number > self._pickle_bytes:
            raise pickle.UnpicklingError(f"a value is remembered as number {number}")
        self.memo[number] = self.stack[-1]

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name; raises `StudioError` for all but a few names."""
        return _known(module, name, shown=self._shown)

    def persistent_load(self, pid: Any) -> StorageHeader:
        """Return a storage's description, once its record was found long enough."""
        if not (isinstance(pid, tuple) and len(pid) in (5, 6) and pid[0] == "storage"):
            raise pickle.UnpicklingError("a reference is not a storage")
        dtype, key, count = pid[1], pid[2], pid[4]
        if not (isinstance(dtype, _Dtype) and isinstance(key, str) and _is_size(count)):
            raise pickle.UnpicklingError("a storage has no type, name or length")
        return self._storage(key, dtype.name, count)


def _refusing(opcode: str) -> Callable[[Any], None]:
    """Return the action for an opcode that is not read."""

    def action(describer: Describer) -> None:
        refuse(
            f"{describer._shown} may contain code: its list of tensors uses {opcode}, which "
            "torch.save does not write for a mapping of tensors. It was not opened."
        )

    return action


Describer.dispatch = {
    ord(opcode.code): getattr(Describer, pickle._Unpickler.dispatch[ord(opcode.code)].__name__)
    if opcode.name in _SAFE_OPCODES or opcode.name in _OTHER_OPCODES
    else _refusing(opcode.name)
    for opcode in pickletools.opcodes
}


def _known(module: str, name: str, *, shown: str) -> Any:
    if module == "collections" and name in ("OrderedDict", "Counter"):
        return dict
    if module == "torch" and name in _STORAGES:
        return _Dtype(_STORAGES[name])
    if module == "torch.storage" and name == "UntypedStorage":
        return _Dtype("uint8")
    if module == "torch" and name in ITEM_BYTES:
        return _Dtype(name)
    if (module, name) == ("torch", "Size"):
        return tuple
    if module == "torch._utils" and name in _REBUILDERS:
        return _REBUILDERS[name]
    if module == "torch._utils" and name.startswith("_rebuild"):
        refuse(
            f"{shown} holds a tensor of a kind that is not opened here ({name[:60]}), for example "
            "a sparse, quantized or meta tensor. Save plain tensors, such as tensor.to_dense()."
        )
    if module == "torch" and _NUMBERS.match(name):
        refuse(f"{shown} holds numbers of the type torch.{name[:60]}, which is not opened here.")
    whole_name = f"{module.replace('__builtin__', 'builtins')}.{name}"
    if whole_name in _LEFT_OUT:
        return _left_out
    if _OF_NUMPY.fullmatch(whole_name):
        refuse(
            f"{shown} holds NumPy arrays or numbers beside its tensors, and PyTorch's safe reader "
            "(weights_only) does not open those. Save arrays as torch.from_numpy(array) and "
            "numbers as number.item(), or save only the tensors."
        )
    if _PLAIN.fullmatch(whole_name):
        refuse(
            f"{shown} holds a value of the type {whole_name} beside its tensors, and PyTorch's "
            "safe reader (weights_only) does not open it. Save it as a number, a text, a list or a "
            "dictionary, or save only the tensors."
        )
    if module.split(".")[0] in ("__main__", "torch") or module.startswith("models"):
        refuse(
            f"{shown} has code in it: opening it would create a {module[:60]}.{name[:60]}. If it "
            "is a whole model, save only its tensors with torch.save(model.state_dict(), …)."
        )
    refuse(
        f"{shown} has code in it: opening it would call {module[:60]}.{name[:60]}. It was not "
        "opened, and none of its code has run."
    )


def _left_out(*_: Any) -> None:
    """Stand for a value that is no tensor."""


def _is_size(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60


def _rebuild(storage: Any, offset: Any, size: Any, stride: Any, *_rest: Any) -> DescribedTensor:
    return _described(storage, storage.dtype, offset, size, stride)


def _rebuild_with_dtype(  # torch._utils._rebuild_tensor_v3
    storage: Any, offset: Any, size: Any, stride: Any, _grad: Any, _hooks: Any, dtype: Any,
    *_rest: Any,
) -> DescribedTensor:  # fmt: skip
    if not isinstance(dtype, _Dtype):
        raise pickle.UnpicklingError("a tensor has no type")
    return _described(storage, dtype.name, offset, size, stride)


def _rebuild_parameter(tensor: Any, *_rest: Any) -> DescribedTensor:
    if not isinstance(tensor, DescribedTensor):
        raise pickle.UnpicklingError("a parameter has no tensor")
    return tensor


_REBUILDERS: dict[str, Callable[..., DescribedTensor]] = {
    "_rebuild_tensor": _rebuild,
    "_rebuild_tensor_v2": _rebuild,
    "_rebuild_tensor_v3": _rebuild_with_dtype,
    "_rebuild_parameter": _rebuild_parameter,
}


def _described(storage: Any, dtype: str, offset: Any, size: Any, stride: Any) -> DescribedTensor:
    """Return a tensor that lies within its storage; raises for one that does not."""
    sizes_are_right = (
        isinstance(storage, StorageHeader)
        and isinstance(size, tuple)
        and isinstance(stride, tuple)
        and len(size) == len(stride) <= 64
        and all(_is_size(number) for number in (offset, *size, *stride))
    )
    if not sizes_are_right:
        raise pickle.UnpicklingError("a tensor has no valid shape")
    count = 1
    for length in size:
        count *= length
    item_bytes = ITEM_BYTES[dtype]
    last = offset + sum((length - 1) * step for length, step in zip(size, stride, strict=True))
    is_inside = (last + 1) * item_bytes <= storage.bytes
    if count and is_inside and 0 in stride and count * item_bytes > storage.bytes:
        refuse(
            "A tensor in the file repeats the same numbers, as expand() does: "
            f"{format_bytes(storage.bytes)} become {format_bytes(count * item_bytes)}. Save "
            "tensor.contiguous() instead."
        )
    if count and (not is_inside or count * item_bytes > storage.bytes):
        raise pickle.UnpicklingError(
            f"a tensor of {format_bytes(count * item_bytes)} reaches beyond its storage of "
            f"{format_bytes(storage.bytes)}"
        )
    return DescribedTensor(size, dtype, count * item_bytes)
