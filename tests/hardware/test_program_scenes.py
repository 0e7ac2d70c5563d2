"""What is said of the programs on a card: one true line each, on every system."""

from pathlib import Path

import pytest

from gpu_studio.core.devices.card_programs import memory_by_program, program_notices
from gpu_studio.core.memory.tank import tank_of_sensors, with_programs
from gpu_studio.core.notice import Tone
from gpu_studio.core.telemetry import Telemetry
from tests.driving.window import plain
from tests.hardware.program_scenes import P, Scene, Stage

WIN, WIN_NV, LIN_NV, LIN = "windows", "nvidia on windows", "nvidia on linux", "linux"


def always(system, *programs, **changes):
    return Scene(system, (programs,), **changes)


def then(system, *seconds, **changes):
    return Scene(system, tuple(seconds), **changes)


CUDA, DRAW, HIP = {"Cuda": 83.0}, {"3D": 12.0}, {"Compute 0": 60.0}
OLLAMA = P(10, "ollama.exe", 4198, load=CUDA, nvml="c")
CHROME = P(20, "chrome.exe", 300, 40, DRAW, nvml="cg")
DWM = P(30, "dwm.exe", 120, 20, {"3D": 2.0}, nvml="g", user="DWM-1")
COMFY = P(40, "python.exe", 2000, 30, HIP)
L_PYTHON = P(10, "python", 4000, load={"sm": 83.0}, nvml="c")
ROCM = P(10, "python", 200, load={"gfx": 0.0}, kfd=5000)
FIREFOX = P(20, "firefox", 400, 100, {"gfx": 9.0})
NOTEPAD = P(10, "notepad.exe", 5, load=DRAW, nvml="cg", began=2)
L_GAME = P(11, "game", 7800, 1500, {"gfx": 90.0})
MESA = P(10, "rusticl", 800, load={"compute": 44.0})
SCENES = {
    # ── Windows, NVIDIA ──────────────────────────────────────────────────────────────────────
    "one computes": always(WIN_NV, OLLAMA),
    "spill": always(WIN_NV, OLLAMA.at(own=5600, shared=922)),
    "idle holder": always(WIN_NV, OLLAMA.at(load={})),
    "desktop beside work": always(WIN_NV, OLLAMA, DWM, CHROME),
    "a leak of the desktop's counter": always(WIN_NV, OLLAMA, DWM.at(own=14000), used=4600),
    "WSL": always(WIN_NV, P(60, "vmmemWSL", 3000, load={"Cuda": 50.0}, user="")),
    "a hidden user": always(WIN_NV, OLLAMA.at(is_hidden=True)),
    "ended but still counted": always(WIN_NV, OLLAMA, P(99, "", 500, is_gone=True), used=4198),
    "pid reused": then(WIN_NV, *[(OLLAMA,)] * 6, (NOTEPAD,)),
    "driver restarts": always(WIN_NV, OLLAMA, restarts_at=3),
    "just begun": then(WIN_NV, (), (OLLAMA,)),
    "worked, then idle": then(WIN_NV, *[(OLLAMA,)] * 11, *[(OLLAMA.at(load={}),)] * 12),
    "two cards of one name": always(WIN_NV, OLLAMA, COMFY.at(other_card=True)),
    "nobody": always(WIN_NV),
    "lost card": always(LIN_NV, L_PYTHON, lost_at=5),
    "a card without a screen (TCC)": always(WIN_NV, OLLAMA.at(own=None), is_tcc=True, used=4200),
    "memory without a program": always(WIN_NV, OLLAMA.at(own=1000), used=3000),
    # ── Windows, other makers ────────────────────────────────────────────────────────────────
    "AMD computes": always(WIN, COMFY),
    "AMD spills": always(WIN, COMFY.at(own=7900, shared=2048), total=8192),
    "integrated instead of the card": always(WIN, COMFY, is_integrated=True, total=16384),
    "integrated beside the card": always(
        WIN, COMFY, is_integrated=True, total=16384, on_better=(40,)
    ),
    # ── Linux, NVIDIA ────────────────────────────────────────────────────────────────────────
    "before Maxwell": always(LIN_NV, L_PYTHON.at(load={"old": 1.0})),
    "another user": always(LIN_NV, L_PYTHON.at(user="anna")),
    "service": always(LIN_NV, L_PYTHON.at(name="ollama", unit="service ollama", user="ollama")),
    # ── Linux, amdgpu and others ─────────────────────────────────────────────────────────────
    "firefox draws": always(LIN, FIREFOX),
    "computes through Mesa": always(LIN, MESA),
    "ROCm": always(LIN, ROCM, FIREFOX, used=5500),
    "ROCm of another user": always(LIN, ROCM.at(own=None, is_hidden=True), used=5200),
    "of another card": always(LIN, FIREFOX, L_GAME.at(other_card=True)),
    "linux integrated": always(
        LIN, MESA.at(shared=1000), is_integrated=True, total=8192, used=2000
    ),
}  # fmt: skip


def told_of(expected: str) -> dict[str, list[str]]:
    """Return what is expected by scene: a line that begins with # names one."""
    blocks = [block.strip().split("\n") for block in f"\n{expected}".split("\n# ")[1:]]
    return {name: sentences for name, *sentences in blocks}


TOLD = told_of(Path(__file__).with_suffix(".txt").read_text(encoding="utf-8"))


def sentences_of(found, state) -> list[str]:
    notices = program_notices(found, {}, state, most=4)
    amber = {Tone.AMBER: " (amber)"}
    return [plain(one.sentence) + amber.get(one.tone, "") for one in notices]


@pytest.mark.parametrize("name", SCENES)
def test_a_scene_is_told_as_it_is(name, monkeypatch, tmp_path):
    found, state = Stage(monkeypatch, tmp_path).play(SCENES[name])
    assert sentences_of(found, state) == TOLD[name]
    tank = tank_of_sensors(Telemetry(memory_used_bytes=state.used_bytes), state.total_bytes)
    whole = with_programs(tank, memory_by_program(found, 4), state.spilled_bytes(found))
    on_card = sum(part.size_bytes for part in whole.parts if part.key != "spilled")
    assert on_card == pytest.approx(state.total_bytes, rel=0.02), "it adds up to the card"
