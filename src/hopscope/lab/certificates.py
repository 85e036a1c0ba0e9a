"""Certificates of a lab: one authority of its own, and for each TLS server a leaf that is good, or wrong in one way.

Made by the `openssl` command in the lab's folder; keys never leave it. Every leaf names the host's address and its
given names, apart from the one kind that is there to name somebody else.
"""

import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import assert_never

from msgspec import Struct

from hopscope.lab.topology import LabError, Tls

DAY = timedelta(days=1)
STAMP = "%Y%m%d%H%M%SZ"
SOMEBODY_ELSE = "DNS:somebody-else.example"
KEY_KIND = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
AUTHORITY = """\
[ca]
default_ca = lab
[lab]
database = {folder}/database
new_certs_dir = {folder}
rand_serial = yes
default_md = sha256
policy = any
copy_extensions = copy
unique_subject = no
[any]
commonName = supplied
"""


class Certificate(Struct, frozen=True, kw_only=True):
    """Where a leaf and its key lie."""

    chain: Path
    key: Path


def make_authority(folder: Path) -> Path:
    """Makes the lab's authority in `folder`; returns its certificate. Raises LabError without a working openssl."""
    authority = folder / "ca.pem"
    (folder / "database").touch()
    (folder / "ca.cnf").write_text(AUTHORITY.format(folder=folder), encoding="ascii")
    _openssl(
        *("req", "-x509", *KEY_KIND, "-days", "3650", "-subj", "/CN=hopscope lab authority"),
        *("-addext", "keyUsage=critical,keyCertSign,cRLSign"),
        *("-keyout", str(folder / "ca.key"), "-out", str(authority)),
    )
    return authority


def make_certificate(folder: Path, name: str, kind: Tls, *, address: str, names: tuple[str, ...]) -> Certificate:
    """Makes the leaf `name` of this kind beside the authority. Raises LabError without a working openssl."""
    chain, key = folder / f"{name}.pem", folder / f"{name}.key"
    subject = ("-subj", f"/CN={(names or (address,))[0]}")
    alternative = ",".join((f"IP:{address}", *(f"DNS:{each}" for each in names)))
    now = datetime.now(UTC)
    start, end = now - DAY, now + 90 * DAY
    match kind:
        case "self-signed":
            extension = ("-addext", f"subjectAltName={alternative}")
            _openssl("req", "-x509", *KEY_KIND, *subject, *extension, "-keyout", str(key), "-out", str(chain))
            return Certificate(chain=chain, key=key)
        case "expired":
            start, end = now - 90 * DAY, now - DAY
        case "wrong-name":
            alternative = SOMEBODY_ELSE
        case "lab-ca":
            pass
        case _:
            assert_never(kind)
    request = folder / f"{name}.csr"
    extension = ("-addext", f"subjectAltName={alternative}")
    _openssl("req", "-new", *KEY_KIND, *subject, *extension, "-keyout", str(key), "-out", str(request))
    _openssl(
        *("ca", "-batch", "-notext", "-config", str(folder / "ca.cnf"), "-in", str(request), "-out", str(chain)),
        *("-cert", str(folder / "ca.pem"), "-keyfile", str(folder / "ca.key")),
        *("-startdate", start.strftime(STAMP), "-enddate", end.strftime(STAMP)),
    )
    return Certificate(chain=chain, key=key)


def _openssl(*arguments: str) -> None:
    try:
        result = subprocess.run(["openssl", *arguments], capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        raise LabError("certificates: no openssl command", "apt-get install openssl") from error
    if result.returncode != 0:
        raise LabError(
            f"openssl {arguments[0]}: {result.stderr.strip()}", "Debian's openssl 3 is what this was tried on."
        )
