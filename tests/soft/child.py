"""A Python process on a soft PC that runs one snippet after another, as a test asks.

A fault has to be planted between two calls of the same process: so the process stays, and answers
each snippet with the value of its last expression. Importing PyTorch takes a second: so processes
are forked from one that has imported it and touched no card.
"""

from __future__ import annotations

import ast
import contextlib
import json
import multiprocessing
import os
import textwrap
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.connection import Connection
    from types import TracebackType

    from tests.softcards.cards import SoftPc


class ChildEndedError(Exception):
    """The process ended; `returncode` is negative for a signal."""

    def __init__(self, returncode: int | None) -> None:
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
        whole = {**pc.env, **(env or {})}
        # PyTorch reads its own variables at its first call of a card, which is in the child.
        context: Any = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(["torch"])
        self._pipe, far_end = context.Pipe()
        self._process = context.Process(target=_serve, args=(far_end, whole))
        with _environment(whole):
            self._process.start()
        far_end.close()
        assert self._process.pid is not None
        self.pid = self._process.pid

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
        self._process.join()
        self._pipe.close()

    def ask(self, code: str) -> None:
        """Sends a snippet without waiting for its answer."""
        self._pipe.send(textwrap.dedent(code))

    def answer(self, timeout_s: float = 240) -> Any:
        """The value of the last snippet's last expression.

        Raises:
            RaisedError: the snippet raised.
            ChildEndedError: the process ended.
            NoAnswerError: it did not answer in time.
        """
        if not self._pipe.poll(timeout_s):
            raise NoAnswerError
        try:
            found = json.loads(self._pipe.recv())
        except EOFError as ended:
            self._process.join()
            raise ChildEndedError(self._process.exitcode) from ended
        if "raised" in found:
            raise RaisedError(**found["raised"])
        return found["value"]

    def run(self, code: str, timeout_s: float = 240) -> Any:
        """Runs a snippet and returns the value of its last expression; see `answer`."""
        self.ask(code)
        return self.answer(timeout_s)


@contextlib.contextmanager
def _environment(env: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(env)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _evaluated(code: str, names: dict[str, Any]) -> Any:
    tree = ast.parse(code)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, ast.Expr):
        exec(compile(tree, "<snippet>", "exec"), names)
        return None
    tree.body.pop()
    exec(compile(tree, "<snippet>", "exec"), names)
    return eval(compile(ast.Expression(last.value), "<snippet>", "eval"), names)


def _serve(pipe: Connection, env: dict[str, str]) -> None:
    import warnings

    os.environ.clear()
    os.environ.update(env)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        import torch

        names: dict[str, Any] = {"torch": torch, "warned": warned, "MIB": 1 << 20}
        with contextlib.suppress(EOFError):
            while True:
                pipe.send(_answer(pipe.recv(), names))


def _answer(code: str, names: dict[str, Any]) -> str:
    try:
        answer = {"value": _evaluated(code, names)}
    except Exception as error:
        number = getattr(error, "error_code", getattr(error, "value", None))
        answer = {"raised": {"kind": type(error).__name__, "text": str(error), "code": number}}
    return json.dumps(answer, default=str)
