"""The engine's process on a card that Python stands in for: STAND_IN is its maker.

Set `gpu_studio.engine.client._MODULE` to this module's name, and the window has such a card.
"""

import os

from gpu_studio.engine import serve
from tests.engine.accelerators.stand_in import stand_in

if __name__ == "__main__":
    stand_in(os.environ["STAND_IN"])
    os._exit(serve.main())
