"""`hopscope diagnose`: every layer between this machine and a model's answer, and which of them fails first."""

import os
from pathlib import Path
from stat import S_ISDIR
from typing import TYPE_CHECKING, Annotated

import typer

from hopscope.cli import streams
from hopscope.cli.options import (
    Family4,
    Family6,
    Format,
    FormatOption,
    Interface,
    JsonOption,
    OutFile,
    Quiet,
    Source,
    chosen,
    family,
)
from hopscope.errors import UsageError

if TYPE_CHECKING:
    from hopscope.model.plan import Plan, Target

HURRIED, PATIENT = "45s", "5m"


def diagnose(
    host: Annotated[str, typer.Argument(metavar="HOST|URL", help="Name, address or URL; HOST:PORT for a port.")],
    *,
    model: Annotated[str | None, typer.Option("--model", help="Ask this model for a few tokens.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="VAR", help="Variable that holds the key.")
    ] = None,
    patient: Annotated[
        bool, typer.Option("--patient", help="Take up to 5 minutes, so that rare loss is decided.")
    ] = False,
    ticket: Annotated[
        Path | None, typer.Option("--ticket", metavar="FILE", help="Write a ticket for the provider.")
    ] = None,
    resolve: Annotated[
        str | None, typer.Option("--resolve", metavar="HOST:PORT:ADDR", help="Dial this address for the name.")
    ] = None,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME: VALUE", help="Secrets as 'Name: env:VAR'.")
    ] = None,
    cacert: Annotated[str | None, typer.Option("--cacert", help="Trust this CA file.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Go on in spite of a bad certificate.")] = False,
    four: Family4 = False,
    six: Family6 = False,
    source: Source = None,
    interface: Interface = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
    timeout: Annotated[
        str | None, typer.Option("--timeout", metavar="DURATION", help="Deadline; 45s, with --patient 5m.")
    ] = None,
) -> int:
    """Walk the layers to a server and name the first that fails, whose it is, and the next step.

    Interface, gateway, name, path, port, TLS, HTTP, model. Example: hopscope diagnose https://gpu1.example.net/v1
    """
    from hopscope.cli import asking
    from hopscope.model.plan import Target

    plain, from_variables = asking.headers(header or [])
    shape = Target(
        name="",
        host="",
        probes=("layer",),
        family=family(four=four, six=six),
        headers=plain,
        headers_env=from_variables,
        api_key_env=api_key_env,
        ca_file=cacert,
        insecure=insecure,
        model=model,
    )
    target = asking.named(shape, host)
    if target.url is None:
        _refuse_without_url(model, api_key_env, cacert, resolve, *(header or ()))
    if model is not None and not (model.strip() and model.isprintable()):
        message = f"--model {model!r} is not the name of a model"
        raise UsageError(message, "write its name as the server lists it, in printable text")
    target = asking.dialled(target, resolve)
    _refuse_unready(target)
    vantage = asking.here(source, interface)
    _refuse_families(target, source)
    plan = asking.plan("diagnose", (target,), vantage, timeout or (PATIENT if patient else HURRIED))
    return _carry_out(plan, chosen(format_, json=json), out, ticket, quiet=quiet)


def _carry_out(plan: "Plan", format_: Format, out: Path | None, ticket: Path | None, *, quiet: bool) -> int:
    """Run, print, write the ticket, and the exit code; where documents are to go is tried first."""
    from hopscope.cli.output import exit_code, show
    from hopscope.cli.session import measure
    from hopscope.render.ticket import render
    from hopscope.sinks import file

    if out is not None and ticket is not None and out.resolve() == ticket.resolve():
        message = f"--ticket and --out name the same file, {out}"
        raise UsageError(message, "give each a file of its own")
    for path in (out, ticket):
        if path is not None:
            file.check(path)
    outcome = measure(plan, quiet=quiet)
    if ticket is not None:
        file.document(ticket, [render(outcome.report)])
        streams.tell(f"ticket: {ticket}\n")
    show(outcome.report, format_, out, quiet=quiet)
    return exit_code(outcome.report, outcome.signal)


def _refuse_without_url(*given: str | None) -> None:
    """What speaks of TLS, HTTP or a model needs a URL. Raises UsageError."""
    if any(each is not None for each in given):
        message = "--model, --api-key-env, --cacert, --resolve and -H speak of a URL, and this is a host"
        raise UsageError(message, "write the URL: https://gpu1.example.net/v1")


def _refuse_unready(target: "Target") -> None:
    """What requests will need and this machine does not have is said before anything is sent. Raises UsageError."""
    variables = [variable for _, variable in target.headers_env]
    variables += [target.api_key_env] if target.api_key_env is not None else []
    for variable in variables:
        if not os.environ.get(variable, "").strip():
            message = f"the environment variable {variable} is not set"
            raise UsageError(message, f"export {variable}, then run again")
    if target.ca_file is None:
        return
    # It is looked at and not read: a pipe would be empty afterwards.
    try:
        mode = Path(target.ca_file).stat().st_mode
        why = "Is a directory" if S_ISDIR(mode) else None if os.access(target.ca_file, os.R_OK) else "Permission denied"
    except OSError as error:
        why = error.strerror
    if why is not None:
        message = f"--cacert {target.ca_file} cannot be read: {why}"
        raise UsageError(message, "name the authority's file, in PEM form")


def _refuse_families(target: "Target", source: str | None) -> None:
    """An address that is dialled, -4 or -6, and --source are of one family. Raises UsageError."""
    from hopscope.model.plan import family_of, is_address

    host = target.resolve_to or target.host
    dialled = family_of(host) if is_address(host) else None
    if dialled is not None and target.family not in {None, dialled}:
        message = f"{host} is an IPv{dialled} address, and -{target.family} asks for the other family"
        raise UsageError(message, f"leave out -{target.family}")
    wanted = dialled or target.family
    if source is None or wanted in {None, family_of(source)}:
        return
    of_source = f"--source {source} is an IPv{family_of(source)} address"
    if dialled is None:
        message = f"{of_source}, and -{wanted} asks for the other family"
        raise UsageError(message, f"leave out -{wanted}, or give another --source")
    message = f"{of_source}, and {host} an IPv{dialled} address"
    raise UsageError(message, f"give an IPv{dialled} address of this host, or leave out --source")
