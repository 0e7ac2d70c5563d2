"""Where a program is started, and exactly what is set for it."""

import shlex
import subprocess
import sys

import pytest

from gpu_studio.core.devices.devices import Device
from gpu_studio.core.switcher.program_start import (
    CHOOSING,
    StartTarget,
    VulkanDevice,
    drawing_variables,
    shell_lines,
    shortcut,
    split_command,
    start_variables,
    target_named,
    targets,
)
from gpu_studio.process.started_program import start_line


def card(maker, name, bus, device_id, uuid=None, **changes):
    kind = {"NVIDIA": "cuda", "AMD": "cuda", "Intel": "xpu"}[maker]
    slot = f"00000000:{bus:02X}:00.0"
    return Device(
        kind=kind, maker=maker, name=f"{maker} {name}", uuid=uuid, pci_bus_id=slot,
        pci_device_id=device_id, **changes,
    )  # fmt: skip


RTX = card("NVIDIA", "GeForce RTX 3060", 1, 0x2504, "GPU-aaaa1111-2222")
RTX_TWIN = card("NVIDIA", "GeForce RTX 3060", 2, 0x2504, "GPU-bbbb1111-2222")
GTX = card("NVIDIA", "GeForce GTX 1060", 4, 0x1C03, "GPU-cccc1111-2222")
RX = card("AMD", "Radeon RX 6600", 3, 0x73FF, "GPU-deadbeef12345678")
RX_OLD = card("AMD", "Radeon RX 580", 5, 0x67DF)
UHD = card("Intel", "UHD 630", 0, 0x3E92, is_integrated=True)
ARC = card("Intel", "Arc A380", 6, 0x56A5)
LAVAPIPE = VulkanDevice(
    name="llvmpipe (LLVM 15)", vendor_id=0x10005, device_id=0, uuid="6d65736132", is_software=True
)
_IDS = {"NVIDIA": 0x10DE, "AMD": 0x1002, "Intel": 0x8086}


def in_vulkan(one: Device) -> VulkanDevice:
    return VulkanDevice(
        name=one.name, vendor_id=_IDS[one.maker], device_id=one.pci_device_id,
        uuid=one.name, pci_bus_id=one.pci_bus_id,
    )  # fmt: skip


def set_on(chosen, cards, system="linux", order=None):
    (target,) = (one for one in targets(cards) if one.card is chosen)
    order = [*map(in_vulkan, cards)] if order is None else order
    return start_variables(target, cards, order, system)


HIDDEN = {"HIP_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": "-1"}
OF_NVIDIA = {
    "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "ONEAPI_DEVICE_SELECTOR": "cuda:*;*:cpu", **HIDDEN,
}  # fmt: skip
NV_PRIME = {
    "__NV_PRIME_RENDER_OFFLOAD": "1", "__GLX_VENDOR_LIBRARY_NAME": "nvidia",
    "__VK_LAYER_NV_optimus": "NVIDIA_only",
}  # fmt: skip


def selected(vendor, device):
    return {
        "VK_LOADER_DEVICE_SELECT": f"0x{vendor}:0x{device}",
        "MESA_VK_DEVICE_SELECT": f"{vendor}:{device}!",
    }


SET = {
    "the only card": (
        set_on(RTX, [RTX]),
        OF_NVIDIA | selected("10de", "2504")
        | {"CUDA_VISIBLE_DEVICES": RTX.uuid, "GGML_VK_VISIBLE_DEVICES": "0"},
    ),
    "one of two makers": (
        set_on(RTX, [RTX, UHD], order=[in_vulkan(UHD), in_vulkan(RTX)]),
        OF_NVIDIA | NV_PRIME | selected("10de", "2504")
        | {"CUDA_VISIBLE_DEVICES": RTX.uuid, "GGML_VK_VISIBLE_DEVICES": "1"},
    ),
    "one of two twins": (
        set_on(RTX_TWIN, [RTX, RTX_TWIN]),
        OF_NVIDIA | NV_PRIME
        | {"CUDA_VISIBLE_DEVICES": RTX_TWIN.uuid, "GGML_VK_VISIBLE_DEVICES": "1"},
    ),
    "on Windows": (
        set_on(RTX, [RTX, UHD], "win32"),
        {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID", "CUDA_VISIBLE_DEVICES": RTX.uuid,
            "HIP_VISIBLE_DEVICES": "-1", "ONEAPI_DEVICE_SELECTOR": "cuda:*;*:cpu",
            "GGML_VK_VISIBLE_DEVICES": "0",
        },
    ),
    "AMD alone": (
        set_on(RX, [RX]),
        selected("1002", "73ff")
        | {
            "ROCR_VISIBLE_DEVICES": RX.uuid, "HIP_VISIBLE_DEVICES": "0",
            "ONEAPI_DEVICE_SELECTOR": "hip:*;*:cpu", "GGML_VK_VISIBLE_DEVICES": "0",
        },
    ),
    "AMD beside NVIDIA": (
        set_on(RX, [RTX, RX]),
        selected("1002", "73ff")
        | {
            "CUDA_VISIBLE_DEVICES": "-1", "ROCR_VISIBLE_DEVICES": RX.uuid,
            "HIP_VISIBLE_DEVICES": "0", "ONEAPI_DEVICE_SELECTOR": "hip:*;*:cpu",
            "GGML_VK_VISIBLE_DEVICES": "1", "DRI_PRIME": "pci-0000_03_00_0",
        },
    ),
    "AMD on Windows, the second": (
        set_on(RX_OLD, [RX, RX_OLD], "win32"),
        {
            "HIP_VISIBLE_DEVICES": "1", "ONEAPI_DEVICE_SELECTOR": "hip:*;*:cpu",
            "GGML_VK_VISIBLE_DEVICES": "1",
        },
    ),
    "AMD without a UUID": (
        {name: set_on(RX_OLD, [RX, RX_OLD])[name] for name in HIDDEN},
        {"ROCR_VISIBLE_DEVICES": "1", "HIP_VISIBLE_DEVICES": "0"},
    ),
    "Intel, the second": (
        set_on(ARC, [UHD, ARC]),
        selected("8086", "56a5") | HIDDEN
        | {
            "CUDA_VISIBLE_DEVICES": "-1", "ONEAPI_DEVICE_SELECTOR": "level_zero:1",
            "ZE_ENABLE_PCI_ID_DEVICE_ORDER": "1", "GGML_VK_VISIBLE_DEVICES": "1",
            "DRI_PRIME": "pci-0000_06_00_0",
        },
    ),
    "not in Vulkan": (
        {name: set_on(RTX, [RTX], order=[LAVAPIPE])[name] for name in ("GGML_VK_VISIBLE_DEVICES",)},
        {"GGML_VK_VISIBLE_DEVICES": "none"},
    ),
    "the CPU": (
        start_variables(StartTarget("CPU"), [RTX, UHD], [in_vulkan(RTX)], "linux"),
        HIDDEN
        | {
            "CUDA_VISIBLE_DEVICES": "-1", "ONEAPI_DEVICE_SELECTOR": "*:cpu",
            "GGML_VK_VISIBLE_DEVICES": "none",
        },
    ),
    "lavapipe": (
        start_variables(targets([], [LAVAPIPE])[0], [], [LAVAPIPE], "linux"),
        HIDDEN | selected("10005", "0000")
        | {
            "CUDA_VISIBLE_DEVICES": "-1", "ONEAPI_DEVICE_SELECTOR": "*:cpu",
            "GGML_VK_VISIBLE_DEVICES": "0",
        },
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SET)
def test_exactly_these_variables_are_set(name):
    found, expected = SET[name]
    assert found == expected
    assert found.keys() <= CHOOSING, "and nothing of it is inherited otherwise"


def test_if_vulkan_cannot_be_asked_nothing_is_said_to_ggml():
    (target, _) = targets([RTX])
    assert "GGML_VK_VISIBLE_DEVICES" not in start_variables(target, [RTX], None, "linux")
    assert drawing_variables(target, [RTX], "win32") == {}


CARDS = [UHD, GTX, RTX, RX]


@pytest.mark.parametrize(
    ("word", "meant"),
    [
        ("0", RTX), ("1", GTX), ("2", UHD), ("3", RX), ("cuda:1", GTX), ("xpu:0", UHD),
        (RTX.uuid, RTX), ("gpu-cccc", GTX), ("deadbeef", RX), ("03:00.0", RX),
        ("00000000:01:00.0", RTX), ("cpu", None), ("CPU", None), (" 1 ", GTX),
    ],
)  # fmt: skip
def test_a_word_means_a_card(word, meant):
    assert target_named(word, targets(CARDS)).card is meant


@pytest.mark.parametrize("word", ["9", "GPU-", "gpu", "", "cuda:7", "1060", "00.0", "-1"])
def test_a_wrong_word_lists_the_cards(word):
    with pytest.raises(ValueError, match=r"There is no card .* Choose 0 \(RTX 3060\), .* or cpu"):
        target_named(word, targets(CARDS))


def test_two_cards_of_one_name_are_told_apart_and_what_only_vulkan_has_comes_after():
    found = targets([RTX, RTX_TWIN], [in_vulkan(RTX), LAVAPIPE])
    assert [one.title for one in found] == [
        "RTX 3060 in slot 00000000:01:00.0", "RTX 3060 in slot 00000000:02:00.0", "llvmpipe", "CPU",
    ]  # fmt: skip
    assert target_named("2", found).vulkan is LAVAPIPE
    assert target_named(LAVAPIPE.uuid, found).vulkan is LAVAPIPE


COMMAND = ["C:/My Tools/übung.exe", "a b", 'say "hi"', "50%", "a&b", "it's", "$HOME", ""]


def test_the_line_for_sh_starts_the_same(tmp_path):
    script = "import os, sys; print([*sys.argv[1:], os.environ['A']])"
    command = [sys.executable, "-c", script, *COMMAND]
    line = shell_lines({"A": "*:cpu;x"}, command)["sh"]
    if sys.platform != "win32":
        said = subprocess.run(line, shell=True, capture_output=True, encoding="utf-8", check=True)
        assert said.stdout.strip() == repr([*COMMAND, "*:cpu;x"])
    assert shlex.split(line)[1:] == command


def test_the_lines_for_windows_quote_as_their_shells_do():
    lines = shell_lines({"A": "x;y", "B": "GPU-1"}, COMMAND)
    assert lines["cmd"] == (
        'set "A=x;y" && set "B=GPU-1" && "C:/My Tools/übung.exe" "a b" "say \\"hi\\"" "50%" "a&b" '
        '"it\'s" $HOME ""'
    )
    assert lines["PowerShell"] == (
        "$env:A='x;y'; $env:B='GPU-1'; & 'C:/My Tools/übung.exe' 'a b' 'say \"hi\"' '50%' 'a&b' "
        "'it''s' '$HOME' ''"
    )


@pytest.mark.parametrize(
    ("system", "text", "words"),
    [
        ("win32", r'"C:\My Tools\x.exe" "b c" d\e ""', [r"C:\My Tools\x.exe", "b c", r"d\e", ""]),
        ("win32", r"C:\run.bat  --x=1 ümlaut", [r"C:\run.bat", "--x=1", "ümlaut"]),
        ("linux", "'/my tools/x' a\\ b \"c d\"", ["/my tools/x", "a b", "c d"]),
    ],
)  # fmt: skip
def test_a_typed_command_has_the_words_that_the_shell_would_see(system, text, words):
    assert split_command(text, system) == words


@pytest.mark.parametrize("system", ["win32", "linux"])
@pytest.mark.parametrize("text", ["", "  ", '""', '"no end', '"" x'])
def test_what_names_no_program_is_refused(system, text):
    with pytest.raises(ValueError, match=r"no end|no program|No closing"):
        split_command(text, system)


def test_a_shortcut_of_linux_starts_the_same(tmp_path):
    script = "import os, sys; print([*sys.argv[1:], os.environ['A']])"
    made = shortcut({"A": "*:cpu;x"}, [sys.executable, "-c", script, *COMMAND], "RTX 3060", "linux")
    path = tmp_path / made.name
    path.write_bytes(made.contents)
    assert made.name.endswith(" on RTX 3060.desktop")
    assert start_line([str(path)], "linux") == [
        "env", "A=*:cpu;x", sys.executable, "-c", script, *COMMAND,
    ]  # fmt: skip
    assert b' "50%%" "a&b" "it\'s" "\\\\$HOME" ""' in made.contents
    if sys.platform != "win32":
        said = subprocess.run(
            start_line([str(path)]), capture_output=True, encoding="utf-8", check=True
        )
        assert said.stdout.strip() == repr([*COMMAND, "*:cpu;x"])


def test_a_shortcut_of_windows_is_a_batch_file():
    made = shortcut({"A": "x;y"}, [r"C:\My Tools\run 50%.bat", "a b"], "RTX 3060", "win32")
    assert (made.name, made.kind) == ("run 50% on RTX 3060.bat", "Batch file (*.bat)")
    assert made.contents.decode().split("\r\n") == [
        "@echo off", "chcp 65001 >nul", 'set "A=x;y"', r'call "C:\My Tools\run 50%%.bat" "a b"', "",
    ]  # fmt: skip
