"""The forms in which people paste out-of-memory errors, and what is said about each.

The sentences around the numbers are the programs' own; the numbers are invented.
"""

import re

import pytest

from gpu_studio.core.errors.reader import UNKNOWN, read_error

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

HINT = (
    " If reserved but unallocated memory is large try setting {conf}=expandable_segments:True to "
    "avoid fragmentation.  See documentation for Memory Management  "
    "(https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
)
WATERMARK = (
    " Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to disable upper limit for memory allocations (may "
    "cause system failure)."
)


def old(tried: str, total: str, allocated: str, free: str, reserved: str, gpu: int = 0) -> str:
    """Return a text of 1.4 to 2.0."""
    return (
        f"CUDA out of memory. Tried to allocate {tried} (GPU {gpu}; {total} total capacity; "
        f"{allocated} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
    )


def new(
    tried: str, total: str, free: str, allocated: str, unallocated: str, *, maker: str = "CUDA",
    between: str = "",
) -> str:  # fmt: skip
    """Return a text of 2.1 and later."""
    return (
        f"{maker} out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {total} "
        f"of which {free} is free. {between}Of the allocated memory {allocated} is allocated by "
        f"PyTorch, and {unallocated} is reserved by PyTorch but unallocated."
    )


def apple(held: str, tried: str, pool: str = "private") -> str:
    return f"MPS backend out of memory ({held}). Tried to allocate {tried} on {pool} pool."


# A name: the text, its kind, and the sizes in its explanation.
FORMS: dict[str, tuple[str, str, str]] = {
    # The card is full.
    "old, full": (
        f"RuntimeError: {old('24.00 MiB', '5.79 GiB', '4.41 GiB', '7.12 MiB', '4.42 GiB')}",
        "card_full", "24 MiB 7.12 MiB 5.79 GiB 4.42 GiB",
    ),
    "new, full, with this process": (
        "torch.OutOfMemoryError: " + new(
            "530.00 MiB", "15.70 GiB", "198.25 MiB", "14.92 GiB", "130.50 MiB",
            between="Including non-PyTorch memory, this process has 15.48 GiB memory in use. ",
        ) + HINT.format(conf="PYTORCH_CUDA_ALLOC_CONF"),
        "card_full", "530 MiB 198 MiB 15.7 GiB 15.5 GiB",
    ),
    # The driver keeps the rest.
    # Fragmented.
    "fragmented": (
        old("600.00 MiB", "12.00 GiB", "8.10 GiB", "310.00 MiB", "10.90 GiB"),
        "fragmented", "600 MiB 310 MiB 12 GiB 10.9 GiB 2.80 GiB",
    ),
    "fragmented, on AMD": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB", maker="HIP")
        + HINT.format(conf="PYTORCH_HIP_ALLOC_CONF"),
        "fragmented", "1.90 GiB 1.70 GiB 24.0 GiB 21.8 GiB 4.20 GiB",
    ),
    "fragmented, with the newest variable": (
        new("1.90 GiB", "23.98 GiB", "1.70 GiB", "17.60 GiB", "4.20 GiB")
        + HINT.format(conf="PYTORCH_ALLOC_CONF"),
        "fragmented", "1.90 GiB 1.70 GiB 24.0 GiB 21.8 GiB 4.20 GiB",
    ),
    # The commit limit.
    # Spilled into RAM.
    "13.98 GiB on a card of 8": (
        new("66.00 MiB", "8.00 GiB", "0 bytes", "13.98 GiB", "3.20 MiB"),
        "spilled", "66 MiB 0 bytes 8 GiB 14.0 GiB",
    ),
    # Other programs.
    "nearly all held by something else": (
        "(GPU 0; 15.75 GiB total capacity; 80.00 MiB already allocated; 3.60 MiB free; 86.00 MiB "
        "reserved in total by PyTorch)",
        "others", "3.60 MiB 15.8 GiB 86 MiB 15.7 GiB",
    ),
    "named processes": (
        new(
            "2.10 GiB", "23.69 GiB", "1.20 GiB", "9.80 GiB", "20.00 MiB",
            between="Process 4321 has 12.10 GiB memory in use. ",
        ),
        "others", "2.10 GiB 1.20 GiB 23.7 GiB 9.82 GiB 12.1 GiB",
    ),
    # A limit, and what is too large.
    "a limit on AMD": (
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 MiB. GPU 0 has a total "
        "capacity of 255.98 GiB of which 244.65 GiB is free. 1.05 GiB allowed; Of the allocated "
        "memory 1.04 GiB is allocated by PyTorch, with 17.00 MiB allocated in private pools (e.g., "
        "HIP Graphs), and 0 bytes is reserved by PyTorch but unallocated.",
        "over_budget", "2 MiB 245 GiB 256 GiB 1.06 GiB 1.05 GiB",
    ),
    "a limit on Intel": (
        "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 256.00 MiB. GPU 0 has a "
        "total capacity of 11.93 GiB of which 10.92 GiB is free. 244.00 MiB allowed; ...",
        "over_budget", "256 MiB 10.9 GiB 11.9 GiB 244 MiB",
    ),
    "larger than the card, on Intel": (
        new("32.00 GiB", "11.59 GiB", "9.01 GiB", "0 bytes", "0 bytes", maker="XPU"),
        "too_large", "32 GiB 9.01 GiB 11.6 GiB 4 GiB",
    ),
    # Without first words, or without the last.
    "from the request on": (
        "Tried to allocate 22.00 MiB (GPU 0; 1.96 GiB total capacity; 1.24 GiB already allocated; "
        "2.88 MiB free; 1.25 GiB reserved in total by PyTorch)",
        "card_full", "22 MiB 2.88 MiB 1.96 GiB 1.25 GiB",
    ),
    "from the card on": (
        "GPU 0 has a total capacity of 7.79 GiB of which 11.00 MiB is free. Of the allocated "
        "memory 7.10 GiB is allocated by PyTorch, and 12.00 MiB is reserved by PyTorch but "
        "unallocated.",
        "card_full", "11 MiB 7.79 GiB 7.11 GiB",
    ),
    "only the request": (
        "CUDA out of memory. Tried to allocate 264.00 MiB.",
        "unknown", "264 MiB",
    ),
    # ComfyUI.
    "ComfyUI": (
        "# ComfyUI Error Report\n## Error Details\n- **Node Type:** Sampler\n- **Exception Type:** "
        "torch.OutOfMemoryError\n- **Exception Message:** Allocation on device \n## Stack Trace",
        "unknown", "",
    ),
    # Apple.
    "Apple, private pool": (
        "RuntimeError: " + apple(
            "MPS allocated: 5.50 GB, other allocations: 1.10 GB, max allowed: 6.80 GB", "770.00 MB"
        ) + WATERMARK,
        "mac", "770 MiB 5.50 GiB 1.10 GiB 6.80 GiB",
    ),
    "Apple, without first words": (
        "Tried to allocate 292.50 MiB on private pool." + WATERMARK,
        "mac", "292 MiB",
    ),
    "Apple, one buffer": (
        "RuntimeError: Invalid buffer size: 23.60 GB",
        "too_large", "23.6 GiB 4 GiB",
    ),
    # Intel.
    "Intel, 39": (
        "RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_"
        "MEMORY)",
        "unknown", "",
    ),
    "Intel, one piece, in its words": (
        "RuntimeError: Current platform can NOT allocate memory block with size larger than 4GB! "
        "Tried to allocate 6.85 GiB (GPU  0; 15.56 GiB total capacity; 0 bytes already allocated; "
        "0 bytes reserved in total by PyTorch)",
        "too_large", "6.85 GiB 15.6 GiB 4 GiB",
    ),
    # The driver and the system.
    "the driver alone": (
        "RuntimeError: CUDA error: out of memory", "unknown", "",
    ),
    "RAM on Windows": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] data. DefaultCPUAllocator: not enough "
        "memory: you tried to allocate 3221225472 bytes.",
        "ram", "3 GiB",
    ),
    # Not the card.
    "Linux ended it": (
        "[12345.678901] Out of memory: Killed process 4242 (python3) total-vm:35651584kB",
        "ram", "",
    ),
    "the page file": (
        "OSError: [WinError 1455] The paging file is too small for this operation to complete. "
        "Error loading \"C:\\venv\\lib\\site-packages\\torch\\lib\\c10_cuda.dll\".",
        "ram", "",
    ),
    # Other programs.
    "JAX": (
        "XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate 7516 bytes.",
        "program", "",
    ),
}  # fmt: skip

forms = pytest.mark.parametrize(("text", "kind", "sizes"), FORMS.values(), ids=FORMS.keys())


def plain(words: str) -> str:
    return words.replace("\u202f", " ")


@forms
def test_every_form_is_recognised_with_its_sizes(text: str, kind: str, sizes: str):
    found = read_error(text)
    assert (found.kind, found.errors) == (kind, 1)
    said = re.findall(r"\d[\d.]* (?:[KMG]iB|bytes)", plain(found.answer.sentence))
    assert " ".join(dict.fromkeys(said)) == sizes
    assert len(found.answer.steps) == len({step.what for step in found.answer.steps}) >= 2
    assert "{" not in str(found.answer)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("old, full", "Smaller batch"),
        ("fragmented, on AMD", "PYTORCH_HIP_ALLOC_CONF=expandable_segments:True"),
        ("fragmented, with the newest variable", "PYTORCH_ALLOC_CONF=expandable_segments"),
        ("a limit on AMD", "torch.cuda.set_per_process_memory_fraction"),
        ("a limit on Intel", "torch.xpu.set_per_process_memory_fraction"),
        ("the page file", "larger page file"),
    ],
)
def test_what_to_try_first_suits_the_program(name: str, words: str):
    text, *_ = FORMS[name]
    assert words in str(read_error(text).answer.steps[0])


def test_a_few_holes_on_a_full_card_are_no_fragmentation():
    text = old("20.00 MiB", "4.00 GiB", "3.43 GiB", "2.00 MiB", "3.46 GiB")
    found = read_error(text)
    assert found.kind == "card_full"
    headline = found.answer.verdicts[0].notice.sentence
    assert plain(headline) == "The card is full: 18 MiB too little."
    assert "Tensors fill 86 % of the card." in plain(found.answer.sentence)
    assert found.answer.steps[0].what == "Smaller batch"


LINE_BEGINNINGS = {
    "torchrun": "[rank0]: ",
    "torchrun, twice": "[rank0]:[rank0]: ",
    "a rank in words": "rank 3: ",
    "srun": "0: ",
    "elastic": "[default1]:",
    "compose": "trainer-1  | ",
    "compose, old": "web_ui_1   | ",
    "a continuous build": "2025-11-12T11:25:13.4961658Z ",
    "Python's log": "2025-03-04 10:11:12,345 - root - ERROR - ",
    "a log of columns": "2025-02-28 09:05:49 | ERROR | stderr | ",
    "ComfyUI": "[2025-11-06 23:41:06.473] ",
    "a colored rank": "\x1b[36m[rank0]:\x1b[0m ",
    "a quotation": "> > ",
    "a box": "│ ",
}


@pytest.mark.parametrize("beginning", LINE_BEGINNINGS.values(), ids=LINE_BEGINNINGS.keys())
def test_what_begins_each_line_of_a_log_makes_no_difference(beginning: str):
    text = old("22.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB", gpu=3)
    for width in (23, 37, 80):
        lines = [text[i : i + width] for i in range(0, len(text), width)]
        found = read_error("\n".join(f"{beginning}{line}" for line in lines))
        assert found == read_error(text), width


def test_the_right_border_of_a_box_makes_no_difference():
    text = old("22.00 MiB", "1.96 GiB", "1.24 GiB", "2.88 MiB", "1.25 GiB")
    lines = [text[i : i + 40] for i in range(0, len(text), 40)]
    assert read_error("\n".join(f"│ {line:<40} │" for line in lines)) == read_error(text)


@pytest.mark.parametrize("escape", ["\x1b", "", "^[", "␛"], ids=["kept", "lost", "caret", "sign"])
def test_colors_make_no_difference(escape: str):
    text = new("256.00 MiB", "1.95 GiB", "153.81 MiB", "1.75 GiB", "8.00 MiB")
    on, off = f"{escape}[1;31m", f"{escape}[0m"
    colored = text.replace("256.00", f"{on}256{off}.00").replace(" GPU", f"{on} GPU{off}")
    assert read_error(colored) == read_error(text)


@pytest.mark.parametrize(
    "piece",
    ["[", "[0", "[0m", "\x1b[", "rank ", "[rank0]:", "0: ", "a|", "a  |", "2025-01-01 ", "E1103 ",
     "ERROR ", "- a - ", "(pid=1)", "\n0: ", "\na |", "\nE", "|\n", " |\n", "  ", "allocating",
     "allocating1MiBondevice", "MPS backend out of memory (", "GPU 0 has a total ",
     "CUDA error 2 at ",
     "1", "1.", ".1", "1 ", "GPU ", "Process 1 has ", "1.00 GiB ", "Tried to allocate ", "> ",
     "1.00 GiB free", "\U0001f4a5", "Process 7 has 1.00 MiB memory in use. ",
     "Tried to allocate 1 MiB (GPU 0", "\nApr 17 23:09:42 a ", "failed to allocate 1 MiB:"],
)  # fmt: skip
@pytest.mark.timeout(20)  # a tenth of a second is usual; a search that begins anew takes minutes
def test_a_quarter_of_a_million_letters_of_a_form_come_to_an_end(piece: str):
    read_error(piece * (250_000 // len(piece)))


@pytest.mark.parametrize(
    "text",
    ["gRPC: RESOURCE_EXHAUSTED: quota exceeded", "allocating 5 MiB on device 0: done",
     "Tried to allocate a room", "GPU 0 has a total of 3 fans", "Requested: 5.00 MiB"],
)  # fmt: skip
def test_what_only_looks_alike_is_not_explained(text: str):
    assert read_error(text).kind == UNKNOWN


def test_in_a_container_the_program_itself_is_no_other_program():
    """The driver's list has the numbers of the host, so PyTorch does not find itself there."""
    text = new(
        "314.00 MiB", "14.75 GiB", "117.06 MiB", "14.30 GiB", "7.37 MiB",
        between="Process 3123 has 14.63 GiB memory in use. ",
    )  # fmt: skip
    assert read_error(text).kind == "card_full"


def test_decimal_commas_make_no_difference():
    text = new("256.00 MiB", "1.95 GiB", "153.81 MiB", "1.75 GiB", "8.00 MiB")
    commas = text.replace("6.00", "6,00").replace("1.95", "1,95").replace("3.81", "3,81")
    commas = commas.replace("1.75", "1,75").replace("8.00", "8,00")
    assert commas.count(",") >= 5
    assert read_error(commas) == read_error(text)
