"""The built-in models that can be moved between devices, as window and terminal name them.

`engine/switcher/models.py` builds them; these descriptions need no PyTorch.
"""

from __future__ import annotations

from gpu_studio.core.messages.placement_messages import ModelDescription

LINEAR_10 = ModelDescription(
    name="linear_10",
    title="Linear(10, 10)",
    sentence="The smallest layer to test a device with: 110 parameters.",
)
LINEAR_1000 = ModelDescription(
    name="linear_1000",
    title="Linear(1000, 500)",
    sentence="One layer of half a million parameters with a 1000 × 1000 input.",
)
CONVNET = ModelDescription(
    name="convnet",
    title="Small conv net",
    sentence=(
        "Classifies 32 × 32 images. Its batch norms also have buffers: numbers that are "
        "not trained but have to move as well."
    ),
)
MLP = ModelDescription(
    name="mlp",
    title="Multi-layer perceptron",
    sentence="Three layers for handwritten digits: 784 inputs, 10 outputs.",
)
MODELS = (LINEAR_10, LINEAR_1000, CONVNET, MLP)
