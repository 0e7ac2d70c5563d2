import os

import pytest

from gpu_studio.hardware.display_adapters import is_off_bus
from gpu_studio.hardware.linux.signs import complaints, group_of, sandbox_of, signs_of
from gpu_studio.hardware.linux.sys_tree import SYSFS_VARIABLE
from gpu_studio.hardware.pci import DisplayAdapter

grp = pytest.importorskip("grp", reason="Windows has no groups of files")
pwd = pytest.importorskip("pwd")


def written(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize(
    ("files", "environment", "sandbox"),
    [
        ({}, {}, ""),
        ({".dockerenv": ""}, {}, "docker"),
        ({"run/.containerenv": 'name="x"'}, {"container": "podman"}, "podman"),
        ({".flatpak-info": "[Application]"}, {}, "flatpak"),
        ({".singularity.d/x": ""}, {}, "apptainer"),
        ({"run/systemd/container": "lxc\n"}, {}, "lxc"),
        ({}, {"container": "systemd-nspawn"}, "container"),
        ({".dockerenv": ""}, {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, "kubernetes"),
        ({"proc/self/attr/current": "snap.studio.studio (enforce)"}, {}, "snap"),
        # An editor that is a snap gives its variables to a shell that is not inside.
        ({"proc/self/attr/current": "snap.code.code (complain)"}, {"SNAP": "/snap/code/1"}, ""),
        ({"proc/self/attr/current": "unconfined"}, {}, ""),
    ],
)
def test_the_inside_of_a_container_is_known_by_its_marks(files, environment, sandbox, tmp_path):
    assert sandbox_of(written(tmp_path, files), environment) == sandbox


def test_files_modules_and_versions_are_read(tmp_path):
    written(tmp_path, {
        "dev/kfd": "", "dev/dri/renderD128": "", "dev/dri/card0": "", "dev/nvidia0": "",
        "sys/module/amdgpu/x": "", "sys/module/snd/x": "",
        "sys/devices/pci0000:00/0000:03:00.0/vendor": "0x1002",
        "proc/driver/nvidia/version":
            "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.82.09\nGCC version: 13",
        "usr/lib64/libze_intel_gpu.so.1": "",
    })  # fmt: skip
    node = tmp_path / "sys/class/drm/renderD128"
    node.mkdir(parents=True)
    (node / "device").symlink_to(tmp_path / "sys/devices/pci0000:00/0000:03:00.0")
    signs = signs_of(tmp_path, {})
    assert [file.name for file in signs.files] == ["/dev/kfd", "/dev/dri/renderD128",
                                                   "/dev/nvidia0"]  # fmt: skip
    assert [file.slot for file in signs.files] == ["", "00000000:03:00.0", ""]
    assert signs.modules == ("amdgpu",)
    assert signs.is_open_module
    assert signs.nvidia_version == "580.82.09"
    assert signs.has_level_zero


def test_what_the_kernel_could_load_and_was_told_not_to_is_read(tmp_path):
    written(tmp_path, {
        "usr/lib/modules/6.8.0/modules.dep":
            "kernel/drivers/gpu/drm/xe/xe.ko.zst: kernel/a.ko.zst\n"
            "updates/dkms/nvidia-uvm.ko: updates/dkms/nvidia.ko\nextra/fixed.ko:",
        "usr/lib/modules/6.8.0/modules.builtin": "kernel/drivers/gpu/drm/i915/i915.ko\n",
        "proc/cmdline": "quiet nomodeset modprobe.blacklist=nouveau,amdgpu root=xe\n",
    })  # fmt: skip
    signs = signs_of(tmp_path, {}, "6.8.0")
    assert signs.installed == ("nvidia_uvm", "xe", "i915")
    assert signs.options == ("nomodeset", "modprobe.blacklist=nouveau,amdgpu")
    assert signs_of(tmp_path, {}, "6.9.0").installed is None


def of_group(number, mode=0o100660):
    return os.stat_result((mode, 0, 0, 1, 0, number, 0, 0, 0, 0))


def test_a_closed_file_names_the_group_that_may_open_it(monkeypatch):
    members = []
    monkeypatch.setattr(
        grp, "getgrgid", lambda gid: grp.struct_group(("render", "x", gid, members))
    )
    assert group_of(of_group(993)) == ("render", False)
    assert group_of(of_group(993, 0o100600)) == ("", False)
    assert group_of(of_group(0)) == ("", False)
    members.append(pwd.getpwuid(os.getuid()).pw_name)
    assert group_of(of_group(993)) == ("render", True)

    def unknown(_gid):
        raise KeyError

    monkeypatch.setattr(grp, "getgrgid", unknown)
    assert group_of(of_group(993)) == ("993", False)


def test_only_complaints_of_graphics_drivers_are_kept_of_the_log(tmp_path):
    lines = ["4,1,2,-;NVRM: GPU 0000:03:00.0: RmInitAdapter failed! (0x62:0xffff:2477)",
             "6,2,3,-;usb 1-1: device descriptor read error", " SUBSYSTEM=usb",
             "6,3,4,-;amdgpu 0000:03:00.0: amdgpu: initializing kernel modesetting",
             "3,4,5,-;amdgpu 0000:03:00.0: firmware load failed with error -2",
             *(f"3,5,6,-;xe 0000:04:00.0: *ERROR* {number}" for number in range(40))]  # fmt: skip
    kept = complaints(written(tmp_path, {"kmsg": "\n".join(lines)}) / "kmsg")
    assert len(kept) == 12
    assert kept[-1].endswith("39")
    kept = complaints(written(tmp_path, {"kmsg": "\n".join(lines[:5])}) / "kmsg")
    assert [line.split()[0] for line in kept] == ["NVRM:", "amdgpu"]
    assert complaints(tmp_path / "none") == []


def test_a_log_that_nothing_writes_to_is_waited_for_by_nobody(tmp_path):
    os.mkfifo(tmp_path / "kmsg")
    assert complaints(tmp_path / "kmsg") == []


@pytest.mark.parametrize(
    ("config", "facts", "is_lost"),
    [(b"\xff" * 64, {}, True), (b"\xde\x10\x84\x22", {}, False), (b"", {"revision": 0xFF}, True),
     (b"", {"revision": 0xA1}, False), (b"\xff" * 64, {"is_asleep": True}, False)],
)  # fmt: skip
def test_a_slot_that_answers_with_ones_has_lost_its_card(
    config, facts, is_lost, tmp_path, monkeypatch
):
    (tmp_path / "class").mkdir()
    device = tmp_path / "devices"
    device.mkdir()
    (device / "config").write_bytes(config)
    monkeypatch.setenv(SYSFS_VARIABLE, str(tmp_path))
    adapter = DisplayAdapter(vendor_id=0x10DE, device_id=1, name="x", folder="devices", **facts)
    assert is_off_bus(adapter) is is_lost
    assert not is_off_bus(DisplayAdapter(vendor_id=0x10DE, device_id=1, name="x", revision=0xFF))
