"""The window with a Radeon that Python stands in for: the real engine, in a process of its own."""

import msgspec

from gpu_studio.app import build_window
from gpu_studio.core.devices.devices import Device, Inventory
from gpu_studio.core.messages.run_messages import RunFinished
from gpu_studio.engine import client
from gpu_studio.model.settings import Settings
from gpu_studio.model.studio import Studio
from tests.core.devices.test_build_findings import GEFORCE, RADEON, RYZEN
from tests.engine.accelerators.test_makers import pytestmark as needs_backends
from tests.engine.answers import run_request
from tests.fakes.pc import SteadySensors
from tests.patience import PATIENCE_S

pytestmark = needs_backends
# PyTorch lends no kind of device of its own name.
OF_AMD = [msgspec.structs.replace(card, kind="amd") for card in (RYZEN, RADEON)]
CPU = Device(kind="cpu", name="AMD Ryzen 7 7700X 8-Core Processor")


def test_the_radeon_is_chosen_and_a_number_is_said_to_be_untested(
    pages_on_sight, qtbot, tmp_path, monkeypatch
):
    monkeypatch.setattr(client, "_MODULE", "tests.engine.accelerators.stand_in_engine")
    monkeypatch.setenv("STAND_IN", "amd")
    window = build_window(
        sensor_source=SteadySensors(Inventory(devices=(CPU, *OF_AMD, GEFORCE))),
        settings=Settings(tmp_path / "settings.json"),
        log_path=tmp_path / "log.txt",
    )
    qtbot.addWidget(window)
    window.show()
    studio = window.findChild(Studio)
    waiting = {"timeout": 1000 * PATIENCE_S}
    qtbot.waitUntil(lambda: studio.board.is_complete, **waiting)
    assert (studio.board.current.label, studio.board.current.address) == ("Radeon RX 6600", "amd:1")
    assert [row.label for row in studio.board.usable] == [
        "CPU",
        "Radeon RX 6600",
        "Radeon Graphics",
    ]
    qtbot.waitUntil(lambda: bool(studio.doctor.findings), **waiting)
    assert "not_tested" in {finding.code for finding in studio.doctor.findings}
    # A tensor of Python is always on the first card.
    reply = studio.session.submit(run_request(device="amd:0", workload="matmul"))
    events = []
    reply.event_received.connect(events.append)
    with qtbot.waitSignal(reply.finished, **waiting):
        pass
    event = events[-1]
    assert isinstance(event, RunFinished)
    assert (event.device_name, event.verified) == ("AMD Radeon Graphics", True)
    assert event.doubts == {"not tested": "not tested on this kind of card yet"}
    window.close()
