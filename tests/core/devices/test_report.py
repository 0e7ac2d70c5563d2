import json

import msgspec
import pytest

from gpu_studio.core.devices.devices import CardReading, GpuProcess, number_cards
from gpu_studio.core.devices.facts import PcSnapshot
from gpu_studio.core.devices.finding import Finding
from gpu_studio.core.devices.link import Link
from gpu_studio.core.devices.report import (
    MASK,
    masked_text,
    pc_value,
    report_markdown,
    report_text,
)
from gpu_studio.core.messages.engine_messages import TorchCard
from tests.fakes.descriptions import described_with_cuda
from tests.fakes.pc import cpu_only, gt_1030, reading

UUID = "GPU-1b2f5a80-8d65-4b4f-9f7e-0a6c1c1d1030"


@pytest.fixture
def snapshot():
    inventory = gt_1030()
    inventory = msgspec.structs.replace(
        inventory, devices=(inventory.cpu, *number_cards(list(inventory.cards), None))
    )
    taken = reading(inventory)
    processes = (
        GpuProcess(pid=4711, name="/home/bob/my venv/bin/python", user="bob", memory_bytes=1 << 20),
        GpuProcess(
            pid=12,
            name="C:\\Program Files\\Game|1\\Mallory-game.exe",
            user="mallory",
            kind="graphics",
        ),
    )
    cards = (
        CardReading(
            uuid=taken.cards[0].uuid, telemetry=taken.cards[0].telemetry, processes=processes
        ),
    )
    return PcSnapshot(
        inventory=inventory,
        reading=msgspec.structs.replace(taken, cards=cards),
        engine=described_with_cuda(visible_devices=UUID),
    )


FINDINGS = (Finding(code="ok", sentence="It works.", detail=f"{UUID} in /home/bob/x.py"),)
FORMATS = (report_text, report_markdown)


def plain(value):
    """Return the value as `devices --json` prints it."""
    return json.loads(msgspec.json.encode(value))


@pytest.mark.parametrize("report", FORMATS)
def test_strangers_learn_no_uuid_no_user_and_no_folder(snapshot, report):
    text = report(snapshot, FINDINGS)
    for secret in ("1b2f5a80", "bob", "mallory", "my venv", "program files"):
        assert secret not in text.lower()
    assert "python" in text
    assert "game.exe" in text


@pytest.mark.parametrize("report", FORMATS)
def test_everything_is_there_when_asked_for(snapshot, report):
    text = report(snapshot, FINDINGS, masked=False).replace("\\", "")
    for known in (UUID, "bob", "mallory", "my venv", "Program Files"):
        assert known in text


def test_markdown_is_not_broken_by_names(snapshot):
    text = report_markdown(snapshot, masked=False)
    row = next(line for line in text.splitlines() if "game.exe" in line)
    cells = row.replace("\\|", "").strip("|").split("|")
    assert len(cells) == 5
    assert "sm\\_61" in text


def test_json_has_the_promised_shape(snapshot):
    value = plain(pc_value(snapshot))
    cpu, card = value["devices"]
    assert cpu["kind"] == "cpu"
    assert cpu["uuid"] is None
    assert card["uuid"] == UUID
    assert card["compute_capability"] == "6.1"
    assert card["memory_total_bytes"] == 2 << 30
    assert (card["torch_index"], card["driver_index"]) == (0, 0)
    assert card["pci_bus_id"] == "00000000:01:00.0"
    assert card["telemetry"]["temperature_c"] == 41.0
    assert card["telemetry"]["pcie_rx_bytes_per_s"] is None
    assert card["allocated_bytes"] is None
    assert [process["pid"] for process in card["processes"]] == [4711, 12]
    assert value["torch"]["version"] == "2.13.0+cu126"
    assert value["torch"]["current_device"] == "cuda:0"
    assert value["driver"]["version"] == "570.86.16"


@pytest.mark.parametrize("report", FORMATS)
def test_a_report_before_anything_is_known(report):
    assert "Ryzen" in report(PcSnapshot(inventory=cpu_only()))


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"{UUID} is hidden", "GPU-(masked) is hidden"),
        ("GPU-1b2f,GPU-77aa", "GPU-(masked),GPU-(masked)"),
        ("MIG-7a1c2b3d-0000 here", "MIG-(masked) here"),
        ("see /home/bob/a/b.py now", "see …/b.py now"),
        ("see /home/bob/My papers/new ones/b.py now", "see …/b.py now"),
        ("/srv/my venv/bin/python", "…/python"),
        ("/home/jane doe/x.py", "…/x.py"),
        ("/a/b.py and /c/d.py", "…/b.py and …/d.py"),
        ("/a/b.py, 48.0 GB/s", "…/b.py, 48.0 GB/s"),
        ("/a/b.py https://pytorch.org/x", "…/b.py https://pytorch.org/x"),
        (r"C:\Users\bob b\x.exe", r"…\x.exe"),
        (r"\\server\share\x.exe", r"…\x.exe"),
        ("C:/Users/bob/x.exe", r"…\x.exe"),
        (r"in C:\Users\bob b", r"in …\(masked)"),
        ("in /home/bob now", "in …/(masked) now"),
        ("file:///home/bob/x.py", "…/x.py"),
        (UUID.removeprefix("GPU-"), "(masked)"),
        ("https://download.pytorch.org/whl/cu126", "https://download.pytorch.org/whl/cu126"),
        (repr(r"C:\Users\bob b\x.exe"), r"'…\x.exe'"),
        (repr(repr(r"\\server\share\x.exe")), "\"'…\\x.exe'\""),
        (r"in C:\\Users\\bob b", r"in …\(masked)"),
        ("https://bob:pa55@mirror.example/simple/", "https://(masked)@mirror.example/simple/"),
        ("git+ssh://bob@x.example/a", "git+ssh://(masked)@x.example/a"),
        ("https://x.example/a.whl?token=s3cr3t&b=1, then", "https://x.example/a.whl?(masked) then"),
        ("https://x.example/a#access_token=s3cr3t", "https://x.example/a?(masked)"),
        ("hf_abcdefghijklmnopqrstuv", "(masked)"),
        ("http://bob:pa@55@mirror.example/", "http://(masked)@mirror.example/"),
        ("--token s3cr3t --quiet", "--token (masked) --quiet"),
        ("PIP_PASSWORD=s3cr3t x", "PIP_PASSWORD=(masked) x"),
        ('{"api_key": "s3cr3t", "b": 1}', '{"api_key": "(masked)", "b": 1}'),
        (
            "The card with serial number 0324418051234 failed.",
            "The card with serial number (masked) failed.",
        ),
        ("Serial: PF2ABC12, lost", "Serial: (masked), lost"),
        ('{"serial": "0324418051234"}', '{"serial": "(masked)"}'),
        ("S/N 1563120009999", "S/N (masked)"),
        ("the serial port COM10, serial: unknown", "the serial port COM10, serial: unknown"),
        ("Unexpected token in JSON", "Unexpected token in JSON"),
        ("Authorization: Bearer abc.def-ghi", "Authorization: Bearer (masked)"),
        ("48.0 GB/s in, gen 1/3", "48.0 GB/s in, gen 1/3"),
        ("GPU-Util", "GPU-Util"),
    ],
)
def test_masking(text, masked):
    assert masked_text(text) == masked


def test_a_card_s_values_have_its_peaks_and_pytorch_s_account(snapshot):
    engine = msgspec.structs.replace(
        snapshot.engine,
        cards=(
            TorchCard(torch_index=0, name="NVIDIA GeForce GT 1030", uuid=UUID, l2_cache_bytes=1),
        ),
    )
    link = Link(generation=3, width=4)
    card = pc_value(msgspec.structs.replace(snapshot, engine=engine, links={UUID: link}))[
        "devices"
    ][1]
    assert card["compute_capability"] == "6.1"
    assert card["torch_account"]["l2_cache_bytes"] == 1
    # 3 multiprocessors, 128 multiply-adds a clock, at the highest clock that the fake tells.
    clock_hz = card["sm_clock_max_mhz"] * 1e6
    assert card["peaks"]["arithmetic_flops"]["float32"] == 3 * 128 * 2 * clock_hz
    assert card["link_at_work"] == {"generation": 3, "width": 4}


@pytest.mark.parametrize(
    "part", ["a.", "a-", "password", "token", "http://", "https://a/", "sk-", "serial "]
)
def test_one_long_line_is_masked_as_soon_as_a_short_one(part):
    """A search that runs to the end of the line from each of its words would take minutes."""
    text = part * ((64 << 10) // len(part))
    assert masked_text(f"{text} --token hf_{'a' * 20}").endswith(f"--token {MASK}")
