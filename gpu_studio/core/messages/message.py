"""The base of all messages between window and engine."""

from __future__ import annotations

import re

import msgspec


def _tag(name: str) -> str:
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


class Message(msgspec.Struct, frozen=True, kw_only=True, tag=_tag):
    """The base of all requests and events; its tag is the class name in snake case."""
