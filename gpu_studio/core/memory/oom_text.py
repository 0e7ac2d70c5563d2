"""The numbers in the text of an out-of-memory error, for every version of PyTorch since 1.0.

Most texts are PyTorch's own (c10/cuda/CUDACachingAllocator.cpp). ``format_size`` of
c10/core/Allocator.h writes the sizes: plain bytes up to 1 KiB, then two decimals of KiB, MiB and
GiB. So a number read here is exact to 0.005 of its unit. Since 2.0, "tried" is the segment that the
allocator requested from the driver, not the tensor. Older PyTorch on Apple's GPUs writes GB and
means GiB.

Texts come from terminals, containers and forums: lines are wrapped, colored and quoted, begin with
times or ranks, and stand between tracebacks. They may also be hostile, so no pattern here takes
long on any text.
"""

from __future__ import annotations

import re
from itertools import islice

import msgspec

_UNITS = {
    "": 1, "B": 1, "byte": 1, "bytes": 1,
    "KB": 1 << 10, "MB": 1 << 20, "GB": 1 << 30, "TB": 1 << 40,
    "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
}  # fmt: skip
# It only begins at the start of a number, so that a row of a million digits is read once. Programs
# that set the system's locale write decimal commas.
SIZE = r"(?<!\d)(?<!\d[.,])(\d{1,20}(?:[.,]\d{1,6})?)(bytes|byte|[KMGT]i?B|B)"
_BYTES = r"(?<!\d)(\d{1,20})()(?!\d)"
# Without spaces, because the text is read without them: a terminal wraps in the middle of a word.
_FORMS = {
    "tried_bytes": (
        f"(?:Triedto|youtriedto|Unableto)allocate{SIZE}",
        f"Requested(?:size)?:{SIZE}",
        rf"Requestedsizewas{SIZE}",
        rf"(?:allocating|[( ]){SIZE}(?:ondevice|chunk)",
        rf"bufferofsize{_BYTES}",
        rf"allocationofsize{_BYTES}",
        f"Invalidbuffersize:{SIZE}",
        f"MTLBufferforsize{_BYTES}",
        f"Required:{_BYTES}",
    ),
    "total_bytes": (
        f"totalcapaci?tyof{SIZE}",
        f"{SIZE}totalcapaci?ty",
        f"Devicelimit:{SIZE}",
    ),
    "free_bytes": (
        f"ofwhich{SIZE}isfree",
        f"{SIZE}free",
        rf"Free\(accordingtoCUDA\):{SIZE}",
    ),
    "in_use_bytes": (f"thisprocesshas{SIZE}memoryinuse",),
    "limit_bytes": (
        f"{SIZE}allowed",
        rf"PyTorchlimit\(setbyuser-suppliedmemoryfraction\):{SIZE}",
        f"maxallowed:{SIZE}",
        f"Hardwarelimit:{_BYTES}",
    ),
    "allocated_bytes": (
        f"emory{SIZE}isallocatedbyPyTorch",
        f"{SIZE}alreadyallocated",
        f"(?:MPS|[Cc]urrently)allocated:{SIZE}",
    ),
    "reserved_bytes": (f"{SIZE}reservedintotal",),
    "private_pools_bytes": (f"with{SIZE}allocatedinprivatepools",),
    "other_bytes": (f"otherallocations:{SIZE}",),
    # Up to 1.3, "cached" is the memory of no tensor. Since 1.4, "reserved in total" is all of it.
    "unallocated_bytes": (f"{SIZE}isreservedbyPyTorchbutunallocated", f"{SIZE}cached"),
}
_PATTERNS = {
    name: tuple(re.compile(form, re.ASCII) for form in forms) for name, forms in _FORMS.items()
}
_PROCESS = re.compile(rf"Process(\d{{1,10}})has{SIZE}memoryinuse", re.ASCII)
# Colors, also where the escape character was lost on the way.
_COLOR = re.compile(r"(?:\x1b|\^\[|␛)?\[\d{0,3}(?:;\d{1,3}){0,8}m|\x1b\[[\d;?]{0,20}[A-Za-z]")
_CLOCK = r"\d\d:\d\d:\d\d"
_LEVEL = r"(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
# What stands before each line of a log.
_PREFIXES = (
    r"[>|│]",
    r"\[(?:rank|default)?\d{1,4}\]:",
    r"[Rr]ank[ ]?\d{1,4}:",
    r"\d{1,4}:(?=[ ])",
    r"[A-Za-z][\w./-]{0,60}[ ]{0,20}[|│]",
    r"\([A-Z]\w{2,30}[ ]pid=\d{1,10}\)",
    rf"{_LEVEL}[ ]\d\d-\d\d[ ]{_CLOCK}[ ]\[[\w.:/-]{{1,60}}\]",
    rf"\[?\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:[.,]\d{{1,9}})?(?:Z|[+-]\d\d:?\d\d)?\]?",
    rf"-?[ ]?[\w.]{{1,60}}[ ]-[ ]{_LEVEL}[ ]-",
    rf"{_LEVEL}(?::[\w.]{{1,60}}:|(?=[ ]))",
)
_PREFIX = re.compile(rf"(?m)^(?:[ \t]{{0,40}}(?:{'|'.join(_PREFIXES)})){{1,12}}", re.ASCII)
_RIGHT_BORDER = re.compile(r"(?m)(?<![ \t])[ \t]{0,200}[|│]\r?$")
# If the driver gives no value (all bits set), the text has 17179869184 GiB.
_LARGEST_BYTES = 1 << 60
_MOST_PROCESSES = 256
MOST_CHARACTERS = 1 << 20
"""The numbers of a text."""


class GpuProcessBytes(msgspec.Struct, frozen=True):
    """The memory of another process on the card, from the text."""

    pid: int
    bytes: int


class OomNumbers(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The numbers of a text, in bytes; None if the text does not have them.

    Attributes:
        tried_bytes: the request to the driver or a library.
        total_bytes, free_bytes: of the card.
        in_use_bytes: this process's memory on the card, including the CUDA context.
        allocated_bytes: the memory held by tensors.
        reserved_bytes: the memory that PyTorch has from the driver.
        unallocated_bytes: the part of it that no tensor holds.
        limit_bytes: the most that PyTorch may reserve.
        private_pools_bytes: allocated in private pools, such as those of CUDA graphs.
        other_bytes: this process's memory on an Apple GPU outside of PyTorch's pools.
    """

    tried_bytes: int | None = None
    total_bytes: int | None = None
    free_bytes: int | None = None
    in_use_bytes: int | None = None
    allocated_bytes: int | None = None
    reserved_bytes: int | None = None
    unallocated_bytes: int | None = None
    limit_bytes: int | None = None
    private_pools_bytes: int | None = None
    other_bytes: int | None = None
    processes: tuple[GpuProcessBytes, ...] = ()

    @property
    def others_bytes(self) -> int:
        """What the other processes hold."""
        return sum(process.bytes for process in self.processes)

    @property
    def holes_bytes(self) -> int:
        """What PyTorch reserved and no tensor holds; 0 if the text does not say."""
        if self.unallocated_bytes is not None:
            return self.unallocated_bytes
        return max(0, (self.reserved_bytes or 0) - (self.allocated_bytes or 0))

    @property
    def from_driver_bytes(self) -> int:
        """What PyTorch has from the driver."""
        allocated = (self.allocated_bytes or 0) + (self.private_pools_bytes or 0)
        return max(self.reserved_bytes or 0, allocated + self.holes_bytes)

    @property
    def held_bytes(self) -> int:
        """What the program holds of the card; 0 if the text does not say."""
        return max(self.in_use_bytes or 0, self.from_driver_bytes)

    @property
    def elsewhere_bytes(self) -> int:
        """The part of the card that neither the program holds nor is free; 0 if unknown."""
        if self.total_bytes is None or self.free_bytes is None or not self.held_bytes:
            return 0
        return max(0, self.total_bytes - self.free_bytes - self.held_bytes)


def read_oom_text(text: str) -> OomNumbers:
    """Return the numbers of an out-of-memory text; any other text has none.

    With several errors, the numbers belong to the first; `core.errors.reader` separates them.
    """
    return numbers_in(letters_of(text))


def rounding_bytes(size_bytes: int) -> int:
    """Return the rounding error of a size in these texts: half of its second decimal.

    Up to 1024 bytes, sizes are whole numbers and exact.
    """
    units = (unit for unit in (1 << 30, 1 << 20, 1 << 10) if unit < size_bytes)
    return -(-next(units, 0) // 200)


def usual_holes_bytes(total_bytes: int) -> int:
    """Return the reserved bytes that no tensor holds on any full card: they mean no fragmentation.

    About three percent: the allocator rounds to 512 bytes, and keeps segments of 2 and 20 MiB.
    """
    return total_bytes // 32


def letters_of(text: str) -> str:
    """Return a text without spaces, line ends, colors, and what begins each line of a log."""
    plain = _COLOR.sub("", text[:MOST_CHARACTERS])
    return "".join(_PREFIX.sub("", _RIGHT_BORDER.sub("", plain)).split())


def numbers_in(letters: str) -> OomNumbers:
    """Return the numbers in a text from `letters_of`, or in a part of it."""
    sizes = {name: _first_size(letters, forms) for name, forms in _PATTERNS.items()}
    return OomNumbers(
        **sizes,
        processes=tuple(
            GpuProcessBytes(int(found[1]), size_bytes)
            for found in islice(_PROCESS.finditer(letters), _MOST_PROCESSES)
            if (size_bytes := _size(found[2], found[3])) is not None
        ),
    )


def _first_size(letters: str, patterns: tuple[re.Pattern[str], ...]) -> int | None:
    match = next(filter(None, (pattern.search(letters) for pattern in patterns)), None)
    return _size(match[1], match[2]) if match else None


def _size(number: str, unit: str) -> int | None:
    plain = number.replace(",", "." if unit else "")
    size_bytes = round(float(plain) * _UNITS[unit])
    return size_bytes if size_bytes < _LARGEST_BYTES else None
