import pytest

from gpu_studio.core.builds.addresses import is_wheel_name, why_refused
from gpu_studio.core.builds.record import parsed_json

SECURE = "https://download.pytorch.org/whl/cpu/torch/"
PLAIN = "http://mirror.example/simple/"
OWN = "http://127.0.0.1:3141/simple/"


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://files.pythonhosted.org/a.whl", SECURE),
        ("http://mirror.example/a.whl", PLAIN),
        ("https://mirror.example/a.whl", PLAIN),
        ("http://localhost:3141/a.whl", OWN),
        ("file:///opt/wheels/a.whl", "file:///opt/simple/"),
    ],
)
def test_an_address_as_good_as_its_index_is_followed(url, named):
    assert why_refused(url, (named,)) == ""


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("http://download.pytorch.org/a.whl", SECURE),
        ("file:///etc/passwd", SECURE),
        ("http://mirror.example/a.whl", "file:///opt/simple/"),
        ("ftp://download.pytorch.org/a.whl", SECURE),
        ("http://[::1", PLAIN),
        *[
            (f"https://{host}/a.whl", SECURE)
            for host in ("127.1", "2130706433", "[::ffff:127.0.0.1]", "0.0.0.0", "x.localhost")
        ],
    ],
)  # fmt: skip
def test_a_weaker_address_is_refused(url, named):
    assert why_refused(url, (named,)) != ""


@pytest.mark.parametrize(
    "name",
    [
        "../a-1.0-py3-none-any.whl", "a/../../b-1.0-py3-none-any.whl", "C:a-1.0-py3-none-any.whl",
        "a\\b-1.0-py3-none-any.whl", "a-1.0-py3-none-any.whl\x00", "a-1.0.tar.gz", "",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_no_wheel(name):
    assert not is_wheel_name(name)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": Infinity}', "1e999", "NaN", "{"])
def test_hostile_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        parsed_json(text)
