"""What was asked of an engine and is not yet under way."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from gpu_studio.core.protocol import DescribeEngine

if TYPE_CHECKING:
    from gpu_studio.core.protocol import Request


class WaitingRequests:
    """Requests in the order in which they are served. Equal ones are told apart."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()

    def __bool__(self) -> bool:
        """Return whether any waits."""
        return bool(self._requests)

    def add(self, request: Request) -> None:
        """Put a request behind all others."""
        self._requests.append(request)

    def ask_first(self, question: DescribeEngine) -> None:
        """Put the first question to a fresh engine before all others, and no such question more."""
        others = (one for one in self._requests if not isinstance(one, DescribeEngine))
        self._requests = deque((question, *others))

    def take(self) -> Request:
        """Return the next one, which waits no more."""
        return self._requests.popleft()

    def withdraw(self, request: Request) -> bool:
        """Let a request wait no more; return whether it did."""
        others = [one for one in self._requests if one is not request]  # equal is not the same
        is_there = len(others) < len(self._requests)
        self._requests = deque(others)
        return is_there

    def take_all(self) -> list[Request]:
        """Return all that wait; none does afterwards."""
        requests = list(self._requests)
        self._requests.clear()
        return requests
