from __future__ import annotations

import pytest

from gpu_studio.core.messages.together_messages import ExchangeBackend
from gpu_studio.core.rendezvous import address_trouble, exchange_backends, trouble_here

_OWN = ("127.0.0.1", "192.168.1.5", "::1", "fd00::5", "fe80::5%eth0")
_NCCL_FIRST = (ExchangeBackend.NCCL, ExchangeBackend.GLOO)
_GLOO_ONLY = (ExchangeBackend.GLOO,)


@pytest.mark.parametrize("address", ["192.168.1.5", "fd00::5", "FD00:0::5"])
def test_an_address_of_this_pc_is_a_place_to_meet(address):
    assert trouble_here(address, _OWN) == ""


@pytest.mark.parametrize(
    ("address", "word"),
    [
        ("", "not a numeric address"),
        ("attic", "not a numeric address"),
        ("192.168.1.5:29500", "not a numeric address"),
        ("-oProxyCommand=x", "not a numeric address"),
        ("0.0.0.0", "every network"),
        ("::", "every network"),
        ("127.0.0.1", "Only this PC"),
        ("127.1.2.3", "Only this PC"),
        ("::1", "Only this PC"),
        ("224.0.0.1", "another address"),
        ("fe80::5", "another address"),
        ("192.168.1.6", "not an address of this PC"),
        ("::ffff:0.0.0.0", "not an address of this PC"),
    ],
)
def test_any_other_address_is_refused_with_the_reason(address, word):
    assert word in trouble_here(address, _OWN)


def test_a_sentence_shows_no_invisible_characters_and_no_long_text():
    reason = address_trouble("1\u202e" + "x" * 1000)
    assert reason.isprintable()
    assert len(reason) < 200


@pytest.mark.parametrize(
    ("kinds", "own", "is_tunneled", "backends"),
    [
        (("cuda", "cuda"), ("nccl", "gloo"), False, _NCCL_FIRST),
        (("cuda", "cuda"), ("nccl", "gloo"), True, _GLOO_ONLY),
        (("cuda", "cuda"), ("gloo",), False, _GLOO_ONLY),
        (("cuda", "cpu"), ("nccl", "gloo"), False, _GLOO_ONLY),
        (("cpu", "cpu"), ("gloo",), False, _GLOO_ONLY),
        (("xpu", "xpu"), ("xccl", "gloo"), False, _GLOO_ONLY),
    ],
)
def test_nccl_is_for_cards_that_meet_without_a_tunnel(kinds, own, is_tunneled, backends):
    assert exchange_backends(kinds, own, is_tunneled=is_tunneled) == backends
