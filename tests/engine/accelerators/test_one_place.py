import ast
from pathlib import Path

import gpu_studio

PACKAGE = Path(gpu_studio.__file__).parent
MAY_NAME_CUDA = {
    "engine/accelerators/cuda.py",
    "engine/accelerators/rocm.py",
    # Kernels that NVIDIA's own compiler makes and its driver loads.
    "engine/nvrtc.py",
    "engine/workloads/custom_kernel.py",
    # What these pitfalls show is torch.cuda itself.
    "engine/pitfalls/old_amp_import.py",
    "engine/pitfalls/visible_devices_too_late.py",
}
# These compare the name of a build, and a word that a person types.
MAY_COMPARE = {
    "cli/argument_types.py",
    "core/builds/words.py",
    "core/devices/card_findings.py",
}


def nodes(*words):
    """Yield the nodes of the files that have one of the words, each with the file's name."""
    for path in PACKAGE.rglob("*.py"):
        source = path.read_text(encoding="utf-8")
        if any(word in source for word in words):
            for node in ast.walk(ast.parse(source)):
                yield path.relative_to(PACKAGE).as_posix(), node


def test_torch_cuda_is_named_in_one_file_and_where_it_is_the_subject():
    named = {
        name
        for name, node in nodes("cuda")
        if isinstance(node, ast.Attribute)
        and node.attr == "cuda"
        and ast.unparse(node) == "torch.cuda"
    }
    assert named == MAY_NAME_CUDA


def test_a_device_is_asked_and_not_compared():
    compared = {
        name
        for name, node in nodes('"cpu"', '"cuda"', "'cpu'", "'cuda'")
        if isinstance(node, ast.Compare)
        and isinstance(node.ops[0], (ast.Eq, ast.NotEq))
        and any(
            isinstance(side, ast.Constant) and side.value in ("cpu", "cuda")
            for side in (node.left, *node.comparators)
        )
    }
    assert compared <= MAY_COMPARE
