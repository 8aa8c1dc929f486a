"""Which addresses are public."""

from __future__ import annotations

import pytest

from organism.model.addresses import is_public

PUBLIC = (
    "1.1.1.1",
    "8.8.8.8",
    "93.184.216.34",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.255.255",
    "172.32.0.0",
    "192.0.1.1",
    "198.17.255.255",
    "198.20.0.0",
    "223.255.255.255",
    "2606:4700:4700::1111",
    "2a00:1450:4001:81b::200e",
    "64:ff9b::8.8.8.8",  # NAT64 of a public address
    "2002:808:808::1",  # 6to4 of a public address
)
NOT_PUBLIC = (
    "0.0.0.0",  # noqa: S104 - nothing is bound to it
    "10.0.0.1",
    "100.64.0.1",
    "127.0.0.1",
    "127.255.255.254",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.19.255.255",
    "198.51.100.7",
    "203.0.113.7",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::127.0.0.1",  # IPv4-compatible
    "::8.8.8.8",
    "::ffff:127.0.0.1",  # IPv4-mapped
    "::ffff:8.8.8.8",
    "64:ff9b::7f00:1",  # NAT64 of loopback
    "64:ff9b::10.0.0.1",
    "64:ff9b:1::808:808",  # NAT64 of a local network
    "100::1",  # discard
    "2001::1",  # Teredo
    "2001:2::1",  # benchmarks
    "2001:10::1",  # ORCHID
    "2001:db8::1",
    "2002:7f00:1::1",  # 6to4 of loopback
    "2002:a00:1::1",
    "2a00::5efe:10.0.0.1",  # ISATAP of a private address
    "2a00::200:5efe:192.168.0.1",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd12:3456::1",
    "fe80::1",
    "fe80::1%eth0",
    "2606:4700:4700::1111%eth0",
    "fec0::1",
    "ff02::1",
)


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_that_everybody_reaches_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize("address", NOT_PUBLIC)
def test_an_address_of_an_inner_network_or_of_none_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "text", ["", "localhost", "127.1", "0x7f.0.0.1", "0177.0.0.1", "2130706433", "[::1]", "1.1.1.1 "]
)
def test_what_is_no_address_in_its_usual_form_is_none(text: str) -> None:
    with pytest.raises(ValueError, match="does not appear to be an IPv4 or IPv6 address"):
        is_public(text)
