import getpass
import pickle
import socket
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec import inspect

from gpu_studio.core.benchmark.recording import decode_recording, recording_sentences
from gpu_studio.core.check.check_file import decode_record, encode_record
from gpu_studio.core.memory.snapshot_file import read_snapshot
from gpu_studio.core.messages.check_messages import CheckFinding
from gpu_studio.core.messages.engine_messages import RecordingHeader
from gpu_studio.core.packed_frame import PackedFrame
from gpu_studio.core.race.picture_file import SharedRace, SharedRun, decode_shared
from gpu_studio.core.race.pictures import LEARN
from gpu_studio.core.race.verdict import judge
from gpu_studio.core.shared_texts import log_end, without_identifiers, without_names
from gpu_studio.core.texts import file_name, listed, plain_text
from gpu_studio.engine.devices.description import describe_engine
from tests.core.race.racing import CARD, over
from tests.fakes.check_answers import check_record, wrong_bit
from tests.fakes.hostile_files import HOSTILE_NAME, UNSHOWABLE, race_recording

_LONG = 100


def hostile(value: Any, kind: inspect.Type) -> Any:
    """Return a JSON value in which each text that has no fixed form is hostile, by its type."""
    match kind:
        case inspect.StrType(pattern=None):
            return (HOSTILE_NAME + (value or ""))[: kind.max_length or _LONG]
        case inspect.StructType(array_like=True):
            return [hostile(one, of.type) for one, of in zip(value, kind.fields, strict=True)]
        case inspect.StructType():
            filled = dict(value)
            for field in kind.fields:
                found = hostile(value.get(field.encode_name), field.type)
                if found is not None:
                    filled[field.encode_name] = found
            return filled
        case inspect.UnionType(types=types):
            fitting = [one for one in types if _fits(value, one)] or [
                one for one in types if value is None and isinstance(one, inspect.StrType)
            ]
            return hostile(value, fitting[0]) if fitting else value
        case inspect.VarTupleType() | inspect.ListType():
            texts = isinstance(kind.item_type, inspect.StrType)
            return [hostile(one, kind.item_type) for one in value or [""] * texts]
        case inspect.TupleType(item_types=types):
            return [hostile(one, of) for one, of in zip(value, types, strict=True)]
        case inspect.DictType():
            return {
                hostile(key, kind.key_type): hostile(one, kind.value_type)
                for key, one in (value or {}).items()
            }
    return value


def _fits(value: Any, kind: inspect.Type) -> bool:
    if isinstance(kind, inspect.StrType):
        return isinstance(value, str)
    if isinstance(kind, inspect.StructType) and isinstance(value, dict):
        return value.get(kind.tag_field) == kind.tag if kind.tag_field else True
    is_list = isinstance(kind, (inspect.VarTupleType, inspect.ListType, inspect.TupleType))
    return is_list and isinstance(value, list)


def hostile_json(struct: msgspec.Struct, *, spared: frozenset[str] = frozenset()) -> bytes:
    """Return a struct as JSON with hostile texts everywhere but in some fields of its own."""
    plain = msgspec.to_builtins(struct)
    filled = hostile(plain, inspect.type_info(type(struct)))
    return msgspec.json.encode({**filled, **{name: plain[name] for name in spared}})


def hostile_record() -> bytes:
    """Return the record of a check with hostile texts where it may have any."""
    found = check_record({"memory": (wrong_bit(),)})
    record = msgspec.json.decode(hostile_json(found, spared=frozenset({"started_at"})))
    record["device"]["uuid_tail"] = HOSTILE_NAME[-4:]
    return msgspec.json.encode(record)


def texts_in(value: Any) -> Iterator[str]:
    """Yield every text in a JSON value, its fields' names too."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, one in value.items():
            yield from (*texts_in(name), *texts_in(one))
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from texts_in(one)


def assert_plain(shown: msgspec.Struct | str, allowed: str = "") -> None:
    texts = [shown] if isinstance(shown, str) else texts_in(msgspec.to_builtins(shown))
    for text in texts:
        assert not set(text) & set(UNSHOWABLE) - set(allowed), ascii(text)


def test_every_unshowable_character_is_replaced() -> None:
    for code in range(0x110000):
        character = chr(code)
        if unicodedata.category(character) in ("Cc", "Cf", "Cs", "Zl", "Zp"):
            assert plain_text(f"a{character}b") == "a b", hex(code)
    assert plain_text("1\u202f024\u00a0MiB 寒武纪 é Ω") == "1\u202f024\u00a0MiB 寒武纪 é Ω"
    assert file_name(Path(f"/a/photo{UNSHOWABLE[4]}gpj.exe")) == "photo gpj.exe"


def test_no_text_of_a_check_record_keeps_them() -> None:
    record = decode_record(hostile_record())
    assert "RTX" in record.device.name
    assert "RTX" in record.sentence
    assert_plain(record)


def test_no_text_of_a_saved_race_keeps_them() -> None:
    finished = judge(LEARN, [over(CARD, 0.01)]).finished
    race = SharedRace(race=finished, runs=(SharedRun(name="a"),), made_at="a")
    shared = decode_shared(hostile_json(race).decode())
    assert "RTX" in shared.runs[0].name
    assert_plain(shared)


def test_no_text_of_a_recording_keeps_them() -> None:
    content = race_recording([PackedFrame.of(np.zeros((2, 2, 3), np.uint8)).packed], side=2)
    header, *events = content.splitlines()
    lines = [
        hostile_json(msgspec.json.decode(header, type=RecordingHeader)),
        hostile_json(describe_engine()),
        *(line.replace(b'"GT 1030"', msgspec.json.encode(HOSTILE_NAME)) for line in events),
    ]
    recording = decode_recording(b"\n".join(lines) + b"\n")
    assert "RTX" in recording.header.title
    assert "RTX" in recording.runs[0].result.device_name
    assert_plain(recording)
    for sentence in (recording.label, *recording_sentences(recording)):
        assert_plain(sentence)


def test_no_text_of_a_memory_snapshot_keeps_them() -> None:
    block = {"address": 0, "size": 512, "state": "active_allocated"}
    snapshot = read_snapshot(
        pickle.dumps(
            {
                "segments": [
                    {
                        "segment_type": "small", "address": 0, "total_size": 512,
                        "blocks": [block],
                    }
                ],
                "device_traces": [[{"action": HOSTILE_NAME, "addr": 0, "size": 512}]],
                "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": HOSTILE_NAME},
            }
        )
    )  # fmt: skip
    assert_plain(snapshot.history[0].action)
    assert_plain(snapshot.conf)


@pytest.mark.parametrize(
    ("names", "sentence"),
    [([], ""), (["A"], "A"), (["A", "B"], "A and B"), (iter("ABC"), "A, B and C")],
)
def test_names_become_a_list_in_a_sentence(names, sentence):
    assert listed(names) == sentence


def test_a_choice_ends_in_or():
    assert listed(("hot", "cold"), "or") == "hot or cold"


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
