"""URL tricks: what is refused, and where the rest leads. Nothing that is read in two ways is asked at all."""

from __future__ import annotations

import pytest

from organism.config.host_rules import host_rule
from organism.tools.urls import Refused, Target, allowed, followed, target_of

RULES = [
    host_rule(line) for line in ("example.org", "*.example.net", "xn--exmple-cua.org", "8.8.8.8", "[2606:4700::1]")
]

ASKED = {
    "https://example.org": "https://example.org/",
    "HTTPS://Example.ORG/": "https://example.org/",
    "https://example.org.": "https://example.org/",
    "https://example.org:443/a": "https://example.org/a",
    "http://example.org:80/a": "http://example.org/a",
    "https://example.org?q=1": "https://example.org/?q=1",
    "https://example.org#frag": "https://example.org/",
    "https://example.org/a#@10.0.0.1/": "https://example.org/a",
    "https://example.org/#https://10.0.0.1/": "https://example.org/",
    "https://example.org/?u=http://10.0.0.1/@x": "https://example.org/?u=http://10.0.0.1/@x",
    "https://example.org/a@b:c": "https://example.org/a@b:c",
    "https://example.org//10.0.0.1/": "https://example.org//10.0.0.1/",
    "https://example.org/../../etc/passwd": "https://example.org/../../etc/passwd",
    "https://example.org/%0d%0aHost:%20evil": "https://example.org/%0d%0aHost:%20evil",
    "https://example.org/ä?ö=ü": "https://example.org/%C3%A4?%C3%B6=%C3%BC",
    'https://example.org/a|b^c`{d}"<e>': "https://example.org/a%7Cb%5Ec%60%7Bd%7D%22%3Ce%3E",
    "https://exämple.org/": "https://xn--exmple-cua.org/",
    "https://EXÄMPLE.org/": "https://xn--exmple-cua.org/",
    "https://xn--exmple-cua.org/": "https://xn--exmple-cua.org/",
    "https://example\u3002org/": "https://example.org/",  # an ideographic full stop
    "https://example\uff0eorg/": "https://example.org/",  # a full-width full stop
    "https://\uff45\uff58\uff41\uff4d\uff50\uff4c\uff45.org/": "https://example.org/",  # full-width letters
    "https://a.example.net/": "https://a.example.net/",
    "https://8.8.8.8/": "https://8.8.8.8/",
    "https://\uff18.\uff18.\uff18.\uff18/": "https://8.8.8.8/",  # full-width digits
    "https://[2606:4700:0::1]/": "https://[2606:4700::1]/",
    "https://[2606:4700:0:0:0:0:0:1]:443/": "https://[2606:4700::1]/",
}
"""URLs in another form than their one form, and where they lead: to a host of the list, whatever stands behind it."""

NOT_LISTED = (
    "https://evil.example/",
    "https://example.org.evil.example/",
    "https://evil-example.org/",
    "https://www.example.org/",
    "https://example.net/",
    "https://evilexample.net/",
    "https://example.org:8443/",
    "http://example.org:443/",
    "https://example.org:80/",
    "https://8.8.4.4/",
    "https://127.0.0.1/",
    "https://10.0.0.1/",
    "https://169.254.169.254/latest/meta-data/",
    "https://[::1]/",
    "https://[::]/",
    "https://[::ffff:127.0.0.1]/",
    "https://[::ffff:7f00:1]/",
    "https://[::ffff:8.8.8.8]/",
    "https://[64:ff9b::7f00:1]/",
    "https://[2002:7f00:1::]/",
    "https://[fe80::1]/",
    "https://localhost/",
    "https://localhost.localdomain/",
    "https://example/",
    "https://\u0435xample.org/",  # a Cyrillic letter
    "https://127.0.0.1.nip.io/",
    "https://\uff11\uff12\uff17.\uff10.\uff10.\uff11/",
    "https://127\u30020\u30020\u30021/",
    "https://\u2460\u2461\u2466.\u24ea.\u24ea.\u2460/",
)
"""URLs that can be read, and lead to a host that is not in the list."""

REFUSED = (
    "", "example.org", "//example.org/", "/etc/passwd", "https:/example.org", "https:example.org",
    "https:///example.org", "https://", "https://:443/", "file:///etc/passwd", "ftp://example.org/",
    "gopher://example.org:70/_GET", "data:text/html,hello", "jar:https://example.org!/",
    "unix:///var/run/docker.sock", "view-source:https://example.org/", "https+unix://example.org/",
    " https://example.org/", "https://example.org/ ", "https://exam ple.org/", "https://example.org/a b",
    "https://example.org\t/", "https://example.org\n/", "https://example.org/\r\nHost: evil.example\r\n\r\n",
    "https://example.org\x00.evil.example/", "https://example.org/\x7f", "https:\\\\example.org\\",
    "https://example.org\\@10.0.0.1/", "https://10.0.0.1\\.example.org/", "https://user@example.org/",
    "https://example.org@10.0.0.1/", "https://example.org:443@10.0.0.1/", "https://:@example.org/",
    "https://example.org%40evil.example/", "https://example.org%2f@10.0.0.1/", "https://exampl%65.org/",
    "https://%31%30.0.0.1/", "https://example.org:/", "https://example.org:0/", "https://example.org:99999999/",
    "https://example.org:+443/", "https://example.org:443:80/", "https://example.org:\uff14\uff14\uff13/",
    "https://example.org:0x1bb/", "https://2130706433/", "https://0x7f000001/", "https://127.1/",
    "https://0x7f.0.0.1/", "https://0177.0.0.1/", "https://127.0.0.01/", "https://256.0.0.1/", "https://1.2.3.4.5/",
    "https://example.0x7f/", "https://8.8.8.8../", "https://[::1/", "https://[[::1]]/", "https://::1/",
    "https://[fe80::1%25eth0]/", "https://[::1]evil.example/", "https://[example.org]/", "https://[127.0.0.1]/",
    "https://[v1.fe80::a]/", "https://example..org/", "https://-example.org/", "https://exam_ple-.org/",
    "https://*.example.net/", "https://exa\u200bmple.org:443@x/", "https://ex\u202eample.org/",
    "https://?q", "https://#f", "javascript:alert(1)", "dict://example.org:11211/stat", "ldap://example.org/",
    "https://user:word@example.org/", "https://@example.org/", "https://example.org:65536/", "https://example.org:-1/",
    "https://example.org:https/", "https://017700000001/", "https://127.0.1/", "https://127.0.0.0x1/", "https://0/",
    "https://0x/", "https://::1]/", "https://[::1]]/", "https://[fe80::1%eth0]/", "https://[::ffff:127.0.0.1.evil]/",
    "https://.example.org/", "https://example.org../", "https://" + "a." * 130 + "org/",
    "https://" + "a" * 64 + ".org/", "https://example.org/" + "a" * 2048,
)  # fmt: skip


@pytest.mark.parametrize("url", ASKED)
def test_a_url_has_one_form_and_that_is_asked(url: str) -> None:
    target = target_of(url)
    assert target.url == ASKED[url]
    assert allowed(target, RULES)
    assert target_of(target.url) == target


@pytest.mark.parametrize("url", NOT_LISTED)
def test_a_url_of_another_host_is_not_allowed_however_like_it_looks(url: str) -> None:
    assert not allowed(target_of(url), RULES)


@pytest.mark.parametrize("url", REFUSED)
def test_what_could_be_read_in_two_ways_is_refused(url: str) -> None:
    with pytest.raises(Refused):
        target_of(url)


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("ftp://x", "a URL begins with https:// or http://, then comes a host"),
        ("https://u@x/", "no user and no password stand in a URL"),
        ("https://x:0/", "a port is a number from 1 to 65535"),
        ("https://1.2.3/", "'1.2.3' is no host: a name, four numbers such as 8.8.8.8, or an IPv6 address in brackets"),
        ("https://a b/", "a URL has no spaces, control characters or backslashes; write them as %20 and so on"),
        ("https://x:y/", "'x:y' is no host, with a port or without"),
    ],
)
def test_a_refusal_says_what_was_expected(url: str, expected: str) -> None:
    with pytest.raises(Refused) as refused:
        target_of(url)
    assert str(refused.value) == expected


HERE = Target("https", "example.org", 443, "/a/b?c")


@pytest.mark.parametrize(
    ("location", "url"),
    [
        ("/d", "https://example.org/d"),
        ("d", "https://example.org/a/d"),
        ("?e", "https://example.org/a/b?e"),
        ("../f", "https://example.org/f"),
        ("https://a.example.net/g", "https://a.example.net/g"),
        ("//a.example.net/h", "https://a.example.net/h"),
        ("", "https://example.org/a/b?c"),
        ("/ä", "https://example.org/%C3%A4"),
    ],
)
def test_a_redirect_is_read_from_where_it_stands(location: str, url: str) -> None:
    assert followed(HERE, location).url == url


@pytest.mark.parametrize(
    "location",
    [
        "http://example.org/", "ftp://example.org/", "file:///etc/passwd", "data:text/plain,x",
        "https://user@example.org/", "https://example.org\\@evil.example/", "/a\r\nSet-Cookie: x", "/a\tb", "//",
        "///example.org/", "https:///example.org/", "//user@evil.example/", "https://2130706433/",
    ],
)  # fmt: skip
def test_a_redirect_is_refused_for_the_same_reasons_and_for_leaving_https(location: str) -> None:
    with pytest.raises(Refused):
        followed(HERE, location)
