"""A child that speaks the engine's language from a plan, so that the client can be tested alone.

Run as ``python -m tests.engine.scripted_child``; the environment variable CHILD_PLAN says what it
does with the first request: answer, beat, die, abort, hang, garble, half, noise, fatal.
"""

import os
import sys
import threading
import time

from gpu_studio.core.failure import Failure, FailureKind
from gpu_studio.core.messages.engine_messages import EngineDescribed, Heartbeat, RequestFailed, Stop
from gpu_studio.core.messages.run_messages import RunPhaseChanged, RunStopped, RunWorkload
from gpu_studio.core.protocol import decode_request, encode


def beat(pipe) -> None:
    while True:
        time.sleep(0.1)
        pipe.write(encode(Heartbeat()))


def main() -> None:
    pipe = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    plan, beats = os.environ.get("CHILD_PLAN", "answer"), []
    for line in sys.stdin.buffer:
        request = decode_request(line)
        if isinstance(request, Stop):
            continue
        if plan == "die":
            sys.exit(3)
        if plan == "abort":
            os.abort()
        if plan == "garble":
            pipe.write(b"this is not an event\n")
            continue
        if plan == "half":
            pipe.write(encode(EngineDescribed(pid=os.getpid(), torch_version="0"))[:20])
            sys.exit(4)
        if plan == "noise":
            pipe.write(b'{"type":"\xff\xfe\x00"}\n')
            continue
        if plan == "beat" and not beats:
            beats.append(threading.Thread(target=beat, args=(pipe,), daemon=True))
            pipe.write(encode(Heartbeat()))
            beats[0].start()
        if plan == "fatal":
            failure = Failure(FailureKind.CUDA_ERROR, "sticky", fatal=True)
            pipe.write(encode(RequestFailed(failure=failure)))
            sys.exit(70)
        if isinstance(request, RunWorkload):
            pipe.write(encode(RunPhaseChanged(run_id=request.run_id, phase="timing")))
            if plan == "hang":
                threading.Event().wait()
            stop = decode_request(sys.stdin.buffer.readline())
            assert isinstance(stop, Stop)
            pipe.write(encode(RunStopped(run_id=request.run_id, samples=7)))
            continue
        visible = os.environ.get("CUDA_VISIBLE_DEVICES")
        pipe.write(
            encode(EngineDescribed(pid=os.getpid(), torch_version="0", visible_devices=visible))
        )


if __name__ == "__main__":
    main()
