import json

import pytest

from gpu_studio.core.builds.package_page import (
    WheelLink,
    fits,
    is_wheel_name,
    links_in,
    wheel_for,
    whole_number,
    why_refused,
)
from gpu_studio.core.builds.record import parsed_json

SHA = "a" * 64
OTHER_SHA = "b" * 64
PAGE_URL = "https://download.pytorch.org/whl/cu126/torch/"
# The form of PyTorch's own pages: an absolute path, the plus sign escaped, two names of one thing.
HTML = f"""<!DOCTYPE html><html><body><h1>Links for torch</h1>
<a href="/whl/cu126/torch-2.12.0%2Bcu126-cp311-cp311-win_amd64.whl#sha256={OTHER_SHA}"
 >torch-2.12.0+cu126-cp311-cp311-win_amd64.whl</a><br/>
<a href="/whl/cu126/torch-2.13.0%2Bcu126-cp311-cp311-win_amd64.whl#sha256={SHA}"
 data-dist-info-metadata="sha256={OTHER_SHA}" data-core-metadata="sha256={OTHER_SHA}"
 >torch-2.13.0+cu126-cp311-cp311-win_amd64.whl</a><br/>
<a href="https://elsewhere.example/torch-2.13.0%2Bcu126-cp313-cp313t-manylinux_2_28_x86_64.whl"
 >free-threaded</a><br/>
<a href="torch-2.13.0%2Bcu126-cp313-cp313-manylinux_2_28_x86_64.whl" data-core-metadata="true"
 >torch</a><br/>
<a href="torch-2.13.0.tar.gz">a source</a><a name="nothing">no link</a>
</body></html>"""
WINDOWS_WHEEL = "torch-2.13.0+cu126-cp311-cp311-win_amd64.whl"


def test_an_html_page_reports_address_hash_and_metadata():
    links = links_in(HTML, PAGE_URL)
    assert [link.name.split("-")[1] for link in links] == [
        "2.12.0+cu126", "2.13.0+cu126", "2.13.0+cu126", "2.13.0+cu126",
    ]  # fmt: skip
    assert links[1] == WheelLink(
        WINDOWS_WHEEL,
        "https://download.pytorch.org/whl/cu126/torch-2.13.0%2Bcu126-cp311-cp311-win_amd64.whl",
        SHA,
        None,
        OTHER_SHA,
    )
    assert links[1].metadata_url.endswith("win_amd64.whl.metadata")
    assert links[0].metadata_sha256 is None
    assert links[2].sha256 == ""
    assert links[3].url.startswith(PAGE_URL)
    assert links[3].metadata_sha256 == ""  # a file without a hash


def test_a_json_page_reports_the_size():
    page = json.dumps({
        "files": [
            {"filename": "a-1.0.tar.gz", "url": "a-1.0.tar.gz", "hashes": {}},
            {
                "filename": "a-1.0-py3-none-any.whl",
                "url": "../../files/a-1.0-py3-none-any.whl#egg",
                "hashes": {"sha256": SHA},
                "size": 1234,
                "core-metadata": {"sha256": OTHER_SHA},
            },
            {"filename": "b-1.0-py3-none-any.whl", "url": "b", "core-metadata": False},
        ]
    })  # fmt: skip
    first, second = links_in(page, "https://pypi.org/simple/a/")
    assert first == WheelLink(
        "a-1.0-py3-none-any.whl",
        "https://pypi.org/files/a-1.0-py3-none-any.whl",
        SHA,
        1234,
        OTHER_SHA,
    )
    assert second.metadata_sha256 is None


@pytest.mark.parametrize("page", ['{"files": 3}', "{}", '{"files": [{}]}', "{broken"])
def test_a_page_that_only_looks_like_json_is_an_error(page):
    with pytest.raises(ValueError):  # noqa: PT011
        links_in(page, PAGE_URL)


@pytest.mark.parametrize(
    ("python", "platform_key", "wanted"),
    [
        ((3, 11), "windows-x86_64", WINDOWS_WHEEL),
        ((3, 13), "linux-x86_64", "torch-2.13.0+cu126-cp313-cp313-manylinux_2_28_x86_64.whl"),
        ((3, 12), "windows-x86_64", None),
        ((3, 11), "linux-x86_64", None),
        ((3, 11), "windows-aarch64", None),
    ],
)
def test_the_wheel_of_this_python_and_platform_is_found(python, platform_key, wanted):
    found = wheel_for(links_in(HTML, PAGE_URL), "2.13.0+cu126", python, platform_key)
    assert (found.name if found else None) == wanted


def test_another_version_is_never_taken():
    links = links_in(HTML, PAGE_URL)
    assert wheel_for(links, "2.13.0", (3, 11), "windows-x86_64") is None


@pytest.mark.parametrize(
    ("tags", "is_fit"),
    [
        ("py3-none-any", True),
        ("py2.py3-none-any", True),
        ("py3-none-manylinux_2_27_x86_64", True),
        ("cp311-cp311-manylinux2014_x86_64.manylinux_2_17_x86_64", True),
        ("cp310-cp310-manylinux_2_28_x86_64", False),
        ("cp311-cp311-musllinux_1_2_x86_64", False),
        ("cp311-cp311-manylinux_2_28_aarch64", False),
        ("py2-none-any", False),
    ],
)
def test_tags_are_compared_with_the_python(tags, is_fit):
    assert fits(tags, (3, 11), "linux-x86_64") is is_fit


SECURE = "https://download.pytorch.org/whl/cpu/torch/"
PLAIN = "http://mirror.example/simple/"
OWN = "http://127.0.0.1:3141/simple/"
NAME = "a-1.0-py3-none-any.whl"


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
        ("file:///etc/passwd", PLAIN),
        ("http://mirror.example/a.whl", "file:///opt/simple/"),
        ("ftp://download.pytorch.org/a.whl", SECURE),
        ("data:text/plain,x", PLAIN),
        ("https:///a.whl", SECURE),
        ("http://[::1", PLAIN),
        ("https://x:99999/a.whl", SECURE),
        *[
            (f"https://{host}/a.whl", SECURE)
            for host in (
                "127.0.0.1", "127.1", "2130706433", "0x7f.1", "[::1]", "[::ffff:127.0.0.1]",
                "0.0.0.0", "LocalHost", "localhost.", "x.localhost",
            )
        ],
    ],
)  # fmt: skip
def test_a_weaker_address_is_refused(url, named):
    assert why_refused(url, (named,)) != ""


@pytest.mark.parametrize(
    "name",
    [
        "../a-1.0-py3-none-any.whl", "a/../../b-1.0-py3-none-any.whl", "C:a-1.0-py3-none-any.whl",
        "a\\b-1.0-py3-none-any.whl", "a-1.0-py3-none-any.whl\x00", "a.whl", "a-1.0.tar.gz",
        f"{'a' * 300}-1.0-py3-none-any.whl", "a-1.0-py3-none-any .whl", "",
    ],
)  # fmt: skip
def test_a_name_that_leads_elsewhere_is_no_wheel(name):
    assert not is_wheel_name(name)
    page = json.dumps({"files": [{"filename": name, "url": NAME}]})
    assert links_in(page, SECURE) == ()


@pytest.mark.parametrize(
    ("text", "number"),
    [("12", 12), ("0", 0), ("²", None), ("١٢", None), ("-1", None), ("9" * 5000, None),
     ("", None), ("1e3", None), (None, None)],
)  # fmt: skip
def test_a_number_is_a_few_ascii_digits(text, number):
    assert whole_number(text) == number


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a": Infinity}', "1e999", "NaN", "{"])
def test_hostile_json_is_a_value_error(text):
    with pytest.raises(ValueError, match=r".+"):
        parsed_json(text)


@pytest.mark.parametrize(
    "page",
    [
        f'<a href="http://[::1/{NAME}">x</a><a href="{NAME}">y</a>',
        f'<base href="http://[::1"><a href="{NAME}">y</a>',
        f'{{"files": [{{"filename": "{NAME}", "url": "http://[::1"}},'
        f' {{"filename": "{NAME}", "url": "{NAME}", "size": -3, "hashes": {{"sha256": "x"}}}}]}}',
    ],
)
def test_a_link_without_an_address_costs_only_itself(page):
    (link,) = links_in(page, SECURE)
    assert (link.url, link.sha256, link.size_bytes) == (SECURE + NAME, "", None)
