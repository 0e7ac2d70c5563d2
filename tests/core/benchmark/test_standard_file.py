import math
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpu_studio.core.benchmark.standard_record import (
    CHUNK,
    StandardFolder,
    encode_standard,
    has_standard,
    read_standard,
    standard_in,
)
from gpu_studio.core.failure import StudioError
from gpu_studio.core.png_chunks import PNG_HEAD
from tests.core.benchmark.standard_runs import paced_device, standard_run

RUN = standard_run(paced_device(), paced_device("Ryzen 7 5700G", 0.1, device="cpu"))
JSON = encode_standard(RUN)


def chunk(kind: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def png(*chunks: bytes) -> bytes:
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0))
    pixel = chunk(b"IDAT", zlib.compress(b"\0\0"))
    return b"".join((PNG_HEAD, head, *chunks, pixel, chunk(b"IEND", b"")))


KEY = CHUNK.encode()
FORMS: dict[str, bytes] = {
    "tEXt": png(chunk(b"tEXt", KEY + b"\0" + JSON)),
    "zTXt": png(chunk(b"zTXt", KEY + b"\0\0" + zlib.compress(JSON))),
    "iTXt": png(chunk(b"iTXt", KEY + b"\0\0\0\0\0" + JSON)),
    "JSON": JSON,
    "JSON, indented": msgspec.json.format(JSON),
    "recording": b'{"type":"recording_header"}\n' + b'{"type":"x"}\n' * 1000
    + b'{"type":"standard_finished","run":' + JSON + b"}\n",
    "PowerShell": (b'{"type":"standard_finished","run":' + JSON + b"}\r\n").decode().encode(
        "utf-16"
    ),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_a_file_is_what_its_contents_are(form: str, tmp_path: Path) -> None:
    for name in ("a.txt", "b.png", "c"):
        path = tmp_path / name
        path.write_bytes(FORMS[form])
        assert has_standard(path)
        assert read_standard(path) == RUN


@pytest.mark.parametrize(
    "content",
    [png(), b"\xff\xd8\xff\xe0 a photo", b"RIFF\0\0\0\0WEBP", b"\0\0\0 ftypavif"],
    ids=["PNG", "JPEG", "WebP", "AVIF"],
)
def test_a_picture_without_its_data_names_the_files_that_keep_it(
    content: bytes, tmp_path: Path
) -> None:
    path = tmp_path / "from chat.png"
    path.write_bytes(content)
    assert not has_standard(path)
    with pytest.raises(StudioError, match=r"from chat.png has lost its data.*JSON"):
        read_standard(path)


def changed(**changes: Any) -> Callable[[dict[str, Any]], None]:
    return lambda run: run["devices"][0]["figures"][0]["result"].update(changes)


def bare(text: str) -> bytes:
    """Return a record with a number that only Python's JSON knows."""
    return JSON.replace(b'"samples":40', b'"samples":' + text.encode())


def record(change: Callable[[dict[str, Any]], object]) -> bytes:
    run = msgspec.json.decode(JSON)
    change(run)
    return msgspec.json.encode(run)


# What takes long to make is made by the test: every worker collects the names of all tests.
HOSTILE: dict[str, bytes | Callable[[], bytes]] = {
    "cut off": JSON[:-300],
    "half": JSON[: len(JSON) // 2],
    "NaN": bare("NaN"),
    "infinite": bare("1e999"),
    "a count of 2**64": bare(str(1 << 64)),
    "deep": b'{"schema":1,"standard":1,"devices":' + b"[" * 300_000,
    "a bomb": lambda: png(chunk(b"zTXt", KEY + b"\0\0" + zlib.compress(bytes(200 << 20)))),
    "a damaged text": png(chunk(b"zTXt", KEY + b"\0\0" + b"not deflated")),
    "a chunk that claims 2 GiB": PNG_HEAD + b"\x7f\xff\xff\xfftEXt" + KEY + b"\0{",
    "10,000 devices": lambda: record(lambda run: run.update(devices=run["devices"] * 5000)),
    "an interval that is turned around": record(changed(ci95_s=[2.0, 1e-9])),
    "too large": lambda: record(lambda run: run.update(pc_name="x" * (2 << 20))),
    "no bytes": b"",
    "zeros": bytes(100_000),
    "a recording cut off": FORMS["recording"][:-100],
    "an array": b"[]",
    "a text": b'"standard"',
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_a_bad_file_is_refused_in_one_plain_sentence(
    content: bytes | Callable[[], bytes], tmp_path: Path
) -> None:
    path = tmp_path / "bad\u202egnp.dat"
    path.write_bytes(content() if callable(content) else content)
    has_standard(path)
    with pytest.raises(StudioError) as refused:
        read_standard(path)
    sentence = str(refused.value)
    assert sentence.isprintable()
    assert sentence.endswith(".")
    assert 20 < len(sentence) < 400


def test_the_newest_run_of_a_folder_is_shown_and_a_damaged_one_left_out(tmp_path: Path) -> None:
    folder = StandardFolder(tmp_path)
    older = msgspec.structs.replace(RUN, made_at="2026-11-21T14:40:00.000+01:00")
    for run in (RUN, older):
        folder.keep(run)
    (tmp_path / "99.json").write_bytes(JSON[:-100])
    assert folder.newest() == RUN


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(FORMS)), st.data())
def test_no_change_of_a_byte_does_more_than_refuse(form: str, data: st.DataObject) -> None:
    content = bytearray(FORMS[form])
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    try:
        text = standard_in(bytes(content))
    except StudioError:
        return
    assert text is None or math.isfinite(len(text))
