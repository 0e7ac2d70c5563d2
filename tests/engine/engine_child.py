"""An engine's real child process, spoken to over its pipes as the window does."""

import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from gpu_studio.core.messages.engine_messages import Heartbeat
from gpu_studio.core.messages.message import Event, Request
from gpu_studio.core.protocol import decode_line, encode
from tests.patience import PATIENCE_S


class EngineChild:
    """An engine's process.

    Args:
        log: where its standard error goes.
        prelude: Python that it runs first.
        env: its whole environment; None is this process's own.
    """

    def __init__(self, log: Path, prelude: str = "", env: Mapping[str, str] | None = None) -> None:
        code = f"{prelude}\nimport os\nfrom gpu_studio.engine.serve import main\nos._exit(main())"
        command = ["-c", code] if prelude else ["-m", "gpu_studio.engine.serve"]
        self.log = log
        with log.open("wb") as stderr:
            self.process = subprocess.Popen(
                [sys.executable, *command],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=env,
            )

    def send(self, line: bytes) -> None:
        self.process.stdin.write(line)
        self.process.stdin.flush()

    def receive(self) -> Event:
        while True:
            line = self.process.stdout.readline()
            assert line, f"the engine ended: {self.log.read_text()[-2000:]}"
            result = decode_line(line)
            if not isinstance(result, Heartbeat):
                return result

    def ask(
        self, request: Request, on_event: Callable[[Event], None] = lambda event: None
    ) -> list[Event]:
        self.send(encode(request))
        events: list[Event] = []
        while not events or not events[-1].ends(request):
            events.append(self.receive())
            on_event(events[-1])
        return events

    def end(self) -> int:
        self.process.stdin.close()
        return self.wait()

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()

    def wait(self) -> int:
        try:
            return self.process.wait(PATIENCE_S)
        finally:
            self.process.kill()
            self.process.wait()
            self.process.stdout.close()
