"""The types that weights are kept in, and the bytes that they take.

A quantized type keeps its weights in blocks: so many weights in so many bytes, scales included.
"""

from __future__ import annotations

from typing import NamedTuple


class WeightType(NamedTuple):
    """A type: ``block`` weights take ``block_bytes`` bytes."""

    name: str
    block: int
    block_bytes: int

    @property
    def bits(self) -> float:
        """The bits that a weight takes, with its part of the block's scales."""
        return 8 * self.block_bytes / self.block

    def size_bytes(self, parameters: int) -> int:
        """Return the bytes of a tensor; its last block may be incomplete."""
        return -(-parameters // self.block) * self.block_bytes


SAFETENSORS_BITS = {
    "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6, "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8,
    "F8_E8M0": 8, "F8_E4M3FNUZ": 8, "F8_E5M2FNUZ": 8, "I16": 16, "U16": 16, "F16": 16, "BF16": 16,
    "I32": 32, "U32": 32, "F32": 32, "C64": 64, "F64": 64, "I64": 64, "U64": 64,
}  # fmt: skip
"""The bits of a number: ``Dtype`` of the library safetensors 0.8, safetensors/src/tensor.rs."""
SAFETENSORS_PACKED = frozenset({"BOOL", "U8", "I8", "I16", "U16", "I32", "U32", "I64", "U64"})
"""Types of which one number may hold several weights, as GPTQ, AWQ and bitsandbytes pack them."""

GGUF_TYPES = {
    number: WeightType(name, block, block_bytes)
    for number, name, block, block_bytes in (
        (0, "F32", 1, 4), (1, "F16", 1, 2), (2, "Q4_0", 32, 18), (3, "Q4_1", 32, 20),
        (6, "Q5_0", 32, 22), (7, "Q5_1", 32, 24), (8, "Q8_0", 32, 34), (10, "Q2_K", 256, 84),
        (11, "Q3_K", 256, 110), (12, "Q4_K", 256, 144), (13, "Q5_K", 256, 176),
        (14, "Q6_K", 256, 210), (15, "Q8_K", 256, 292), (16, "IQ2_XXS", 256, 66),
        (17, "IQ2_XS", 256, 74), (18, "IQ3_XXS", 256, 98), (19, "IQ1_S", 256, 50),
        (20, "IQ4_NL", 32, 18), (21, "IQ3_S", 256, 110), (22, "IQ2_S", 256, 82),
        (23, "IQ4_XS", 256, 136), (24, "I8", 1, 1), (25, "I16", 1, 2), (26, "I32", 1, 4),
        (27, "I64", 1, 8), (28, "F64", 1, 8), (29, "IQ1_M", 256, 56), (30, "BF16", 1, 2),
        (34, "TQ1_0", 256, 54), (35, "TQ2_0", 256, 66), (39, "MXFP4", 32, 17),
        (40, "NVFP4", 64, 36), (41, "Q1_0", 128, 18), (42, "Q2_0", 64, 18),
    )
}  # fmt: skip
"""The types of GGUF by their numbers: ``GGMLQuantizationType`` and ``GGML_QUANT_SIZES`` of
llama.cpp's gguf-py/gguf/constants.py, read in November 2026. Q8_1 is left out: no file has it."""

KEPT_TYPES = {
    one.name: one
    for one in (
        WeightType("float16", 1, 2),
        WeightType("bfloat16", 1, 2),
        WeightType("float32", 1, 4),
        WeightType("float64", 1, 8),
        WeightType("8-bit", 32, 34),
        WeightType("4-bit", 32, 18),
    )
}
"""The types to choose from. 8-bit and 4-bit are as GGUF's Q8_0 and Q4_0: 32 weights and a scale of
16 bits."""
