"""The sentences about the programs on a card, where no system is needed to tell them."""

from gpu_studio.core.devices.card_programs import (
    CardState,
    program_notice,
    program_notices,
    spill_notice,
)
from gpu_studio.core.devices.devices import GpuProcess
from gpu_studio.core.notice import Tone
from tests.driving.window import plain

GIB, MIB = 1 << 30, 1 << 20
OWN = {4711: "This program's PyTorch"}
FULL = CardState(total_bytes=6 * GIB, used_bytes=int(5.8 * GIB))


def process(pid, name="python", memory_bytes=MIB, **changes):
    return GpuProcess(pid=pid, name=name, memory_bytes=memory_bytes, busy_over_s=10.0, **changes)


OLLAMA = process(7, "ollama.exe", int(4.1 * GIB), busy_percent=83.0, shared_bytes=int(0.9 * GIB))


def told(*processes, state=FULL, most=3):
    notices = program_notices(processes, OWN, state, most)
    return [(plain(one.sentence), one.tone) for one in notices]


def test_the_line_names_the_card_where_nothing_beside_it_does():
    found = program_notice("ollama.exe", [OLLAMA], FULL, on="GTX 1060")
    assert plain(found.sentence) == (
        "ollama.exe computes on the GTX 1060: 83 % of the last 10 s, 4.10 GiB of its memory and "
        "922 MiB spilled into RAM, so it is slow."
    )
    idle = program_notice("x", [process(1, busy_percent=0.0)], FULL, on="GTX 1060")
    assert plain(idle.sentence).startswith("x did nothing on the GTX 1060 in the last 10 s")


def test_more_programs_than_lines_end_in_one_sentence():
    many = [process(n, f"p{n}", (9 - n) * MIB) for n in range(5)]
    assert told(*many, state=CardState())[-1][0] == "3 other programs: 18 MiB."
    assert len(told(*many[:3], state=CardState())) == 3


def test_what_spilled_is_one_sentence_while_it_lasts():
    found = spill_notice([OLLAMA, process(8, "game", shared_bytes=GIB)], {}, FULL)
    assert plain(found.sentence) == (
        "game spilled 1 GiB into the PC's RAM, 1 more did too. It is slow until the card has room."
    )
    assert found.tone is Tone.AMBER
    assert spill_notice([OLLAMA], {}, FULL._replace(used_bytes=GIB)) is None
