import threading

import pytest

from gpu_studio.core.error_table import Family
from gpu_studio.core.errors.reader import UNKNOWN, family_of, read_error
from gpu_studio.core.memory.allocator.blocks import format_size
from gpu_studio.core.memory.experiment import run_experiment
from gpu_studio.core.memory.modelled_cards import card_at
from gpu_studio.core.memory.modelled_memory import ModelledMemory
from gpu_studio.core.memory.oom_text import (
    MOST_CHARACTERS,
    GpuProcessBytes,
    OomNumbers,
    read_oom_text,
    rounding_bytes,
)
from gpu_studio.core.messages.memory_messages import RunMemoryExperiment

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

OLD_HINT = (
    " If reserved memory is >> allocated memory try setting max_split_size_mb to avoid "
    "fragmentation.  See documentation for Memory Management and PYTORCH_CUDA_ALLOC_CONF"
)
CAPACITY = (
    "CUDA out of memory. Tried to allocate {tried}. GPU {gpu} has a total {word} of {total} of "
    "which {free} is free. {processes}{allowed}Of the allocated memory {allocated} is allocated by "
    "PyTorch, {private}and {unallocated} is reserved by PyTorch but unallocated."
)


def newer(**parts: str) -> str:
    """Return a text of 2.1 and later, without its hint."""
    values = {
        "tried": "256.00 MiB", "gpu": "0", "word": "capacity", "total": "1.95 GiB",
        "free": "153.81 MiB", "processes": "", "allowed": "", "allocated": "1.75 GiB",
        "private": "", "unallocated": "8.00 MiB", **parts,
    }  # fmt: skip
    return CAPACITY.format(**values)


OWN = "Including non-PyTorch memory, this process has 1.79 GiB memory in use. "
PRIVATE = "with 64.00 MiB allocated in private pools (e.g., CUDA Graphs), "
USUAL = OomNumbers(
    tried_bytes=256 * MIB,
    total_bytes=round(1.95 * GIB),
    free_bytes=round(153.81 * MIB),
    allocated_bytes=round(1.75 * GIB),
    unallocated_bytes=8 * MIB,
)


def usual(**changes: object) -> OomNumbers:
    return OomNumbers(
        **{name: changes.get(name, getattr(USUAL, name)) for name in OomNumbers.__struct_fields__}
    )


# By the version that writes it; up to 1.3 "cached" is what no tensor holds.
TEXTS: dict[str, tuple[str, OomNumbers]] = {
    "1.3 more cached than allocated": (
        "RuntimeError: CUDA out of memory. Tried to allocate 844.00 MiB (GPU 1; 6.00 GiB total "
        "capacity; 2.01 GiB already allocated; 844.80 KiB free; 3.33 GiB cached)",
        OomNumbers(
            tried_bytes=844 * MIB, total_bytes=6 * GIB, free_bytes=round(844.8 * KIB),
            allocated_bytes=round(2.01 * GIB), unallocated_bytes=round(3.33 * GIB),
        ),
    ),
    "2.0 with a limit": (
        "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; "
        "1.95 GiB total capacity; 490.00 MiB already allocated; 1.40 GiB free; 512.00 MiB allowed; "
        "500.00 MiB reserved in total by PyTorch)" + OLD_HINT,
        OomNumbers(
            tried_bytes=20 * MIB, total_bytes=round(1.95 * GIB), free_bytes=round(1.4 * GIB),
            allocated_bytes=490 * MIB, limit_bytes=512 * MIB, reserved_bytes=500 * MIB,
        ),
    ),
    "2.5 other processes": (
        newer(
            gpu="2",
            processes="Process 4711 has 1.50 GiB memory in use. "
            "Process 12 has 17179869184.00 GiB memory in use. "
            "Process 99 has 600.00 MiB memory in use. " + OWN,
        ),
        usual(
            in_use_bytes=round(1.79 * GIB),
            processes=(
                GpuProcessBytes(4711, round(1.5 * GIB)), GpuProcessBytes(99, 600 * MIB),
            ),
        ),
    ),
    "2.6 all of it": (
        newer(processes=OWN, allowed="1.80 GiB allowed; ", private=PRIVATE),
        usual(
            in_use_bytes=round(1.79 * GIB), limit_bytes=round(1.8 * GIB),
            private_pools_bytes=64 * MIB,
        ),
    ),
    "2.9 a driver that does not know": (
        newer(free="17179869184.00 GiB"), usual(free_bytes=None),
    ),
    "cudaMallocAsync": (
        "Allocation on device 1 would exceed allowed memory. (out of memory)\n"
        "Currently allocated     : 1.50 GiB\nRequested               : 512.00 MiB\n"
        "Device limit            : 1.95 GiB\nFree (according to CUDA): 3.25 MiB\n"
        "PyTorch limit (set by user-supplied memory fraction)\n"
        "                        : 17179869184.00 GiB",
        OomNumbers(
            tried_bytes=512 * MIB, total_bytes=round(1.95 * GIB), free_bytes=round(3.25 * MIB),
            allocated_bytes=round(1.5 * GIB),
        ),
    ),
}  # fmt: skip

texts = pytest.mark.parametrize(("text", "numbers"), TEXTS.values(), ids=TEXTS.keys())


@texts
def test_every_text_is_read(text: str, numbers: OomNumbers):
    assert family_of(text) is Family.MEMORY
    assert read_oom_text(text) == numbers


@pytest.mark.parametrize(
    "text", ["", "CUDA error: an illegal memory access was encountered", "NVML_SUCCESS == r"]
)
def test_what_does_not(text: str):
    assert family_of(text) is not Family.MEMORY
    assert read_oom_text(text) == OomNumbers()


def test_numbers_that_cannot_be_are_none():
    assert read_oom_text("Tried to allocate 99999999999999999999.00 GiB").tried_bytes is None
    assert read_oom_text(f"Tried to allocate {'9' * 5000} bytes").tried_bytes is None


@pytest.mark.parametrize("size_bytes", [1, 512, 1024, 1025, 3333, MIB - 1, MIB + 1, 77 * MIB + 5])
@pytest.mark.parametrize("scale", [1, 997, 1_000_003])
def test_a_text_is_off_by_no_more_than_its_rounding(size_bytes: int, scale: int):
    size_bytes *= scale
    result = read_oom_text(f"Tried to allocate {format_size(size_bytes)}. GPU 0").tried_bytes
    assert result is not None
    assert abs(result - size_bytes) <= rounding_bytes(size_bytes)


def test_only_the_beginning_of_an_endless_text_is_read():
    error = "CUDA out of memory. Tried to allocate 2.00 GiB."
    assert read_oom_text("x" * (MOST_CHARACTERS - len(error)) + error).tried_bytes == 2 << 30
    assert read_oom_text("x" * MOST_CHARACTERS + error) == OomNumbers()


def test_no_more_processes_are_taken_than_a_card_can_have():
    text = " ".join(f"Process {pid} has 1.00 MiB memory in use." for pid in range(1, 1000))
    assert [one.pid for one in read_oom_text(text).processes] == [*range(1, 257)]


def old(
    tried: str, free: str, reserved: str, *, total: str = "1.95 GiB", allocated: str = "1.00 GiB"
) -> str:
    """Return a text of 1.4 to 2.0."""
    return (
        f"CUDA out of memory. Tried to allocate {tried} (GPU 0; {total} total capacity; "
        f"{allocated} already allocated; {free} free; {reserved} reserved in total by PyTorch)"
    )


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        (newer(), "card_full"),
        (newer(unallocated="200.00 MiB"), "fragmented"),
        (old("500.00 MiB", "100.00 MiB", "1.50 GiB"), "fragmented"),
        (old("700.00 MiB", "100.00 MiB", "1.50 GiB"), "card_full"),
        (newer(free="1.00 GiB", allowed="700.00 MiB allowed; "), "over_budget"),
        (newer(allowed="1.90 GiB allowed; "), "card_full"),
        (newer(allocated="700.00 MiB", processes="Process 7 has 1.00 GiB memory in use. "),
         "others"),
        (newer(processes="Process 7 has 1.00 MiB memory in use. "), "card_full"),
        (newer(tried="300.00 GiB"), "too_large"),
        (newer(free="300.00 MiB"), "had_room"),
        (newer(free="256.00 MiB", unallocated="0 bytes"), "card_full"),
        ("CUDA out of memory. Tried to allocate more than 1EB memory.", "too_large"),
        ('NVML_SUCCESS == DriverAPI::get()->nvmlInit_v2_() INTERNAL ASSERT FAILED at "/c10/cuda/x"',
         "unknown"),
        ("CUDA out of memory. Allocation was preemptively rejected because it would exceed "
         "per_process_memory_fraction limit. Requested size: 64.00 MiB", "over_budget"),
    ],
)  # fmt: skip
def test_the_numbers_say_what_it_was(text: str, kind: str):
    assert read_error(text).kind == kind


@pytest.mark.parametrize(
    ("parts", "kind"),
    [
        # 1.46 GiB less 1.25 GiB is 218 MiB: with the holes more than enough.
        ({"tried": "424.00 MiB", "allocated": "48.00 MiB", "unallocated": "1.20 GiB"},
         "fragmented"),
        ({"tried": "256.00 MiB", "allocated": "1.25 GiB", "unallocated": "0 bytes"}, "over_budget"),
        ({"tried": "256.00 MiB", "allocated": "1.25 GiB", "unallocated": "8.00 MiB"},
         "over_budget"),
        # 10 MiB left of the limit, or none: two decimals do not say.
        ({"tried": "2.00 MiB", "allocated": "1.45 GiB", "unallocated": "0.50 MiB"}, "over_budget"),
        # Without the other process it would still be over the limit.
        ({"tried": "800.00 MiB", "allocated": "1.25 GiB",
          "processes": "Process 7 has 1.00 GiB memory in use. "}, "card_full"),
    ],
)  # fmt: skip
def test_a_limit_is_distinguished_from_fragmentation_within_it(parts: dict[str, str], kind: str):
    values = {"free": "716.00 MiB", "allowed": "1.46 GiB allowed; ", "total": "2.00 GiB", **parts}
    assert read_error(newer(**values)).kind == kind


# An Apple GPU's five forms: what they ask for, and the bar of those that say what was held.
APPLES = {
    "private pool": (
        "MPS backend out of memory (MPS allocated: 5.50 GB, other allocations: 1.10 GB, max "
        "allowed: 6.80 GB). Tried to allocate 770.00 MB on private pool.",
        "770 MiB", "6.80 GiB in total: Metal 1.10 GiB, PyTorch 5.50 GiB, Left 205 MiB.",
    ),
    "over the limit": (
        "MPS backend out of memory (MPS allocated: 6.50 GiB, other allocations: 1.25 GiB, max "
        "allowed: 6.80 GiB). Tried to allocate 256 bytes on shared pool.",
        "256 bytes", "7.75 GiB in total: Metal 1.25 GiB, PyTorch 6.50 GiB, Left 0 bytes.",
    ),
    "first form": (
        "MPS backend out of memory (currently allocated: 17.90 GB, max allowed: 18.13 GB). Tried "
        "to allocate 300.00 MB on private pool.",
        "300 MiB", "",
    ),
    "one buffer": ("RuntimeError: Invalid buffer size: 23.60 GB", "23.6 GiB", ""),
    "Metal's own": (
        "Failed to allocate private MTLBuffer for size 4294967296", "4 GiB", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("text", "tried", "bar"), APPLES.values(), ids=APPLES.keys())
def test_an_apple_gpus_error_has_its_sizes_and_its_bar(text: str, tried: str, bar: str):
    found = read_error(text)
    verdict = found.answer.verdicts[0]
    assert tried in f"{verdict.notice.sentence} {found.answer.sentence}".replace("\u202f", " ")
    assert (verdict.tank.sentence.replace("\u202f", " ") if verdict.tank else "") == bar
    if verdict.tank:
        limit = found.numbers.limit_bytes
        assert verdict.tank.card_bytes == (limit if verdict.tank.total_bytes > limit else None)


@pytest.mark.parametrize("preset", ["gt1030", "fragmentation"])
@pytest.mark.parametrize("whole_card", [False, True])
@pytest.mark.parametrize("mib", [1996, 2048, 81920])
def test_the_reader_calls_an_experiments_error_what_the_lab_calls_it(
    preset: str, whole_card: bool, mib: int
):
    request = RunMemoryExperiment(preset=preset, device=f"model:{mib}", whole_card=whole_card)
    card = ModelledMemory(card_at(request.device))
    *_, finished = run_experiment(request, card, threading.Event())
    assert read_error(finished.error_text).kind == finished.outcome


def test_of_several_errors_the_first_is_the_cause():
    first, second = newer(tried="1.00 GiB"), newer(tried="2.00 MiB", gpu="1")
    text = (
        f"Traceback (most recent call last):\n{first}\n\nDuring handling of the above exception, "
        f"another exception occurred:\n\n{second}\n"
    )
    assert read_error(text).errors == 2
    assert read_error(text).numbers.tried_bytes == GIB
    assert "2 errors. This is the first" in read_error(text).answer.sentence


def test_numbers_around_the_error_are_not_the_errors():
    around = "3.00 GiB free on disk; process 5 has 7.00 GiB memory in use. {} 9.00 GiB allowed"
    found = read_error(around.format("CUDA error: out of memory\n\nand then"))
    assert found.numbers.free_bytes is None
    assert found.numbers.processes == ()


@pytest.mark.parametrize("text", ["", "Killed", "x" * 10**6])
def test_another_text_is_not_known(text: str):
    assert read_error(text).kind == UNKNOWN


def test_a_few_holes_on_a_full_card_are_no_fragmentation():
    text = old("20.00 MiB", "2.00 MiB", "3.46 GiB", total="4.00 GiB", allocated="3.43 GiB")
    found = read_error(text)
    assert found.kind == "card_full"
    headline = found.answer.verdicts[0].notice.sentence
    assert headline.replace("\u202f", " ") == "The card is full: 18 MiB too little."
    assert "Tensors fill 86 % of the card." in found.answer.sentence.replace("\u202f", " ")
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
    text = old("22.00 MiB", "2.88 MiB", "1.25 GiB")
    for width in (23, 37, 80):
        lines = [text[i : i + width] for i in range(0, len(text), width)]
        found = read_error("\n".join(f"{beginning}{line}" for line in lines))
        assert found == read_error(text), width


def test_the_right_border_of_a_box_makes_no_difference():
    text = old("22.00 MiB", "2.88 MiB", "1.25 GiB")
    lines = [text[i : i + 40] for i in range(0, len(text), 40)]
    assert read_error("\n".join(f"│ {line:<40} │" for line in lines)) == read_error(text)


@pytest.mark.parametrize("escape", ["\x1b", "", "^[", "␛"], ids=["kept", "lost", "caret", "sign"])
def test_colors_make_no_difference(escape: str):
    text = newer()
    on, off = f"{escape}[1;31m", f"{escape}[0m"
    colored = text.replace("256.00", f"{on}256{off}.00").replace(" GPU", f"{on} GPU{off}")
    assert read_error(colored) == read_error(text)


@pytest.mark.parametrize(
    "piece",
    ["\x1b[", "[rank0]:", "a  |", "2025-01-01 ", "|\n", "allocating1MiBondevice",
     "MPS backend out of memory (", "GPU 0 has a total ", "1.00 GiB ",
     "Tried to allocate 1 MiB (GPU 0"],
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
    text = newer(
        tried="314.00 MiB", total="14.75 GiB", free="117.06 MiB", allocated="14.30 GiB",
        processes="Process 3123 has 14.63 GiB memory in use. ",
    )  # fmt: skip
    assert read_error(text).kind == "card_full"


def test_decimal_commas_make_no_difference():
    text = newer()
    commas = text.replace("6.00", "6,00").replace("1.95", "1,95").replace("3.81", "3,81")
    commas = commas.replace("1.75", "1,75").replace("8.00", "8,00")
    assert commas.count(",") >= 5
    assert read_error(commas) == read_error(text)
