"""What people type as a host: understood exactly, or refused with the right form named and no password repeated."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.errors import UsageError
from hopscope.targets import HostSpec, host

UNDERSTOOD = [
    ("example.com", HostSpec(host="example.com")),
    ("  EXAMPLE.com.  ", HostSpec(host="example.com")),
    ("example.com:443", HostSpec(host="example.com", port=443)),
    ("localhost", HostSpec(host="localhost")),
    ("gpu_1", HostSpec(host="gpu_1")),
    ("_dmarc.example.com", HostSpec(host="_dmarc.example.com")),
    ("xn--bcher-kva.example", HostSpec(host="xn--bcher-kva.example")),
    ("bücher.example", HostSpec(host="xn--bcher-kva.example")),
    ("bu\u0308cher.example", HostSpec(host="xn--bcher-kva.example")),
    ("BÜCHER.example.", HostSpec(host="xn--bcher-kva.example")),
    ("_srv.bücher.example:53", HostSpec(host="_srv.xn--bcher-kva.example", port=53)),
    ("faß.de", HostSpec(host="xn--fa-hia.de")),
    ("日本。example:8080", HostSpec(host="xn--wgv71a.example", port=8080)),
    ("ａ．example", HostSpec(host="a.example")),
    ("192.0.2.1", HostSpec(host="192.0.2.1")),
    ("192.0.2.1:80", HostSpec(host="192.0.2.1", port=80)),
    ("2001:DB8:0::1", HostSpec(host="2001:db8::1")),
    ("::1", HostSpec(host="::1")),
    ("[2001:db8::1]", HostSpec(host="2001:db8::1")),
    ("[2001:db8::1]:443", HostSpec(host="2001:db8::1", port=443)),
    ("fe80::1%eth0", HostSpec(host="fe80::1%eth0")),
    ("fe80::1%25", HostSpec(host="fe80::1%25")),
    ("[fe80::1%eth0]:22", HostSpec(host="fe80::1%eth0", port=22)),
    ("[fe80::1%25eth0]:22", HostSpec(host="fe80::1%eth0", port=22)),
    ("HTTPS://Example.com", HostSpec(host="example.com", port=443, scheme="https", url="https://example.com")),
    (
        "http://example.com:8000/v1/?a=b#part",
        HostSpec(host="example.com", port=8000, scheme="http", url="http://example.com:8000/v1/?a=b"),
    ),
    (
        "https://bücher.example/ü?q=é",
        HostSpec(
            host="xn--bcher-kva.example", port=443, scheme="https", url="https://xn--bcher-kva.example/%C3%BC?q=%C3%A9"
        ),
    ),
    (
        "https://[fe80::1%25eth0]:8443/x",
        HostSpec(host="fe80::1%eth0", port=8443, scheme="https", url="https://[fe80::1%25eth0]:8443/x"),
    ),
    ("http://192.0.2.1?x", HostSpec(host="192.0.2.1", port=80, scheme="http", url="http://192.0.2.1?x")),
    (
        "https://example.com./%20?version=2024-10-21&key=",
        HostSpec(host="example.com", port=443, scheme="https", url="https://example.com/%20?version=2024-10-21&key="),
    ),
]

NAME_FORMS = (
    "write a name (gpu1.example.net), an address (192.0.2.1, 2001:db8::1) or a URL (https://gpu1.example.net/v1)"
)
QUAD = "write four numbers from 0 to 255 without leading zeros, such as 192.0.2.1"
PORT = "a port is a number from 1 to 65535"
SIX = "write 2001:db8::1, fe80::1%eth0, or [2001:db8::1]:443 with a port"
VARIABLE = "leave it out: name a variable instead, by api_key_env or by headers_env (-H 'Name: env:VAR')"

REFUSED = [
    ("", "a host is missing: the text is empty", NAME_FORMS),
    ("a b", '"a b" is not a host: it holds a space', NAME_FORMS),
    ("a..b", '"a..b" is not a host: a part between dots is empty', NAME_FORMS),
    (".", '"." is not a host: a part between dots is empty', NAME_FORMS),
    ("-a.b", '"-a.b" is not a host: "-a" begins or ends with a hyphen', NAME_FORMS),
    ("*.example", '"*.example" is not a host: it holds "*"', NAME_FORMS),
    ("a\x00\x1b.b", '"a\\x00\\x1b.b" is not a host: it holds "\\x00"', NAME_FORMS),
    ("℀.example", '"℀.example" is not a host: it holds "/"', NAME_FORMS),
    (f"{'a' * 64}.b", f'"{"a" * 64}.b" is not a host: a part between dots is longer than 63 characters', NAME_FORMS),
    ("☃.example", '"☃.example" is not an internationalised name (IDNA 2008 does not allow one of its characters)',
     "write its ASCII form, which begins with xn--"),
    ("300.1.1.1", '"300.1.1.1" is not an IPv4 address', QUAD),
    ("10.1", '"10.1" is not an IPv4 address', QUAD),
    ("010.0.0.1", '"010.0.0.1" is not an IPv4 address', QUAD),
    ("0x7f.1", '"0x7f.1" is not an IPv4 address', QUAD),
    ("10.0.0.0/8", '"10.0.0.0/8" is a network, not a host', "name one address of it"),
    ("2001:db8::/32", '"2001:db8::/32" is a network, not a host', "name one address of it"),
    ("a:", '"a:" has no valid port after the colon', PORT),
    ("a:0", '"a:0" has no valid port after the colon', PORT),
    ("a:65536", '"a:65536" has no valid port after the colon', PORT),
    ("a:٣", '"a:٣" has no valid port after the colon', PORT),
    ("1:2:3", '"1:2:3" is not an IPv6 address', SIX),
    ("::g", '"::g" is not an IPv6 address', SIX),
    ("fe80::1%", '"fe80::1%" has no valid zone after the %', "a zone is an interface: fe80::1%eth0"),
    ("[::1", '"[::1" is not a host', "write [2001:db8::1]:443 for an IPv6 address and a port"),
    ("[::1]443", '"[::1]443" is not a host', "write [2001:db8::1]:443 for an IPv6 address and a port"),
    ("a.example/v1", '"a.example/v1" is neither a host nor a whole URL',
     'write "https://a.example/v1" for the URL, or "a.example" for the host'),
    ("localhost:8000/v1", '"localhost:8000/v1" is neither a host nor a whole URL',
     'write "https://localhost:8000/v1" for the URL, or "localhost:8000" for the host'),
    ("https:/a.example", '"https:/a.example" is neither a host nor a whole URL', "a URL begins with http:// or https://"),
    ("ftp://a.example", '"ftp://a.example" has the scheme "ftp"', "use http:// or https://"),
    ("htps://a.example", '"htps://a.example" has the scheme "htps"; did you mean "https"?', "use http:// or https://"),
    ("https://", '"https://" names no host',
     "write https://gpu1.example.net/v1, or https://[2001:db8::1]:8443/v1 with an IPv6 address"),
    ("https://::1/", '"https://::1/" has an IPv6 address without brackets',
     "write https://gpu1.example.net/v1, or https://[2001:db8::1]:8443/v1 with an IPv6 address"),
    ("https://a/b c", '"https://a/b c" has a character that no URL may hold', "write it as %XX (a space is %20)"),
    ("https://a/\r\nX: y", '"https://a/\\r\\nX: y" has a character that no URL may hold',
     "write it as %XX (a space is %20)"),
    ("me:hunter2@a.example", "a host holds an @ (what stands before it is not repeated here)",
     "write only what follows it"),
    ("https://me:hunter2@a.example/", "a URL holds a user name or password before the @ (not repeated here)", VARIABLE),
    ("htps://hunter2@a.example/", "a URL holds a user name or password before the @ (not repeated here)", VARIABLE),
    ("https://a/v1?api-key=hunter2", "a URL holds a key or token after the ? (not repeated here)", VARIABLE),
    ("https://a/v1?x=1&%6bey=hunter2", "a URL holds a key or token after the ? (not repeated here)", VARIABLE),
    ("https://a/v1?x=sk-hunter2hunter2&y=1", "a URL holds a key or token after the ? (not repeated here)", VARIABLE),
    ("a.example/v1?token=hunter2", "a URL holds a key or token after the ? (not repeated here)", VARIABLE),
    ("a" * 9000, "a host is longer than 8192 characters", NAME_FORMS),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), UNDERSTOOD, ids=lambda value: str(value)[:40])
def test_a_host_is_understood(text: str, expected: HostSpec) -> None:
    assert host(text) == expected


@pytest.mark.parametrize(("text", "says", "advice"), REFUSED, ids=lambda value: ascii(value)[:40])
def test_a_host_is_refused_with_the_right_form(text: str, says: str, advice: str) -> None:
    with pytest.raises(UsageError) as caught:
        host(text)
    assert (str(caught.value), caught.value.advice) == (says, advice)
    assert "hunter2" not in f"{caught.value} {caught.value.advice}"


def test_a_name_that_is_too_long_as_a_whole_is_refused() -> None:
    with pytest.raises(UsageError, match="longer than 253 characters"):
        host(".".join(["abc"] * 70))


@pytest.mark.parametrize("spec", [spec for _, spec in UNDERSTOOD], ids=lambda spec: str(spec.url or spec.host))
def test_what_was_understood_is_understood_again_as_the_same(spec: HostSpec) -> None:
    assert host(spec.url or spec.host) == (spec if spec.url else HostSpec(host=spec.host))


def settled(text: str) -> bool:
    """Whether the text is understood as a plain ASCII host, or refused with printable words and advice."""
    try:
        spec = host(text)
    except UsageError as error:
        return str(error).isprintable() and error.advice.isprintable() and bool(error.advice)
    return (
        spec.host.isascii() and spec.host.isprintable() and " " not in spec.host and host(spec.host).host == spec.host
    )


@given(st.text())
def test_any_text_is_a_host_or_refused(text: str) -> None:
    assert settled(text)


@given(st.text(alphabet="ahtps01.:/[]%@?#&=-_ü。x\\ \x00"))
def test_any_marks_are_a_host_or_refused(text: str) -> None:
    assert settled(text)
    assert settled(f"https://{text}")
