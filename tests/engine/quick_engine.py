"""An engine with PyTorch whose runs are short: ``python -m tests.engine.quick_engine``."""

import os

from gpu_studio.engine import serve
from gpu_studio.engine.dispatcher import Dispatcher


class QuickDispatcher(Dispatcher):
    """Shortens its runs once PyTorch is there."""

    def load(self) -> None:
        super().load()
        from tests.engine.quick_runs import make_quick

        make_quick()


if __name__ == "__main__":
    serve.Dispatcher = QuickDispatcher  # type: ignore[misc]
    os._exit(serve.main())
