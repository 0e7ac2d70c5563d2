import pytest

from gpu_studio.core.device_name import (
    DeviceName,
    address_at,
    address_there,
    is_cpu,
    pc_of,
    wait_line,
)
from gpu_studio.core.failure import StudioError
from gpu_studio.core.tensors import DTYPES, ITEM_BYTES, LARGEST_SIZE, check_size, parse_dtypes


@pytest.mark.parametrize(
    ("address", "kind", "index"),
    [("cpu", "cpu", None), ("cuda", "cuda", None), ("cuda:0", "cuda", 0), ("xpu:12", "xpu", 12)],
)
def test_a_name_has_two_parts_and_goes_back_to_its_text(address, kind, index):
    name = DeviceName.parse(address)
    assert (name.kind, name.index) == (kind, index)
    assert str(name) == address


@pytest.mark.parametrize(
    "text",
    ["", "cuda:", "cuda:-1", "cuda:x", "CPU", "cuda:12345", "cuda:0 ", "/cpu", "a/b/cpu", "a/"],
)
def test_another_text_names_no_device(text):
    with pytest.raises(ValueError, match="does not name a device"):
        DeviceName.parse(text)


def test_a_script_waits_for_a_card_with_its_own_part_of_pytorch():
    assert wait_line("cpu") == ""
    assert wait_line("cuda:1") == 'torch.cuda.synchronize("cuda:1")\n'
    assert wait_line("xpu:0") == 'torch.xpu.synchronize("xpu:0")\n'


@pytest.mark.parametrize("there", ["cpu", "cuda:0"])
def test_a_device_of_another_pc_has_its_name_in_front(there):
    name = DeviceName.parse(f"the attic/{there}")
    assert (name.pc, name.there) == ("the attic", there)
    assert str(name) == address_at("the attic", there) == f"the attic/{there}"
    assert (pc_of(str(name)), address_there(str(name))) == ("the attic", there)
    assert is_cpu(str(name)) == name.is_cpu == (there == "cpu")
    assert (pc_of(there), address_there(there), address_at("", there)) == ("", there, there)


def test_dtypes() -> None:
    assert parse_dtypes("float32,float16 float32") == ["float32", "float16"]
    assert set(ITEM_BYTES) == set(DTYPES)
    with pytest.raises(StudioError, match="“int8” is not a supported dtype"):
        parse_dtypes("float32,int8")
    with pytest.raises(StudioError, match="Choose a dtype"):
        parse_dtypes(" ")


@pytest.mark.parametrize("size", [-1, 0, LARGEST_SIZE + 1])
def test_a_size_out_of_range_is_named(size: int) -> None:
    with pytest.raises(StudioError, match=f"The size {size} is out of range. Use 1 to 1048576"):
        check_size(size)
