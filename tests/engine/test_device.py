import itertools
from types import SimpleNamespace

import pytest
import torch

from gpu_studio.core.failure import FailureKind, StudioError
from gpu_studio.core.maker_builds import serves
from gpu_studio.core.messages.engine_messages import DescribeEngine, StartError
from gpu_studio.core.messages.placement_messages import UseDevice
from gpu_studio.core.wheel_table import load_table
from gpu_studio.engine import device as devices
from gpu_studio.engine import device as properties
from gpu_studio.engine.accelerators.cuda import explain_unavailable, start_code
from gpu_studio.engine.device import resolve, torch_card
from gpu_studio.engine.workloads.registry import WORKLOADS
from tests.engine.answers import ask


@pytest.fixture
def two_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "init", lambda: None)
    devices._first_state.cache_clear()
    yield
    devices._first_state.cache_clear()


@pytest.fixture
def no_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    def init() -> None:
        raise RuntimeError("Found no NVIDIA driver on your system. Please check that you have")

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    devices._first_state.cache_clear()
    yield
    devices._first_state.cache_clear()


def test_addresses_are_devices(two_cards: None):
    assert devices.addresses() == ["cpu", "cuda:0", "cuda:1"]
    assert resolve("cpu") == torch.device("cpu")
    assert resolve("cuda:1") == torch.device("cuda", 1)


@pytest.mark.parametrize("address", ["cuda:2", "cuda", "cuda:-1", "cuda:1 ", "mps", "", "cuda:99"])
def test_what_is_not_there_is_named_with_what_is(two_cards: None, address: str):
    with pytest.raises(StudioError) as caught:
        resolve(address)
    assert caught.value.kind is FailureKind.NO_SUCH_DEVICE
    asked, there = str(caught.value).split(";")
    assert address in asked
    assert "cpu, cuda:0, cuda:1" in there


def test_a_card_without_cuda_is_refused_with_the_reason(no_cards: None):
    assert devices.addresses() == ["cpu"]
    with pytest.raises(StudioError) as caught:
        resolve("cuda:0")
    assert caught.value.kind is FailureKind.NO_CUDA
    asked, reason = str(caught.value).split(". ")
    assert "cuda:0" in asked
    assert "only cpu" in asked
    assert "no NVIDIA driver" in reason


@pytest.mark.parametrize("address", ["cuda:-1", "cuda", "xpu:0", "cpu", "", "graphics"])
def test_using_what_is_not_a_card_is_refused(two_cards: None, address: str):
    (failed,) = ask(UseDevice(device=address))
    assert failed.failure.kind is FailureKind.NO_SUCH_DEVICE


@pytest.mark.parametrize(
    ("text", "visible_devices", "words"),
    [
        ("Torch not compiled with CUDA enabled", None, "built without CUDA"),
        ("Found no NVIDIA driver on your system. Please check", None, "finds no NVIDIA driver"),
        (
            "The NVIDIA driver on your system is too old (found version 11040). Please update",
            None,
            "too old for this PyTorch, which is built for CUDA 13.0",
        ),
        ("No CUDA GPUs are available", "", "CUDA_VISIBLE_DEVICES is “”, which hides every card"),
        ("No CUDA GPUs are available", None, "sees no card"),
        (
            "Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported "
            "display driver / cuda driver combination",
            None,
            "library and its kernel module have different versions (error 803)",
        ),
        (
            "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions? "
            "Error 804: forward compatibility was attempted on non supported HW",
            None,
            "newer than the PC's driver",
        ),
        (
            "Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions? "
            "Error 802: system not yet initialized",
            None,
            "a service that the driver waits for does not run (error 802).",
        ),
        ("Error 46: whatever\nmore", None, "the card accepts no further program (error 46)"),
        ("Error 45: whatever\nmore", None, "CUDA could not start: error 45, whatever."),
        ("", None, "no reason given"),
    ],
)
def test_why_cuda_is_not_available(
    monkeypatch: pytest.MonkeyPatch, text: str, visible_devices: str | None, words: str
):
    monkeypatch.setattr(torch.version, "cuda", "13.0")
    sentence = explain_unavailable(text, visible_devices)
    assert words in sentence
    assert sentence.count("\n") == 0
    assert "cudaGetDeviceCount" not in sentence


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("CUDA driver initialization failed, you might not have a CUDA gpu.", 3),
        ("CUDA unknown error - this may be due to an incorrectly set up environment", 999),
        ("Got 'out of memory' error while trying to initialize CUDA.", 2),
        ("The NVIDIA driver on your system is too old (found version 11040)", 35),
        ("(101) : invalid device ordinal", 101),
        ("CUDA error: named symbol not found", 500),
        ("Error 12345: whatever", None),
        ("", None),
    ],
)
def test_an_error_of_the_start_is_known_by_its_words(text: str, code: int | None):
    assert start_code(text) == code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Error 804: forward compatibility was attempted on non supported HW", 804),
        ("Something else", None),
    ],
)
def test_the_error_of_the_start_is_a_value_of_its_own(
    monkeypatch: pytest.MonkeyPatch, text: str, code: int | None
):
    def start() -> None:
        raise RuntimeError(text)

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "init", start)
    devices._first_state.cache_clear()
    try:
        (described,) = ask(DescribeEngine())
    finally:
        devices._first_state.cache_clear()
    assert not described.cuda_available
    assert described.start_error == StartError(text=text, code=code)


def test_the_engine_describes_itself():
    (described,) = ask(DescribeEngine())
    assert described.torch_version == torch.__version__
    assert described.cpu_threads == torch.get_num_threads()
    assert described.cpu_capability == torch.backends.cpu.get_cpu_capability()
    names = [workload.description.name for workload in WORKLOADS]
    assert [workload.name for workload in described.workloads] == names
    assert [m.name for m in described.models] == ["linear_10", "linear_1000", "convnet", "mlp"]
    if not torch.cuda.is_available():
        assert not described.cuda_available
        assert described.cuda_reason
        assert described.device_count == 0


def test_a_name_that_is_no_utf_8_ends_no_run(monkeypatch: pytest.MonkeyPatch):
    card = torch.device("cuda", 0)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: b"\xf8".decode())
    assert devices.card_name(card) == "NVIDIA card"
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda device: f"GT {device.index}")
    assert devices.card_name(card) == "GT 0"


GT_1030 = {
    "name": "NVIDIA GeForce GT 1030", "major": 6, "minor": 1, "multi_processor_count": 3,
    "total_memory": 2092957696,
}  # fmt: skip
HAS_TABLE = hasattr(torch.cuda, "PYTORCH_RELEASES_CODE_CC")


@pytest.fixture
def card_with(monkeypatch):
    def make_card(**facts):
        monkeypatch.setattr(
            torch.cuda, "get_device_properties", lambda _index: SimpleNamespace(**facts)
        )
        return torch_card(0)

    return make_card


def test_a_card_is_reported_as_an_old_pytorch_can(card_with):
    card = card_with(**GT_1030)
    assert (card.compute_capability, card.multiprocessors) == ("6.1", 3)
    assert (card.uuid, card.pci_bus_id, card.l2_cache_bytes, card.sm_clock_max_mhz) == (None,) * 4


def test_a_card_is_reported_as_a_new_pytorch_can(card_with):
    card = card_with(
        **GT_1030, uuid="11111111-2222", pci_domain_id=0, pci_bus_id=0x0B, pci_device_id=0,
        L2_cache_size=524288, clock_rate=1468000, memory_clock_rate=3004000, memory_bus_width=64,
    )  # fmt: skip
    assert card.uuid == "GPU-11111111-2222"
    assert card.pci_bus_id == "00000000:0B:00.0"
    assert (card.sm_clock_max_mhz, card.memory_clock_max_mhz) == (1468.0, 3004.0)
    assert (card.l2_cache_bytes, card.memory_bus_width_bits) == (524288, 64)


def test_a_card_that_pytorch_cannot_describe_keeps_its_number(monkeypatch):
    def fail(_index):
        raise UnicodeDecodeError("utf-8", b"\xf8", 0, 1, "invalid start byte")

    monkeypatch.setattr(torch.cuda, "get_device_properties", fail)
    assert torch_card(1) == properties.TorchCard(torch_index=1, name="NVIDIA card")


@pytest.mark.skipif(not HAS_TABLE, reason="a PyTorch before 2.11 has no table of its own")
def test_the_program_s_rules_and_table_are_those_of_pytorch():
    codes = sorted({code for key in torch.cuda.DEVICE_REQUIREMENT for code in (key,)})
    devices = [30, 35, 50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90, 100, 103, 120, 121]
    for code, device in itertools.product(codes, devices):
        theirs = torch.cuda._code_compatible_with_device(device, code)
        ours = serves([f"sm_{code}"], (device // 10, device % 10))
        assert ours == theirs, f"sm_{code} on {device}"
    if torch.__version__.partition("+")[0] != load_table().torch_version:
        return
    theirs = {
        f"cu{cuda.replace('.', '')}": [f"sm_{code}" for code in by_machine["x86_64"]]
        for cuda, by_machine in torch.cuda.PYTORCH_RELEASES_CODE_CC.items()
    }
    for build, device in itertools.product(load_table().builds, devices):
        if build.tag in theirs:
            ours = build.arch_list["linux-x86_64"]
            capability = (device // 10, device % 10)
            assert serves(ours, capability) == serves(theirs[build.tag], capability), build.tag
