"""What someone finds out in the first minute: question, clicks, seconds, and the window's answer.

``python -m tests.bench.first_minute``

The real window, with the real engine and sensors, is opened as a double-click does, asked five
questions, and read. Each question begins at the Devices tab. The first two need no click: their
seconds count from the start of the process; the others' from the first click. They end once the
answer stands in the window. The first PC is this one, which should have no card. The others have
soft cards (see docs/soft-cards.md), if ``.venv-soft-cu130`` is there: the way is real, but a soft
card's kernels compute nothing, so its times and its verdicts say nothing about a real card.

The last PC is this one, and another PC "attic" that it reaches by ssh: this one again, behind
Debian's sshd on a loopback port. A host that is typed counts as no click. Its seconds leave out
what a real network adds, and both PCs share the processor.

The seconds depend on the PC and on what else it does: the first line says how busy it was.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import psutil

from tests.bench.ratios import describe_machine
from tests.line.real_sshd import why_not

if TYPE_CHECKING:
    from collections.abc import Callable

    from PySide6.QtWidgets import QMainWindow

_ROOT = Path(__file__).resolve().parents[2]
_SOFT_PYTHON = _ROOT / ".venv-soft-cu130" / "bin" / "python"
_LONGEST_S = 120.0
_LONGEST_WINDOW_S = 600.0
_LONGEST_ANSWER = 76  # letters
_PCS: dict[str, tuple[str, ...]] = {
    "no card": (),
    "soft GT 1030, which cu130 has no code for": ("NVIDIA GeForce GT 1030:6.1:1996:3",),
    "soft RTX 3060": ("NVIDIA GeForce RTX 3060:8.6:12044:28",),
}
# What `tests.line.real_sshd` calls its server, and what the user calls it.
_HOST, _OTHER_PC = "loopback", "attic"


class Answer(NamedTuple):
    """How one question was answered."""

    question: str
    clicks: int
    seconds: float
    says: str


class Visitor:
    """Someone who asks the open window.

    Args:
        window: shown, at the Devices tab.
        begun_s: when the process started, of `time.perf_counter`.
    """

    def __init__(self, window: QMainWindow, begun_s: float) -> None:
        self._window, self._begun_s = window, begun_s
        self._clicks = 0

    def ask_all(self) -> list[Answer]:
        return [
            self._asked("What is in this PC?", None, self._devices),
            self._asked("Can PyTorch use it?", None, self._verdict),
            self._asked("Is my GPU faster than my CPU?", self._compare, self._comparison),
            self._asked("Where does the memory go?", self._open_memory, self._tank),
            self._asked("Why out of memory?", self._break_memory, self._outcome),
        ]

    def _asked(
        self, question: str, go: Callable[[], None] | None, look: Callable[[], str]
    ) -> Answer:
        from tests.driving.window import open_tab, wait_until

        begun_s, self._clicks = self._begun_s, 0
        if go is not None:
            open_tab(self._window, "Devices")
            begun_s = time.perf_counter()
            go()
        wait_until(look, _LONGEST_S)
        return Answer(question, self._clicks, time.perf_counter() - begun_s, look())

    def ask_of_another_pc(self, program: str) -> list[Answer]:
        """Ask about a PC that the window does not know yet, and compare it with this one."""
        from tests.driving.window import wait_until

        wait_until(self._verdict, _LONGEST_S)
        return [
            self._asked("Can I reach it?", lambda: self._try(program), self._found),
            self._asked("What is in it?", self._add, self._its_devices),
            self._asked("Which of the two is faster?", self._run_on_both, self._comparison),
        ]

    def _click(self, name: str) -> None:
        from tests.driving.window import click

        click(self._window, name)
        self._clicks += 1

    def _open(self, tab: str, page: str = "") -> None:
        from tests.driving.window import open_page, open_tab

        open_tab(self._window, tab)
        self._clicks += 1
        if page:
            open_page(self._window, f"{tab.lower()}.pages", page)
            self._clicks += 1

    def _devices(self) -> str:
        from tests.driving.window import entries

        return ", ".join(entries(self._window, "devices.table"))

    def _verdict(self) -> str:
        from gpu_studio.model.devices.devices import DevicesModel
        from tests.driving.window import text

        verdict = self._window.findChild(DevicesModel).verdict
        sentence = text(self._window, "devices.verdict.sentence")
        return sentence if verdict.code != "waiting" and sentence == verdict.sentence else ""

    def _try(self, program: str) -> None:
        from tests.driving.window import write

        self._click("devices.add_pc")
        write(self._window, "add_pc.host", _HOST)
        write(self._window, "add_pc.program", program)
        write(self._window, "add_pc.name", _OTHER_PC)
        self._click("add_pc.try")

    def _found(self) -> str:
        from PySide6.QtWidgets import QPushButton

        from tests.driving.window import find, text

        lines = [f"add_pc.result.{n}.{part}" for n in range(4) for part in ("short", "sentence")]
        is_usable = find(self._window, "add_pc.add", QPushButton).isEnabled()
        said = [text(self._window, line) for line in lines] if is_usable else []
        return " · ".join(filter(None, said))

    def _add(self) -> None:
        self._click("add_pc.add")

    def _its_devices(self) -> str:
        from PySide6.QtWidgets import QAbstractItemView

        from tests.driving.window import entries

        name = f"devices.pc.{_OTHER_PC}.table"
        there = self._window.findChild(QAbstractItemView, name)
        return ", ".join(entries(self._window, name)) if there is not None else ""

    def _run_on_both(self) -> None:
        self._open("Benchmark")
        self._click("benchmark.run")

    def _compare(self) -> None:
        self._click("devices.compare")

    def _comparison(self) -> str:
        from PySide6.QtWidgets import QPushButton

        from tests.driving.window import find, text

        if not find(self._window, "benchmark.run", QPushButton).isEnabled():
            return ""
        parts = ("benchmark.hero.headline", "benchmark.verdict")
        return " ".join(filter(None, (text(self._window, part) for part in parts)))

    def _open_memory(self) -> None:
        self._open("Memory")

    def _tank(self) -> str:
        from tests.driving.window import text

        return text(self._window, "memory.sentence")

    def _break_memory(self) -> None:
        self._open("Memory", "Break it")
        self._click("memory.oom.run")

    def _outcome(self) -> str:
        from PySide6.QtWidgets import QPushButton

        from tests.driving.window import find, text

        is_over = find(self._window, "memory.oom.run", QPushButton).isEnabled()
        return text(self._window, "memory.oom.outcome") if is_over else ""


def visit(ask: Callable[[Visitor], list[Answer]]) -> list[Answer]:
    """Open the window in this process, ask it, and close it."""
    begun_s = time.perf_counter() - (time.time() - psutil.Process().create_time())
    from gpu_studio.app import build_window
    from gpu_studio.model.settings import Settings
    from gpu_studio.ui.theme import styled_application

    application = styled_application(sys.argv[:1])
    window = build_window(settings=Settings(None), tabs_after_paint=True)
    window.show()
    try:
        return ask(Visitor(window, begun_s))
    finally:
        window.close()
        application.processEvents()


def visit_another_pc() -> list[Answer]:
    """Visit this PC, and ask it about another one behind a real sshd."""
    from tests.line.real_sshd import running_sshd

    with (
        tempfile.TemporaryDirectory() as folder,
        running_sshd(Path(folder)) as (pc, _, variables),
    ):
        os.environ.update(variables)
        return visit(lambda visitor: visitor.ask_of_another_pc(pc.program))


def answers_on(cards: tuple[str, ...]) -> list[Answer]:
    """Visit a PC with these soft cards, or this PC, in a process of its own."""
    return _answers("--here", cards)


def _answers(whom: str, cards: tuple[str, ...] = ()) -> list[Answer]:
    visit_here = ["-m", "tests.bench.first_minute", whom]
    command = [sys.executable, *visit_here]
    if cards:
        python = str(_SOFT_PYTHON)
        asked = [word for card in cards for word in ("--card", card)]
        command = [python, "-m", "tests.softcards.run", *asked, "--", python, *visit_here]
    done = subprocess.run(
        command, cwd=_ROOT, capture_output=True, text=True, timeout=_LONGEST_WINDOW_S
    )
    if done.returncode != 0:
        sys.exit(f"the window ended with {done.returncode}:\n{done.stderr}")
    return [Answer(*row) for row in json.loads(done.stdout.splitlines()[-1])]


def print_table(pc: str, answers: list[Answer]) -> None:
    print(f"\n{pc}\n")
    print("| question | clicks | seconds | the window says |")
    print("| --- | --- | --- | --- |")
    for question, clicks, seconds, says in answers:
        short = says if len(says) <= _LONGEST_ANSWER else f"{says[:_LONGEST_ANSWER]} …"
        print(f"| {question} | {clicks} | {seconds:.1f} | {short} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--other", action="store_true", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.here or arguments.other:
        answers = visit_another_pc() if arguments.other else visit(Visitor.ask_all)
        print(json.dumps(answers), flush=True)
        return
    print(describe_machine())
    for pc, cards in _PCS.items():
        if cards and not _SOFT_PYTHON.exists():
            print(f"\n{pc}: left out, there is no {_SOFT_PYTHON.parts[-3]}")
        else:
            print_table(pc, answers_on(cards))
    if why_not():
        print(f"\nanother PC: left out, {why_not()}")
    else:
        print_table("another PC over ssh", _answers("--other"))


if __name__ == "__main__":
    main()
