"""What the command line names, as a plan; and the plan carried out, printed, and turned into an exit code."""

from pathlib import Path

from msgspec.structs import replace

from hopscope import targets
from hopscope.cli.options import Format
from hopscope.cli.output import exit_code, show
from hopscope.cli.session import measure
from hopscope.errors import UsageError
from hopscope.model.plan import Budget, Plan, Target, Vantage, family_of, is_address
from hopscope.sinks import file

PORT_DIGITS = 5
SECRET_HEADERS = frozenset({"authorization", "proxy-authorization", "x-api-key", "api-key", "cookie"})


def named(shape: Target, text: str) -> Target:
    """A target like `shape` for a host or URL as typed. Raises UsageError."""
    spec = targets.host(text)
    if shape.family is not None and is_address(spec.host) and family_of(spec.host) != shape.family:
        message = f"{spec.host} is an IPv{family_of(spec.host)} address, and -{shape.family} asks for the other family"
        raise UsageError(message, f"leave out -{shape.family}")
    return replace(shape, name=text, host=spec.host, port=shape.port or spec.port, url=spec.url)


def headers(given: list[str]) -> tuple[tuple[tuple[str, str], ...], tuple[tuple[str, str], ...]]:
    """Header options as plain ones and ones from variables. Raises UsageError for a literal secret."""
    plain: list[tuple[str, str]] = []
    from_variables: list[tuple[str, str]] = []
    for text in given:
        name, colon, value = (part.strip() for part in text.partition(":"))
        if not colon or not name:
            message = "-H needs a name and a value"
            raise UsageError(message, "write -H 'Name: value', or -H 'Name: env:VAR' for a secret")
        if value.startswith("env:"):
            from_variables.append((name, value.removeprefix("env:")))
        elif name.lower() in SECRET_HEADERS:
            message = f"a literal secret for {name} stands on the command line, where every process can read it"
            raise UsageError(message, f"export it, and write -H '{name}: env:VAR'")
        else:
            plain.append((name, value))
    return tuple(plain), tuple(from_variables)


def body_file(data: str | None) -> str | None:
    """The file of a body given as @FILE. Raises UsageError."""
    if data is None:
        return None
    if not data.startswith("@") or not Path(data[1:]).is_file():
        message = (
            f"-d takes a body from a file, and {data[1:] or 'nothing'} is none"
            if data[:1] == "@"
            else ("-d takes a body from a file")
        )
        raise UsageError(message, "write -d @FILE")
    return data[1:]


def renamed(target: Target, name: str) -> Target:
    """The same target under the name that was typed."""
    return replace(target, name=name)


def dialled(target: Target, resolve: str | None) -> Target:
    """The target dialled at the address of `--resolve HOST:PORT:ADDR`. Raises UsageError."""
    if resolve is None:
        return target
    host, _, rest = resolve.partition(":")
    port, _, address = rest.partition(":")
    if not (host and port.isascii() and port.isdigit() and len(port) <= PORT_DIGITS and address):
        message = f"--resolve {resolve} is not HOST:PORT:ADDR"
        raise UsageError(message, "write --resolve gpu1.example.net:443:192.0.2.1")
    if targets.host(host).host != target.host or int(port) != target.port:
        message = f"--resolve is for {host}:{port}, the URL for {target.host}:{target.port}"
        raise UsageError(message, "name the host and port of the URL")
    return replace(target, resolve_to=targets.host(address).host)


def budget(name: str | None) -> Budget:
    """The named budget, or none. Raises UsageError."""
    return Budget() if name is None else targets.budget(name)


def here(source: str | None, interface: str | None) -> Vantage:
    """This machine, as a vantage. Raises UsageError for a source or an interface that it does not have."""
    vantage = Vantage(name="here", kind="local", source=source, interface=interface)
    if source is not None or interface is not None:
        from hopscope.vantages.local import check

        check(vantage)
    return vantage


def plan(command: str, wanted: tuple[Target, ...], vantage: Vantage, timeout: str) -> Plan:
    """A plan for what the command line names."""
    return Plan(
        command=command,
        name=command,
        targets=wanted,
        vantages=(vantage,),
        quorum=1,
        deadline_ns=targets.duration(timeout),
    )


def carry_out(plan: Plan, format_: Format, out: Path | None, *, quiet: bool) -> int:
    """Run, print, and the exit code. Where the document is to go is tried first: a result is not to be lost."""
    if out is not None:
        file.check(out)
    outcome = measure(plan, quiet=quiet)
    show(outcome.report, format_, out, quiet=quiet)
    return exit_code(outcome.report, outcome.signal)
