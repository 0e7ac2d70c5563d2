"""The protocol between window and engine: one JSON object per line.

Recordings have the same format, and ``gpu-studio bench --json`` prints it. The answer to a request
is any number of events; exactly the last one `Event.ends` it. The messages are the classes of
`core.messages`; this module reads and writes them.
"""

from __future__ import annotations

import hashlib
from functools import cache, reduce
from operator import or_
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from gpu_studio.core import telemetry
from gpu_studio.core.devices import devices
from gpu_studio.core.messages import (
    check_messages,
    engine_messages,
    memory_messages,
    message,
    pitfall_messages,
    placement_messages,
    race_messages,
    run_messages,
)
from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.core.messages.message import Event, Message, Request
from gpu_studio.core.messages.run_messages import in_parts

if TYPE_CHECKING:
    from collections.abc import Iterable


# The messages that the decoders know are those of the files imported here.
FILES = (
    check_messages,
    engine_messages,
    message,
    memory_messages,
    pitfall_messages,
    placement_messages,
    race_messages,
    run_messages,
)


def messages_of(kind: type[Message]) -> tuple[type[Message], ...]:
    """Return the messages of a kind: the classes that nothing is derived from."""
    below = kind.__subclasses__()
    return tuple(one for child in below for one in messages_of(child)) if below else (kind,)


_encoder = msgspec.json.Encoder()


# The window reads nothing before its first paint, and each decoder takes milliseconds to make.
@cache
def _decoder(*kinds: type[Message]) -> msgspec.json.Decoder[Any]:
    return msgspec.json.Decoder(_one_of(*kinds))


def _one_of(*kinds: type[Message]) -> Any:
    return reduce(or_, (message for kind in kinds for message in messages_of(kind)))


def encode(message: Message) -> bytes:
    """Return a message as one line of JSON, including the newline."""
    return _encoder.encode(message) + b"\n"


def decode_request(line: bytes) -> Request:
    """Return the request in a line; raise `msgspec.DecodeError` for anything else."""
    request: Request = _decoder(Request).decode(line)
    return request


def decode_event(line: bytes) -> Event:
    """Return the event in a line; raise `msgspec.DecodeError` for anything else."""
    event: Event = _decoder(Event).decode(line)
    return event


def decode_recorded(line: bytes) -> Event:
    """Return the event in a line of a recording, which an older version may have written."""
    try:
        return decode_event(line)
    except msgspec.ValidationError:
        older = in_parts(msgspec.json.decode(line))
        event: Event = msgspec.convert(older, _one_of(Event))
        return event


def decode_line(line: bytes) -> Event | Heartbeat:
    """Return the event or heartbeat in a line; raise as `decode_event`."""
    said: Event | Heartbeat = _decoder(Event, Heartbeat).decode(line)
    return said


def encode_all(messages: Iterable[Message]) -> bytes:
    """Return messages as lines of JSON."""
    return b"".join(encode(message) for message in messages)


_LINE = 1
"""The next number for a change of what a message means and of how the line works."""


@cache
def protocol_version() -> str:
    """Return what both ends of a line must have alike: where their messages are written the same.

    Two programs with the same number may differ, as checkouts do; and a message has no readings
    and devices of its own, but those of `core`.
    """
    files = (*FILES, devices, telemetry)
    texts = [Path(str(one.__file__)).read_text(encoding="utf-8") for one in files]
    return f"{_LINE}-{hashlib.sha256(''.join(texts).encode()).hexdigest()[:16]}"
