"""What another PC's lines may contain, and the names that its devices have here: one place.

What comes from there is as untrusted as a file. msgspec has checked types and ranges; here are the
sizes, the texts and the names. Nothing from there is a path, a command or a label of a recording
here: those fields are emptied. Times and counts stay as they are.
"""

from __future__ import annotations

from functools import cache, partial
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gpu_studio.core.device_name import DeviceName, address_at, address_there, pc_of
from gpu_studio.core.messages.engine_messages import EngineEnded, Heartbeat
from gpu_studio.core.messages.race_messages import FrameReady
from gpu_studio.core.messages.run_messages import SamplesMeasured
from gpu_studio.core.packed_frame import CHANNELS, LARGEST_FRAME_SIDE
from gpu_studio.core.texts import plain_text

if TYPE_CHECKING:
    from collections.abc import Callable

    from gpu_studio.core.devices.devices import Inventory, SensorEvent
    from gpu_studio.core.messages.message import Event, Request

MOST_FRAME_BYTES = LARGEST_FRAME_SIDE * LARGEST_FRAME_SIDE * CHANNELS * 2
_LONGEST_TEXT = 100_000
_MOST_ENTRIES = 200_000
_MOST_NAMES = 1000
_MOST_DEVICES = 128
_ADDRESSES = frozenset(
    ("device", "address", "device_before", "device_after", "output_device", "result_device")
)
_OF_SEVERAL_LINES = frozenset(("output", "error", "error_text", "explanation", "traceback_text"))
_SNIPPET = "snippet"
_Struct = TypeVar("_Struct", bound=msgspec.Struct)


class UntrustedError(ValueError):
    """What came from another PC is larger than anything that a program of ours sends."""


def request_there(request: Request, pc: str) -> Request:
    """Return a request as another PC gets it: with its own names for its devices, without paths.

    The device of a third PC keeps that PC's name, so that the engine there refuses it.
    """

    def there(text: str, name: str) -> str:
        is_there = name in _ADDRESSES and pc_of(text) == pc
        return address_there(text) if is_there else text

    return msgspec.convert(_changed(msgspec.to_builtins(request), "", there), type(request))


def event_here(event: Event | Heartbeat, pc: str) -> Event | Heartbeat:
    """Return an event of another PC's engine with the names that its devices have here.

    Raises:
        UntrustedError: a text, a list or a picture in it is too large.
    """
    match event:
        case Heartbeat():
            return event
        case SamplesMeasured():  # the most frequent one, and nothing but numbers
            if len(event.samples_s) > _MOST_ENTRIES:
                raise UntrustedError
            return event
        case FrameReady():
            if len(event.picture or b"") > MOST_FRAME_BYTES:
                raise UntrustedError
            return event
    here = _with_names(event, pc)
    return msgspec.structs.replace(here, stopped=False) if isinstance(here, EngineEnded) else here


def sensors_here(event: SensorEvent, pc: str) -> SensorEvent:
    """Return an event of another PC's sensor reader, as `event_here`.

    The identity of a card without a UUID begins with the PC's name here, in both kinds of events.
    """
    from gpu_studio.core.devices.devices import Inventory

    here = _with_names(event, pc)
    if isinstance(here, Inventory):
        _check_devices(here)
    return here


def _check_devices(inventory: Inventory) -> None:
    devices = inventory.devices
    if not devices or not devices[0].is_cpu or len(devices) > _MOST_DEVICES:
        raise UntrustedError("an inventory that no PC has")
    for names in ([one.identity for one in devices], [one.address for one in devices]):
        known = [name for name in names if name]
        if len(set(known)) < len(known):
            raise UntrustedError("two devices with one name")


def _with_names(message: _Struct, pc: str) -> _Struct:
    values = msgspec.to_builtins(message, builtin_types=(bytes,))
    here = _changed(values, "", partial(_text_here, pc=pc))
    try:
        return msgspec.convert(here, type(message), builtin_types=(bytes,))
    except msgspec.ValidationError as error:
        raise UntrustedError(str(error)) from error


def _changed(value: Any, name: str, change: Callable[[str, str], str]) -> Any:
    """Return a value with each of its texts changed; `change` gets a text and its field's name."""
    if isinstance(value, str):
        return change(value, name)
    if isinstance(value, dict):
        if len(value) > _MOST_NAMES:
            raise UntrustedError
        return {
            # Set, it would say that a result is only recorded.
            change(key, ""): None if key == "recording" else _changed(entry, key, change)
            for key, entry in value.items()
        }  # fmt: skip
    if isinstance(value, (list, tuple)):
        if len(value) > _MOST_ENTRIES:
            raise UntrustedError
        return [_changed(entry, name, change) for entry in value]
    return value


def _text_here(text: str, name: str, pc: str) -> str:
    if len(text) > _LONGEST_TEXT:
        raise UntrustedError
    if name == "pc":  # of each device, and of the engine
        return pc
    if name in _ADDRESSES and _is_address(text):
        return address_at(pc, text)
    if not name.endswith(_SNIPPET) and name not in _OF_SEVERAL_LINES:
        return plain_text(text)
    lines = "\n".join(plain_text(line) for line in text.split("\n"))
    return f"# For {pc}, where it came from.\n{lines}" if lines and _SNIPPET in name else lines


@cache
def _is_address(text: str) -> bool:
    try:
        return not DeviceName.parse(text).pc
    except ValueError:
        return False
