import getpass
import socket
from pathlib import Path

import msgspec
import pytest

from gpu_studio.core.check.check_file import encode_record
from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.shared_texts import log_end, without_identifiers, without_names
from tests.fakes.check_records import check_record

USER, HOST = "erika.mustermann", "HEIMRECHNER-7"
UUID = "GPU-4fe0d7a1-3c5b-4d52-9c2e-0123456789ab"
PLANTED = (
    f"{USER} on {HOST}: C:\\Users\\{USER}\\torch\\lib\\c10.dll and /home/{USER}/models/a.bin "
    f"of {UUID}, file:///srv/secret-folder/x.py"
)


@pytest.fixture(autouse=True)
def _names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(getpass, "getuser", lambda: USER)
    monkeypatch.setattr(socket, "gethostname", lambda: f"{HOST}.fritz.box")


def test_a_record_has_no_identifier_in_any_sentence() -> None:
    record = check_record()
    finding = CheckFinding(kind="throttled", severity="doubt", stage="memory", sentence=PLANTED)
    device = msgspec.structs.replace(record.device, contradiction=PLANTED)
    planted = msgspec.structs.replace(record, findings=(finding,), device=device)
    shared = without_identifiers(planted)
    written = encode_record(shared).decode()

    for secret in (USER, HOST, UUID, UUID[4:], "models", "secret-folder"):
        assert secret.lower() not in written.lower()
    assert "(masked) on (masked): …" in shared.findings[0].sentence


def test_words_of_the_program_stay_where_a_user_is_called_like_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    record = check_record()
    monkeypatch.setattr(getpass, "getuser", lambda: "geforce")
    monkeypatch.setattr(socket, "gethostname", lambda: "passed")
    device = msgspec.structs.replace(record.device, ecc="All of it passed.")
    kept = without_identifiers(msgspec.structs.replace(record, device=device))

    assert kept.device.name == record.device.name
    assert kept.verdict == record.verdict
    assert kept.device.ecc == "All of it (masked)."


def test_the_last_lines_of_a_log_are_read(tmp_path: Path):
    path = tmp_path / "program.log"
    path.write_bytes(b"\xff\n" + b"".join(b"line %d\n" % number for number in range(100_000)))
    lines = log_end(path).splitlines()
    assert lines[-1] == "line 99999"
    assert len(lines) == 60
    assert log_end(tmp_path / "none") == ""
    assert log_end(tmp_path) == ""


def test_names_of_the_user_and_the_pc_are_masked_and_parts_of_words_are_not():
    text = "Ana's PC is ANA-PC; banana; /home/ana/x.py; GPU-12345678-1234-1234-1234-123456789abc"
    result = without_names(text, ("ana", "ana-pc", "", "pc"))
    for secret in ("Ana", "ANA-PC", "/home/ana", "12345678"):
        assert secret not in result
    assert "banana" in result
    assert "PC is" in result
