"""Every reason for a failed installation says what happened and what to do."""

from __future__ import annotations

import pytest

from gpu_studio.core.builds import trouble as troubles
from gpu_studio.core.builds.trouble import TroubleKind, format_size, unfit_pc

KINDS = TroubleKind
EACH = [
    (troubles.no_network("download.pytorch.org"), KINDS.NO_NETWORK, "download.pytorch.org"),
    (troubles.proxy_refused("proxy:8080"), KINDS.PROXY, "proxy:8080"),
    (troubles.untrusted("pypi.org"), KINDS.CERTIFICATE, "pypi.org"),
    (troubles.broken_line("pypi.org"), KINDS.BROKEN_LINE, "pypi.org"),
    (troubles.server_refused("pypi.org", 503), KINDS.SERVER, "503"),
    (troubles.no_wheel("torch==2", "3.11", "p", "The index"), KINDS.NO_WHEEL, "3.11"),
    (troubles.changed_file("a.whl", "1" * 64, "2" * 64), KINDS.CHANGED_FILE, "a.whl"),
    (troubles.larger_file("a.whl", 5), KINDS.CHANGED_FILE, "a.whl"),
    (troubles.other_file("a.whl", "1" * 64, "2" * 64), KINDS.CHANGED_FILE, "a.whl"),
    (troubles.untrusted_index("pypi.org", "it lies"), KINDS.INDEX, "pypi.org"),
    (troubles.broken_wheel("a.whl", "no zip"), KINDS.CHANGED_FILE, "a.whl"),
    (troubles.disk_full("D:", 2_700_000_000), KINDS.DISK_FULL, "2.7\u202fGB"),
    (troubles.disk_full("D:", None), KINDS.DISK_FULL, "some space"),
    (troubles.file_held(r"C:\x\c10.dll"), KINDS.FILE_HELD, " c10.dll"),
    (troubles.file_removed("/x/c10.dll"), KINDS.FILE_REMOVED, " c10.dll"),
    (troubles.no_write("/x"), KINDS.NO_WRITE, "/x"),
    (troubles.long_path("x" * 201, 80), KINDS.LONG_PATH, "201"),
    (troubles.missing_runtime("DLL load failed"), KINDS.NO_RUNTIME, "vc_redist.x64.exe"),
    (troubles.failed_check("cu126", "no kernel"), KINDS.CHECK, "cu126"),
    (troubles.build_in_use("cpu"), KINDS.IN_USE, "cpu"),
    (troubles.server_refused("pypi.org", 404), KINDS.SERVER, "newest GPU Studio"),
    (troubles.unusable_folder("/w", "sympy>=1", "pip said"), KINDS.FOLDER, " sympy>=1"),
    (troubles.unusable_folder("/w", "", "pip said"), KINDS.FOLDER, "another PC"),
    (troubles.folder_without_torch("/w", "PyTorch 2", "3.11", "p"), KINDS.FOLDER, "PyTorch 2"),
    (troubles.unresolved("pip said"), KINDS.PIP, "details"),
]


@pytest.mark.parametrize(("trouble", "kind", "fact"), EACH, ids=lambda v: getattr(v, "value", ""))
def test_a_trouble_names_the_fact_and_the_next_step(trouble, kind, fact):
    assert trouble.kind is kind
    assert fact in f"{trouble.sentence} {trouble.action}"
    assert trouble.sentence.endswith(".")
    assert len(trouble.action) > 20


@pytest.mark.parametrize(
    ("system", "machine", "is_64_bit", "word"),
    [
        ("Windows", "ARM64", True, "ARM"),
        ("Windows", "x86", False, "32-bit"),
        ("Windows", "AMD64", False, "32-bit"),
        ("Linux", "i686", True, "32-bit"),
        ("Linux", "riscv64", True, "riscv64"),
    ],
)
def test_a_pc_without_any_pytorch_is_refused_in_a_sentence(system, machine, is_64_bit, word):
    trouble = unfit_pc(system, machine, is_64_bit=is_64_bit)
    assert trouble is not None
    assert trouble.kind is KINDS.OTHER_PC
    assert word in trouble.sentence


@pytest.mark.parametrize(
    ("system", "machine"),
    [("Windows", "AMD64"), ("Linux", "x86_64"), ("Linux", "aarch64"), ("Darwin", "arm64")],
)
def test_usual_pcs_are_not_refused(system, machine):
    assert unfit_pc(system, machine) is None


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(12, "12\u202fbytes"), (122_300_000, "122\u202fMB"), (999_600_000, "1.0\u202fGB"),
     (2_650_000_000, "2.6\u202fGB"), (9_940_000_000, "9.9\u202fGB"), (9_960_000_000, "10\u202fGB"),
     (12_000_000_000, "12\u202fGB")],
)  # fmt: skip
def test_sizes_are_those_of_a_browser(size_bytes, text):
    assert format_size(size_bytes) == text
