"""A Python process on a soft PC that runs one snippet after another, as a test asks.

Importing PyTorch takes a second, and a fault has to be planted between two calls of the same
process: so the process stays, and answers each snippet with the value of its last expression.
"""

from __future__ import annotations

import ast
import json
import os
import select
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from types import TracebackType

    from tests.softcards.cards import SoftPc


class ChildEndedError(Exception):
    """The process ended; `returncode` is negative for a signal."""

    def __init__(self, returncode: int) -> None:
        super().__init__(f"the child ended with {returncode}")
        self.returncode = returncode


class NoAnswerError(Exception):
    """The process did not answer in time."""


class RaisedError(Exception):
    """What a snippet raised: its class, text and, on CUDA and NVML errors, the code."""

    def __init__(self, kind: str, text: str, code: int | None) -> None:
        super().__init__(f"{kind}: {text}")
        self.kind = kind
        self.text = text
        self.code = code


class Child:
    """A Python process on a soft PC, with `torch` imported and `warned` holding its warnings."""

    def __init__(self, pc: SoftPc, env: Mapping[str, str] | None = None) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__],
            env={**pc.env, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **(env or {})},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )
        self.pid = self._process.pid
        self._rest = b""

    def __enter__(self) -> Child:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def kill(self) -> None:
        """Ends the process at once, as the system would."""
        self._process.kill()
        self._process.communicate()

    def ask(self, code: str) -> None:
        """Sends a snippet without waiting for its answer."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(textwrap.dedent(code)).encode() + b"\n")
        self._process.stdin.flush()

    def answer(self, timeout_s: float = 60) -> Any:
        """The value of the last snippet's last expression.

        Raises:
            RaisedError: the snippet raised.
            ChildEndedError: the process ended.
            NoAnswerError: it did not answer in time.
        """
        assert self._process.stdout is not None
        deadline = time.monotonic() + timeout_s
        while b"\n" not in self._rest:
            ready, _, _ = select.select(
                [self._process.stdout], [], [], max(0.0, deadline - time.monotonic())
            )
            if not ready:
                raise NoAnswerError
            more = os.read(self._process.stdout.fileno(), 1 << 16)
            if not more:
                raise ChildEndedError(self._process.wait())
            self._rest += more
        line, self._rest = self._rest.split(b"\n", 1)
        found = json.loads(line)
        if "raised" in found:
            raise RaisedError(**found["raised"])
        return found["value"]

    def run(self, code: str, timeout_s: float = 60) -> Any:
        """Runs a snippet and returns the value of its last expression; see `answer`."""
        self.ask(code)
        return self.answer(timeout_s)


def _evaluated(code: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, "<snippet>", "exec"), names)
    if last is None:
        return None
    return eval(compile(ast.Expression(last.value), "<snippet>", "eval"), names)


def _serve() -> None:
    import warnings

    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    names: dict[str, Any] = {}
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        import torch

        names.update(torch=torch, warned=warned, MIB=1 << 20)
        for line in sys.stdin:
            try:
                answer = {"value": _evaluated(json.loads(line), names)}
            except Exception as error:
                code = getattr(error, "error_code", getattr(error, "value", None))
                raised = {"kind": type(error).__name__, "text": str(error), "code": code}
                answer = {"raised": raised}
            answers.write(json.dumps(answer, default=str) + "\n")


if __name__ == "__main__":
    _serve()
