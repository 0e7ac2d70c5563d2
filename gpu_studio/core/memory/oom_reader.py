"""Explains an out-of-memory error from its text alone, so it works for any program's error.

The text may be a whole terminal: wrapped and quoted, with tracebacks and several errors. Its first
words may be missing.
"""

from __future__ import annotations

import re

import msgspec

from gpu_studio.core.memory.oom_meaning import (
    APPLE_TOO_LARGE,
    elsewhere_bytes,
    first_steps,
    held_bytes,
    is_more,
    meaning_of,
    unallocated_bytes,
)
from gpu_studio.core.memory.oom_programs import PROGRAM_MEANINGS
from gpu_studio.core.memory.oom_text import (
    SIZE,
    OomNumbers,
    is_nvml_assertion,
    letters_of,
    numbers_in,
)
from gpu_studio.core.memory.oom_words import Kind  # noqa: TC001  # msgspec reads the annotations
from gpu_studio.core.memory.tank import Tank, tank_of_error

# How an error begins, in a text without spaces. A beginning takes in as much as would otherwise be
# found as the beginning of another error: the same sentence without its first words.
_REQUEST = rf"Triedtoallocate{SIZE}(?:on(?:private|shared)pool|\.?\(?GPU\d{{1,4}}(?:;|hasatotal))"
_BEGINNINGS = {
    "jax": (
        rf"(?:failedtoallocate{SIZE}:)?(?:RESOURCE_EXHAUSTED|Resourceexhausted):"
        r"(?:Outofmemory|Failedtoallocate|:?CUDA_ERROR_OUT_OF_MEMORY:outofmemory)"
    ),
    "apple": (
        rf"MPSbackendoutofmemory(?:\([^()]{{1,200}}\)(?:\.{_REQUEST})?)?|Invalidbuffersize:{SIZE}"
        r"|FailedtoallocateprivateMTLBuffer|kIOGPUCommandBufferCallbackErrorOutOfMemory"
        rf"|Triedtoallocate{SIZE}on(?:private|shared)pool"
        r"|Attemptingtoallocate\d{1,20}byteswhichisgreaterthanthemaximumallowedbuffersizeof"
    ),
    "llama": (
        r"(?:llamarunnerprocesshasterminated:(?:exitstatus\d)?)?(?:"
        rf"allocating{SIZE}ondevice\d{{1,4}}:\w{{1,9}}Mallocfailed:outofmemory"
        r"|\w{1,9}Mallocfailed:outofmemory|CUDAerror2at[\w./\\-]{1,200}:\d{1,6}:outofmemory"
        r"|(?:CUDA|ROCm)error:outofmemory(?=currentdevice:))"
        r"|llamarunnerprocesshasterminated:(?:exitstatus\d)?(?:CUDA|ROCm)error:outofmemory"
        r"|Devicememoryallocationofsize\d{1,20}failed|failedtoallocatebufferforkvcache"
        r"|InsufficientVRAM(?:insplit)?formodelandcache"
    ),
    "tensorflow": (
        r"OOMwhenallocatingtensorwithshape\[[\d,]{0,80}\]|Dsttensorisnotinitialized"
        rf"|Allocator\(\w{{1,20}}\)ranoutofmemorytryingtoallocate{SIZE}"
        r"|failedtoallocate[\d.]{1,8}[KMGT]?(?:iB)?\(\d{1,20}bytes\)fromdevice:"
        r"CUDA_ERROR_OUT_OF_MEMORY(?::outofmemory)?"
    ),
    "server_start": r"Freememoryondevice(?:cuda:\d)?\([\d.]{1,10}/[\d.]{1,10}GiB\)onstartup",
    "server_cache": (
        rf"Noavailablememoryforthecacheblocks|\({SIZE}KVcacheisneeded"
        r"|tokensthatcanbestoredinKVcache|Notenoughmemorytohandle\d{1,9}prefilltokens"
        r"|Notenoughmemory\.Pleasetrytoincrease--mem-fraction-static"
    ),
    "offload": r"SomemodulesaredispatchedontheCPUorthedisk",
    "kernel_blocks": r"outofresource:sharedmemory,Required:\d{1,12},Hardwarelimit:\d{1,12}",
    "program": (
        r"OutofmemoryerroronGPU\d{1,4}\.Cannotallocate"
        r"|Outofmemoryallocating[\d,]{1,30}bytes\(allocatedsofar:"
        r"|Failedtoallocatememoryforrequestedbufferofsize\d{1,20}"
        r"|Availablememoryof\d{1,20}issmallerthanrequestedbytesof\d{1,20}"
        r"|RequestedamountofGPUmemory\(\d{1,20}bytes\)couldnotbeallocated"
        r"|ErrorCode2:OutOfMemory|Couldnotallocatetensorwith\d{1,20}bytes|SystemisoutofGPUmemory"
        r"|Notenoughmemory,uselowerresolution\(maxapprox\.\d{1,6}x\d{1,6}\)"
        r"|CUDAerror:Outofmemoryincu\w{1,40}|FailedtoCUDAcalloc(?:async)?\d{1,20}bytes"
        r"|(?:vk::Device::allocateMemory:)?ErrorOutOfDeviceMemory|Erroroutofmemoryatline\d{1,6}"
    ),
    "intel": (
        r"(?:[UZ][RE]_RESULT|PI)_ERROR_OUT_OF_(?:DEVICE_MEMORY|HOST_MEMORY|RESOURCES)"
        r"(?:\)-?\d{1,3}\(PI_ERROR_OUT_OF_\w{1,20}\))?"
    ),
    "pytorch": (
        rf"(?:CUDA|HIP|XPU)outofmemory(?:\.(?:{_REQUEST})?|(?=atline|$))"
        rf"|CurrentplatformcanNOTallocate[^!]{{1,80}}!(?:{_REQUEST})?"
        r"|Allocationondevice(?:\d{1,4}wouldexceedallowedmemory|(?=[^\d]|$))"
        rf"|{_REQUEST}|GPU\d{{1,4}}hasatotalcapac|\(GPU\d{{1,4}};{SIZE}totalcapac"
    ),
    "driver": (
        r"(?:CUDA|HIP)error:outofmemory|cudaruntimeerror\(2\):outofmemory"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory"
        r"|cuMem\w{1,30}failed:outofmemory|Cudafailure(?:\d{1,4})?'outofmemory'"
    ),
    "library": (
        r"CUBLAS_STATUS_ALLOC_FAILED|CUBLAS_STATUS_NOT_INITIALIZED|CUDNN_STATUS_ALLOC_FAILED"
    ),
    "nvml": r"NVML_SUCCESS==\w{1,9}INTERNALASSERTFAILED",
    "model_in_ram": rf"requiresmoresystemmemory\({SIZE}\)thanisavailable\({SIZE}\)",
    "page_file": r"\[WinError1455\]|\(oserror1455\)",
    "killed": r"(?:Memorycgroupo|O)utofmemory:Kill(?:ed)?process\d{1,10}",
    "workers": r"workersareoutofsharedmemory",
    "cpu": (
        rf"DefaultCPUAllocator:|failedtoallocate{SIZE}ofpinnedmemory(?::outofmemory)?"
        rf"|Unabletoallocate{SIZE}foranarraywithshape"
    ),
}
_ANY_BEGINNING = re.compile(
    "|".join(f"(?P<{family}>{form})" for family, form in _BEGINNINGS.items()), re.ASCII
)
_KINDS: dict[str, Kind] = {"library": "library", **{kind: kind for kind in PROGRAM_MEANINGS}}
_WINDOWS = re.compile(r"[A-Za-z]:\\\w|\\site-packages\\|WinError", re.ASCII)
# The last part of a card that a driver gives to no program: a few MiB up to a percent or two.
_SMALLEST_RESERVE = 64 << 20
_LARGEST_RESERVE = 512 << 20
_LARGEST_INTEL_PIECE = 4 << 30


class OomExplanation(msgspec.Struct, frozen=True, kw_only=True):
    """An error explained.

    Attributes:
        kind: the kind of error, from its numbers.
        headline: its name.
        meaning: the explanation, in sentences.
        first_steps: what to try, the most promising step first.
        numbers: the numbers of the text, in bytes.
        tank: the card as the text describes it; None if it does not.
        errors: the number of errors in the text.
    """

    kind: Kind
    headline: str
    meaning: str
    first_steps: tuple[str, ...]
    numbers: OomNumbers
    tank: Tank | None
    errors: int


class _Error(msgspec.Struct, frozen=True):
    """One error of a text: how it begins, its part of the text, and the numbers in it."""

    family: str
    letters: str
    numbers: OomNumbers


def explain_oom_text(text: str, *, last: bool = False) -> OomExplanation | None:
    """Return the explanation of an error; None for a text without an out-of-memory error.

    Args:
        text: any text that contains the error.
        last: explain the last of several errors. Otherwise the first, which causes the errors
            that occur while it is handled.
    """
    letters = letters_of(text)
    errors = _errors_in(letters)
    if not errors:
        return None
    error = errors[-1 if last else 0]
    kind = _kind_of(error, is_windows=_WINDOWS.search(letters) is not None)
    headline, meaning = meaning_of(kind, error.letters, error.numbers)
    return OomExplanation(
        kind=kind,
        headline=headline,
        meaning=meaning,
        first_steps=first_steps(kind, error.letters),
        numbers=error.numbers,
        tank=tank_of_error(error.numbers),
        errors=len(errors),
    )


def _errors_in(letters: str) -> list[_Error]:
    """Return the errors of a text. A log that repeats an error has it once."""
    found: list[_Error] = []
    matches = list(_ANY_BEGINNING.finditer(letters))
    ends = [*(match.start() for match in matches), len(letters)][1:]
    for match, end in zip(matches, ends, strict=True):
        part = letters[match.start() : end]
        error = _Error(str(match.lastgroup), part, numbers_in(part))
        before = found[-1] if found else None
        if before is None or (before.family, before.numbers) != (error.family, error.numbers):
            found.append(error)
    return found


def _kind_of(error: _Error, *, is_windows: bool) -> Kind:
    if error.family in _KINDS:
        return _KINDS[error.family]
    if error.family == "nvml":
        return "nvml" if is_nvml_assertion(error.letters) else "unknown"
    if error.family == "intel":
        return "cpu" if "OUT_OF_HOST_MEMORY" in error.letters[:60] else "intel"
    if error.family == "apple":
        return _kind_on_apple(error)
    return _kind_by_numbers(error.letters, error.numbers, is_windows=is_windows)


def _kind_on_apple(error: _Error) -> Kind:
    if error.letters.startswith(APPLE_TOO_LARGE):
        return "too_large"
    numbers = error.numbers
    if numbers.limit_bytes is None or numbers.allocated_bytes is None:
        return "apple_full"
    parts = (numbers.allocated_bytes, numbers.other_bytes, numbers.tried_bytes)
    had_room = numbers.tried_bytes is not None and is_more(
        numbers.limit_bytes, sum(part or 0 for part in parts)
    )
    return "apple_full" if had_room else "apple_limit"


def _kind_by_numbers(error: str, numbers: OomNumbers, *, is_windows: bool) -> Kind:
    tried, total, free = numbers.tried_bytes, numbers.total_bytes, numbers.free_bytes
    if "preemptivelyrejected" in error:
        return "over_budget"
    if "morethan1EB" in error:
        return "too_large"
    if error.startswith("CurrentplatformcanNOT"):
        return "one_piece"
    if tried is not None and total is not None and tried > total:
        return "too_large"
    held = held_bytes(numbers)
    if total is not None and held is not None and is_more(held, total):
        return "spilled"
    if free is None or tried is None:
        return _kind_without_a_number(numbers)
    if numbers.limit_bytes is None and tried < free:
        # Equal to two decimals does not prove that it would have fit.
        return _kind_with_room(error, numbers, tried, free, is_windows=is_windows)
    return _kind_without_room(numbers, tried, free)


def _kind_without_a_number(numbers: OomNumbers) -> Kind:
    """Return the kind of an error that does not say what was asked for, or what was free."""
    if numbers.free_bytes is not None and _is_held_elsewhere(numbers, 0):
        return "others"
    if numbers.free_bytes is not None and numbers.free_bytes <= _reserve_bytes(numbers):
        return "card_full"
    return "unknown" if numbers == OomNumbers(device_index=numbers.device_index) else "no_free"


def _kind_with_room(
    error: str, numbers: OomNumbers, tried: int, free: int, *, is_windows: bool
) -> Kind:
    """Return the kind of an error with more free memory than was asked for."""
    if free <= _reserve_bytes(numbers):
        return "others" if _is_held_elsewhere(numbers, tried) else "reserve"
    if error.startswith("XPU") and tried > _LARGEST_INTEL_PIECE:
        return "one_piece"
    if is_windows:
        return "commit"
    # Another program that frees memory just then leaves a little more than was asked for.
    return "raced" if free - tried < (numbers.total_bytes or free) // 16 else "refused"


def _kind_without_room(numbers: OomNumbers, tried: int, free: int) -> Kind:
    holes, room = unallocated_bytes(numbers) or 0, _room_bytes(numbers)
    if numbers.limit_bytes is not None and tried <= free:
        return "fragmented" if holes and tried <= room + holes else "over_budget"
    if holes and tried <= min(free, room) + holes:
        return "fragmented"
    others = sum(process.bytes for process in numbers.processes)
    if others and tried <= min(free + others, room) + holes:
        return "others"
    if not numbers.processes and tried <= room and _is_held_elsewhere(numbers, tried):
        return "others"
    return "card_full"


def _is_held_elsewhere(numbers: OomNumbers, tried: int) -> bool:
    """Return whether other programs hold most of the card, and the request would fit without."""
    elsewhere, held = elsewhere_bytes(numbers), held_bytes(numbers)
    return (
        numbers.total_bytes is not None
        and numbers.free_bytes is not None
        and held is not None
        and elsewhere > max(held, numbers.total_bytes // 2)
        and tried <= numbers.free_bytes + elsewhere
    )


def _reserve_bytes(numbers: OomNumbers) -> int:
    share = (numbers.total_bytes or 0) // 64
    return min(max(share, _SMALLEST_RESERVE), _LARGEST_RESERVE)


def _room_bytes(numbers: OomNumbers) -> int:
    """Return the bytes that PyTorch may certainly still reserve within the limit.

    The result combines three numbers with two decimals, of which the limit is the largest. They
    may be off by 1/64 of it.
    """
    if numbers.limit_bytes is None:
        return 1 << 62
    reserved = numbers.reserved_bytes
    if reserved is None:
        parts = (
            numbers.allocated_bytes, numbers.unallocated_bytes, numbers.private_pools_bytes
        )  # fmt: skip
        reserved = sum(part or 0 for part in parts)
    return max(0, numbers.limit_bytes - reserved - numbers.limit_bytes // 64)
