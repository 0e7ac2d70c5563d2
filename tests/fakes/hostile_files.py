"""Records and recordings as a stranger might write them, to harm whoever opens them."""

from collections.abc import Iterator, Sequence

import msgspec

from gpu_studio.core.benchmark.kept_run import encode_kept, kept_of
from gpu_studio.core.check.check_file import encode_record
from gpu_studio.core.messages.message import Message
from gpu_studio.core.messages.race_messages import FrameReady, FramesOpened
from gpu_studio.core.protocol import encode, encode_all
from gpu_studio.core.race.contestant import Contestant
from tests.core.race.racing import CARD, CPU, over, samples
from tests.fakes.check_answers import check_record
from tests.fakes.recording_header import recording_header
from tests.fakes.run_answers import batch, started

SIDE = 512
"""The largest side of a frame: with 3 bytes a pixel, 768 KiB."""
# Turns a text around, hides in it, breaks its line, or is no character of any text.
UNSHOWABLE = (
    "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"
    "\u200b\u200c\u200d\u2060\u00ad\ufeff\u2028\u2029\x00\x01\x07\x08\x0b\x0c\r\n\t\x1b\x7f\x80"
    "\x85\x9b\x9f\U000e0001\U000e0041\ufff9"
)
HOSTILE_NAME = f"RTX{UNSHOWABLE}0904"


def hostile_records() -> Iterator[tuple[str, bytes]]:
    """Yield the name and the contents of files that pretend to be the record of a check."""
    record = encode_record(check_record())
    yield "nested.json", b'{"schema":1,"device":' + b"[" * 200_000
    yield "large.json", record[:-1] + b',"x":"' + b"x" * (2 << 20) + b'"}'
    yield "numbers.json", record.replace(b'"schema":1', b'"schema":1' + b"0" * 4000)
    yield "infinite.json", record.replace(b'"seconds":', b'"seconds":1e999,"x":')
    yield "surrogate.json", record.replace(b"GeForce", rb"\ud800GeForce")
    yield "no-utf8.json", record.replace(b"GeForce", b"\xff\xfeGeForce")
    named = msgspec.structs.replace(check_record().device, name=HOSTILE_NAME)
    yield "name.json", encode_record(msgspec.structs.replace(check_record(), device=named))
    yield "empty.json", b""


def race_recording(packed: Sequence[bytes], *, side: int = SIDE, name: str = "GT 1030") -> bytes:
    """Return the recording of a race of two, each with these frames.

    Args:
        packed: the frames, packed with zlib.
        side: the frames' width and height, as the recording claims.
        name: the name of the card.
    """
    parts = [encode_all([recording_header(device_name=name)])]
    for number, contestant in enumerate((CPU, CARD)):
        parts += [encode(event) for event in _events(f"{number}", contestant, packed, side, name)]
    return b"".join(parts)


def _events(
    run_id: str, contestant: Contestant, packed: Sequence[bytes], side: int, name: str
) -> Iterator[Message]:
    run = over(contestant, 0.01)
    request = msgspec.structs.replace(run.request, run_id=run_id)
    assert run.result is not None
    yield started(request, race=request.race, device_name=name)
    yield FramesOpened(run_id=run_id, width=side, height=side)
    for number, picture in enumerate(packed):
        share = (number + 1) / len(packed)
        yield FrameReady(
            run_id=run_id, number=number, elapsed_s=2 * share, steps=round(200 * share),
            measure=30 * share, progress=share, picture=picture,
        )  # fmt: skip
    yield batch(request, samples(0.01), 2.0, calls=1)
    yield msgspec.structs.replace(run.result, run_id=run_id, device_name=name)


def kept_run_of(name: str) -> bytes:
    return encode_kept(kept_of(over(CARD, 0.01), "2026-11-22T12:00:00+00:00", name))
