"""The lessons that the scripted engines of these tests know."""

import msgspec

from gpu_studio.core.messages.run_messages import WorkloadOption
from tests.fakes.descriptions import elementwise
from tests.fakes.switching_answers import pitfall

PITFALLS = (
    pitfall("mixed_devices", remark="The book is wrong."),
    pitfall("visible_devices_too_late"),
    pitfall("model_on_cpu"),
)
_WAY = WorkloadOption(name="way", title="The batches come", sentence="How.", values=("a", "b"))
WORKLOADS = tuple(
    msgspec.structs.replace(elementwise(), name=name, options=(_WAY,))
    for name in ("dataloader", "train_step", "conv2d")
)
