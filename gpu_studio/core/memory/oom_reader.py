"""Explains an out-of-memory error of PyTorch from its text alone.

`FORMS` has the shapes of messages, a row each. `KINDS` has what a kind of error means and what to
try first. The text may be a whole terminal: wrapped and quoted, with tracebacks and several errors.
Its first words may be missing.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from gpu_studio.core.memory.answer import LIKELY, FitAnswer, FitVerdict, Step
from gpu_studio.core.memory.oom_text import (
    MOST_CHARACTERS,
    SIZE,
    OomNumbers,
    letters_of,
    numbers_in,
    rounding_bytes,
    usual_holes_bytes,
)
from gpu_studio.core.memory.tank import tank_of_error
from gpu_studio.core.notice import Notice, Tone
from gpu_studio.core.units import format_bytes, format_percent

MOST_FILE_BYTES = 4 * MOST_CHARACTERS
"""The most bytes that a text takes in any of the supported encodings."""
_BY_NUMBERS = ""


class ErrorKind(NamedTuple):
    """What an error means; a sentence whose sizes the text does not have is left out."""

    headline: str
    meaning: str
    steps: tuple[Step, ...]


class MessageForm(NamedTuple):
    """A shape of message.

    Attributes:
        begins: how it begins, as a pattern for a text without spaces. It takes in as much as would
            otherwise be found as the beginning of another error.
        kind: a key of `KINDS`; empty if the numbers decide.
        about: what this program's error means beyond its kind.
        step: what to try before the steps of the kind; None for nothing.
        headline: its name; empty for that of the kind.
    """

    begins: str
    kind: str = _BY_NUMBERS
    about: str = ""
    step: Step | None = None
    headline: str = ""


_REQUEST = rf"Triedtoallocate{SIZE}(?:on(?:private|shared)pool|\.?\(?GPU\d{{1,4}}(?:;|hasatotal))"
FORMS = (
    MessageForm(
        rf"MPSbackendoutofmemory(?:\([^()]{{1,200}}\)(?:\.{_REQUEST})?)?"
        rf"|FailedtoallocateprivateMTLBuffer|Triedtoallocate{SIZE}on(?:private|shared)pool",
        "mac",
    ),
    MessageForm(
        rf"Invalidbuffersize:{SIZE}|CurrentplatformcanNOTallocate[^!]{{1,80}}!(?:{_REQUEST})?"
        r"|(?:CUDA|HIP|XPU)outofmemory\.Triedtoallocatemorethan1EB",
        "too_large",
    ),
    MessageForm(r"outofresource:\w{1,80}?,?Required:\d{1,12},?Hardwarelimit:\d{1,12}", "kernel"),
    MessageForm(
        r"(?:[UZ][RE]_RESULT|PI)_ERROR_OUT_OF_(?:DEVICE_MEMORY|RESOURCES)"
        r"(?:\)-?\d{1,3}\(PI_ERROR_OUT_OF_\w{1,20}\))?",
        "unknown",
        "Intel's driver names no sizes. Of what “resources” may mean, memory is the most common.",
    ),
    MessageForm(r"CUDAoutofmemory\.Allocationwaspreemptivelyrejected", "over_budget"),
    MessageForm(
        rf"(?:CUDA|HIP|XPU)outofmemory(?:\.(?:{_REQUEST})?|(?=atline|$))"
        r"|Allocationondevice(?:\d{1,4}wouldexceedallowedmemory(?:\.\(outofmemory\))?|(?=[^\d]|$))"
        rf"|{_REQUEST}|GPU\d{{1,4}}hasatotalcapac|\(GPU\d{{1,4}};{SIZE}totalcapac"
    ),
    MessageForm(
        r"(?:CUDA|HIP)(?:driver)?error:outofmemory|cudaruntimeerror\(2\):outofmemory"
        r"|CUDA_ERROR_OUT_OF_MEMORY|cudaErrorMemoryAllocation|hipErrorOutOfMemory",
        "unknown",
    ),
    MessageForm(
        r"CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_(?:INTERNAL_ERROR_DEVICE_ALLOCATION|ALLOC)_FAILED",
        "unknown",
        "It asks the driver for memory of its own after PyTorch has reserved the rest.",
        headline="A library (cuBLAS or cuDNN) got no memory.",
    ),
    MessageForm(
        r"CUBLAS_STATUS_NOT_INITIALIZED",
        "unknown",
        "It can also follow an earlier CUDA error, or mean that the driver and PyTorch do not "
        "match.",
        headline="cuBLAS could not start, often because memory ran out.",
    ),
    MessageForm(
        r"NVML_SUCCESS==\w{1,9}INTERNALASSERTFAILED",
        "unknown",
        "PyTorch wanted to report how full the card is, but NVML did not answer.",
        Step("Restart the PC", "NVML fails after an update of the driver", LIKELY),
        "Out of memory, and the error report failed.",
    ),
    MessageForm(
        r"(?:Memorycgroupo|O)utofmemory:Kill(?:ed)?process\d{1,10}",
        "ram",
        "Linux ended the program, because the RAM or the memory limit of a container was full.",
        Step("A larger limit", "if it ran in a container"),
    ),
    MessageForm(
        r"\[WinError1455\]|\(oserror1455\)",
        "ram",
        "RAM and page file together were full (the commit limit). Each Python process that imports "
        "PyTorch needs a few GiB of them.",
        Step(
            "A larger page file",
            "search Windows for “Advanced system settings”: Performance, Advanced, Virtual memory",
            LIKELY,
        ),
        "Windows ran out of memory, not the card.",
    ),
    MessageForm(
        rf"DefaultCPUAllocator:|Unabletoallocate{SIZE}foranarraywithshape"
        r"|[A-Z]{2}_RESULT_ERROR_OUT_OF_HOST_MEMORY",
        "ram",
    ),
    MessageForm(r"workersareoutofsharedmemory|insufficientsharedmemory\(shm\)", "workers"),
    MessageForm(
        r"RESOURCE_EXHAUSTED:Outofmemory|(?<!ran)outofmemory",
        "unknown",
        "These are not PyTorch's own words, so no sizes are read from them.",
        Step("A setting of that program", "its documentation names those that use less memory"),
    ),
)
_ANY_FORM = re.compile(
    "|".join(f"(?P<form_{number}>{form.begins})" for number, form in enumerate(FORMS)), re.ASCII
)
_SMALLER = Step("Smaller batch", "half the batch needs about half the activations", LIKELY)
_USE_LESS = (
    _SMALLER,
    Step("Gradient checkpointing", "computes parts twice instead of keeping activations", LIKELY),
    Step("torch.no_grad()", "keeps no activations where code only evaluates"),
    Step("float16 or bfloat16", "half the bytes, if the card supports it"),
)
_CLOSE = Step("Close other programs", "{monitor} or the page Devices shows which use the card")
KINDS = {
    "card_full": ErrorKind(
        "The card is full{too_little}.", "Tensors fill {share} of the card.", (*_USE_LESS, _CLOSE)
    ),
    "unknown": ErrorKind("Out of memory.", "", (*_USE_LESS, _CLOSE)),
    "fragmented": ErrorKind(
        "Fragmented.",
        "Together with the {holes} that PyTorch has reserved but not allocated it would be enough, "
        "but that memory is in pieces between tensors that are in use.",
        (
            Step("{conf}=expandable_segments:True", "set before Python starts (Linux)", LIKELY),
            Step("max_split_size_mb:128", "in the same variable, also on Windows"),
            Step("Large tensors first", "and no small ones between them"),
            _SMALLER,
        ),
    ),
    "over_budget": ErrorKind(
        "Over the budget.",
        "The card had room, but this process may not reserve more than its limit. The limit is "
        "{limit}. The program called set_per_process_memory_fraction, or set the option.",
        (
            Step("A larger limit", "torch.{module}.set_per_process_memory_fraction(1.0)", LIKELY),
            Step("Another option", "per_process_memory_fraction in {conf}"),
        ),
    ),
    "others": ErrorKind(
        "Other programs hold the memory.",
        "Other processes hold {others}. Most of the other {elsewhere} is in use by other programs.",
        (
            _CLOSE._replace(enough=LIKELY),
            Step("Old Python processes", "such as a notebook kernel that still runs"),
        ),
    ),
    "too_large": ErrorKind(
        "Too large in one piece.",
        "Freeing memory does not help: no driver gives more than the whole card in one piece, "
        "Intel's at most 4 GiB, and Metal has a limit for each Mac.",
        (
            Step("Print the shapes", "a product of two vectors may have become a matrix", LIKELY),
            Step("Smaller parts", "split the work of the failing line"),
        ),
    ),
    "spilled": ErrorKind(
        "The card is full, and so is the RAM behind it.",
        "That is more than the card's {total}: the driver had moved the rest to the PC's RAM, "
        "which is much slower, until no RAM was left for that.",
        (_SMALLER._replace(how="until PyTorch holds less than the card has"), *_USE_LESS[1:]),
    ),
    "had_room": ErrorKind(
        "The driver refused although the card had room.",
        "The text does not say why. For each piece, the driver also needs the PC's memory (RAM, "
        "and on Windows the page file) and some of the card. How much is not known.",
        (
            Step("Close programs that use RAM", "watch it while the program runs"),
            Step("A larger page file", "on Windows"),
            _SMALLER._replace(how="more of the card stays free", enough=""),
        ),
    ),
    "mac": ErrorKind(
        "The Mac's GPU is out of memory.",
        "It uses the same memory as all programs. Metal itself held {other}. The limit for this "
        "program is {limit}.",
        (
            _SMALLER,
            Step("Close other programs", "such as a browser"),
            Step("torch.mps.empty_cache()", "after parts whose results you no longer need"),
        ),
    ),
    "kernel": ErrorKind(
        "Not the card's memory: a kernel's blocks are too large.",
        "“Shared memory” is a small, fast memory inside each multiprocessor. It has {limit}.",
        (
            Step("Smaller blocks", "or a lower num_stages, in a kernel of your own", LIKELY),
            Step("Without that kernel", "or another version of the library"),
        ),
    ),
    "ram": ErrorKind(
        "The PC ran out of memory, not the card.",
        "",
        (
            Step("Data in parts", "or fewer DataLoader workers", LIKELY),
            Step("Close programs that use RAM", "or use a smaller model"),
        ),
    ),
    "workers": ErrorKind(
        "Not the card: the loader's workers have too little memory.",
        "DataLoader workers hand over their batches in /dev/shm. By default, Docker gives a "
        "container 64 MiB of it.",
        (
            Step("--shm-size=8g or --ipc=host", "when the container starts", LIKELY),
            Step("num_workers=0", "needs none of it", LIKELY),
        ),
    ),
}
_VARIABLE = re.compile(r"PYTORCH_(?:CUDA_|HIP_)?ALLOC_CONF")
_TOOLS = {
    "HIP": ("PYTORCH_HIP_ALLOC_CONF", "amd-smi", "cuda"),
    "XPU": ("PYTORCH_ALLOC_CONF", "xpu-smi", "xpu"),
}
_NVIDIA = ("PYTORCH_CUDA_ALLOC_CONF", "nvidia-smi", "cuda")
_SIZES = (
    "The program asked for {tried}.", "{free} was free.", "The card has {alone}.",
    "The program held {held}.",
)  # fmt: skip
_LARGEST_INTEL_PIECE = 4 << 30


class OomExplanation(NamedTuple):
    """An error explained.

    Attributes:
        kind: a key of `KINDS`.
        answer: what it means, the card as the text describes it, and what helps.
        numbers: the numbers of the text, in bytes.
        errors: the number of errors in the text.
    """

    kind: str
    answer: FitAnswer
    numbers: OomNumbers
    errors: int


def explain_oom_text(text: str) -> OomExplanation | None:
    """Return the explanation of the first error in any text; None for a text without one.

    The first error causes those that occur while it is handled.
    """
    errors = _errors_in(letters_of(text))
    if not errors:
        return None
    form, letters, numbers = errors[0]
    kind = form.kind or _kind_by_numbers(letters, numbers)
    words = _words(letters, numbers)
    sentences = (*_SIZES, *re.split(r"(?<=\.) ", KINDS[kind].meaning), form.about)
    meaning = _filled(sentences, words)
    if kind == "card_full" and (numbers.tried_bytes or 0) < (numbers.free_bytes or 0):
        meaning.append("The driver keeps the last part of a card for itself.")
    if len(errors) > 1:
        meaning.append(
            f"The text has {len(errors)} errors. This is the first, which caused the others."
        )
    headline = (form.headline or KINDS[kind].headline).format(**words)
    tank = tank_of_error(numbers)
    told = "As the text describes it, to two decimals of each unit." if tank is not None else ""
    if tank is not None and tank.card_bytes is not None:
        told += " The line marks the end of what there is."
    steps = KINDS[kind].steps if form.step is None else (form.step, *KINDS[kind].steps)
    answer = FitAnswer(
        verdicts=(FitVerdict(Notice(headline, Tone.FAILURE), tank, told),),
        sentence=" ".join(meaning) or "The text says so without any sizes.",
        steps=tuple(Step(*(part.format(**words) for part in step)) for step in steps),
    )
    return OomExplanation(kind, answer, numbers, len(errors))


def decoded_text(content: bytes) -> str:
    """Decode UTF-8, or the UTF-16 that a Windows shell writes to files."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        return content.decode("utf-16", "replace")
    return content.decode("utf-8", "replace")


def _errors_in(letters: str) -> list[tuple[MessageForm, str, OomNumbers]]:
    """Return the errors of a text, each with its part. A log that repeats an error has it once."""
    found: list[tuple[MessageForm, str, OomNumbers]] = []
    matches = list(_ANY_FORM.finditer(letters))
    ends = [*(match.start() for match in matches), len(letters)][1:]
    for match, end in zip(matches, ends, strict=True):
        form = FORMS[int(str(match.lastgroup).removeprefix("form_"))]
        part = letters[match.start() : end]
        numbers = numbers_in(part)
        if not found or (found[-1][0], found[-1][2]) != (form, numbers):
            found.append((form, part, numbers))
    return found


def _filled(sentences: tuple[str, ...], words: dict[str, str]) -> list[str]:
    """Return the sentences with their sizes, without those whose sizes are not known."""
    return [
        one.format(**words)
        for one in sentences
        if one and all(words[key] for key in re.findall(r"\{(\w+)\}", one))
    ]


def _words(error: str, numbers: OomNumbers) -> dict[str, str]:
    """Return the sizes in words and the names of the maker's tools; empty for what is not known."""
    sizes = {
        "tried": numbers.tried_bytes, "total": numbers.total_bytes, "free": numbers.free_bytes,
        "limit": numbers.limit_bytes, "other": numbers.other_bytes,
        "others": numbers.others_bytes or None, "held": numbers.held_bytes or None,
        "holes": numbers.holes_bytes,
        "elsewhere": None if numbers.processes else numbers.elsewhere_bytes or None,
        "alone": numbers.total_bytes if numbers.free_bytes is None else None,
    }  # fmt: skip
    words = {key: "" if size is None else format_bytes(size) for key, size in sizes.items()}
    if words["free"] and words["total"]:
        words["free"] += f" of {words['total']}"
    tried, free = numbers.tried_bytes or 0, numbers.free_bytes
    lacking = 0 if free is None else tried - free
    # A difference of rounded numbers is only said where the rounding does not matter.
    is_exact = 10 * (rounding_bytes(tried) + rounding_bytes(free or 0)) < lacking
    words["too_little"] = f": {format_bytes(lacking)} too little" if is_exact else ""
    allocated, total = numbers.allocated_bytes, numbers.total_bytes
    words["share"] = format_percent(allocated / total) if allocated and total else ""
    variable = _VARIABLE.search(error)
    conf, monitor, module = _TOOLS.get(error[:3], _NVIDIA)
    tools = {"conf": variable[0] if variable else conf, "monitor": monitor, "module": module}
    return words | tools


def _kind_by_numbers(error: str, numbers: OomNumbers) -> str:
    tried, total, free = numbers.tried_bytes or 0, numbers.total_bytes or 0, numbers.free_bytes
    if total and tried > total:
        return "too_large"
    if total and numbers.held_bytes > total + total // 64:  # beyond the rounding
        return "spilled"
    if free is None:
        return "unknown"
    elsewhere = numbers.elsewhere_bytes
    is_elsewhere = elsewhere > max(numbers.held_bytes, total // 2) and tried <= free + elsewhere
    # The last part of a card, a few MiB up to a percent or two, goes to no program.
    is_last_part = free <= min(max(total // 64, 64 << 20), 512 << 20)
    if tried and (tried >= free or numbers.limit_bytes is not None):
        return _kind_without_room(numbers, tried, free, is_elsewhere=is_elsewhere)
    if is_last_part or not tried:
        return "others" if is_elsewhere else "card_full" if is_last_part else "unknown"
    is_large = error.startswith("XPU") and tried > _LARGEST_INTEL_PIECE
    return "too_large" if is_large else "had_room"


def _kind_without_room(numbers: OomNumbers, tried: int, free: int, *, is_elsewhere: bool) -> str:
    limit, total, holes = numbers.limit_bytes, numbers.total_bytes or free, numbers.holes_bytes
    room = 1 << 62
    if limit is not None:  # less the rounding of the numbers
        room = max(0, limit - numbers.from_driver_bytes - limit // 64)
    # A difference of rounded numbers may be none.
    is_in_pieces = holes - rounding_bytes(holes) > usual_holes_bytes(total)
    if is_in_pieces and tried <= min(free, room) + holes:
        return "fragmented"
    if limit is not None and tried <= free:
        return "over_budget"
    others = numbers.others_bytes
    # In a container, PyTorch may list itself among the others.
    is_sound = numbers.held_bytes + others + free <= total + total // 64
    if others and is_sound and tried <= min(free + others, room) + holes:
        return "others"
    return "others" if is_elsewhere and not others and tried <= room else "card_full"
