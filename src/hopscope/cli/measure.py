"""`hopscope ping`, `trace` and `http`: one kind of probe against what the command line names."""

from typing import Annotated

import typer

from hopscope.cli.options import (
    DEADLINE,
    BudgetOption,
    Count,
    Family4,
    Family6,
    Format,
    FormatOption,
    Interface,
    Interval,
    JsonOption,
    OutFile,
    Quiet,
    Source,
    Timeout,
    chosen,
    family,
    interval_ns,
)
from hopscope.errors import UsageError
from hopscope.model.limits import DEFAULT_PAYLOAD_BYTES, MAX_TTL, MIN_PAYLOAD_BYTES, MS

PING_COUNT, PING_INTERVAL_NS = 20, 200 * MS
TRACE_ROUNDS, TRACE_INTERVAL_NS = 20, 500 * MS
MAX_PAYLOAD_BYTES = 65_000


def ping(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST…", help="Names or addresses.")],
    *,
    tcp: Annotated[int | None, typer.Option("--tcp", metavar="PORT", min=1, max=65535, help="TCP SYN instead.")] = None,
    count: Count = None,
    interval: Interval = None,
    size: Annotated[
        int, typer.Option("--size", min=MIN_PAYLOAD_BYTES, max=MAX_PAYLOAD_BYTES, help="Payload bytes.")
    ] = DEFAULT_PAYLOAD_BYTES,
    dscp: Annotated[int, typer.Option("--dscp", min=0, max=63, help="DSCP of the probes.")] = 0,
    ttl: Annotated[int | None, typer.Option("--ttl", min=1, max=255, help="TTL of the probes.")] = None,
    flows: Annotated[int | None, typer.Option("--flows", min=1, max=4, help="Flows to rotate over.")] = None,
    four: Family4 = False,
    six: Family6 = False,
    all_addresses: Annotated[bool, typer.Option("--all-addresses", help="Every address of a name.")] = False,
    source: Source = None,
    interface: Interface = None,
    budget: BudgetOption = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
) -> int:
    """Measure delay and loss to one or many hosts.

    Example: hopscope ping gpu1.example.net gpu2.example.net -c 50 -i 100ms
    """
    from hopscope.cli import asking
    from hopscope.model.plan import Target

    shape = Target(
        name="",
        host="",
        probes=("ping",),
        protocol="tcp" if tcp is not None else None,
        port=tcp,
        family=family(four=four, six=six),
        count=count or PING_COUNT,
        interval_ns=interval_ns(interval, PING_INTERVAL_NS),
        size=size,
        dscp=dscp,
        ttl=ttl,
        flows=flows,
        all_addresses=all_addresses,
        budget=asking.budget(budget),
        budget_name=budget,
    )
    wanted = tuple(asking.named(shape, text) for text in dict.fromkeys(hosts))
    plan = asking.plan("ping", wanted, asking.here(source, interface), timeout)
    return asking.carry_out(plan, chosen(format_, json=json), out, quiet=quiet)


def trace(
    host: Annotated[str, typer.Argument(metavar="HOST", help="Name or address.")],
    *,
    icmp: Annotated[bool, typer.Option("--icmp", help="By ICMP echo (the default).")] = False,
    tcp: Annotated[bool, typer.Option("--tcp", help="By TCP SYN.")] = False,
    port: Annotated[
        int | None, typer.Option("--port", min=1, max=65535, help="Port of TCP probes (443).", show_default=False)
    ] = None,
    count: Count = None,
    interval: Interval = None,
    first_ttl: Annotated[int, typer.Option("-f", "--first", min=1, max=255, help="First TTL.")] = 1,
    max_ttl: Annotated[int, typer.Option("-m", "--max", min=1, max=255, help="Last TTL.")] = MAX_TTL,
    four: Family4 = False,
    six: Family6 = False,
    source: Source = None,
    interface: Interface = None,
    budget: BudgetOption = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
) -> int:
    """Show the way to a host, with a label for each hop: lossy, slow, limited, silent.

    Example: hopscope trace gpu1.example.net -c 100 -i 200ms
    """
    from hopscope.cli import asking
    from hopscope.model.plan import Target

    if icmp and tcp:
        message = "--icmp and --tcp exclude each other"
        raise UsageError(message, "give one of them")
    if port is not None and not tcp:
        message = "--port is of TCP probes, and ICMP has no ports"
        raise UsageError(message, f"write --tcp --port {port}")
    if first_ttl > max_ttl:
        message = f"first TTL {first_ttl} is beyond the last, {max_ttl}"
        raise UsageError(message, "give -f no more than -m")
    shape = Target(
        name="",
        host="",
        probes=("trace",),
        trace_protocol="tcp" if tcp else None,
        port=port,
        family=family(four=four, six=six),
        rounds=count or TRACE_ROUNDS,
        round_interval_ns=interval_ns(interval, TRACE_INTERVAL_NS),
        first_ttl=first_ttl,
        max_ttl=max_ttl,
        budget=asking.budget(budget),
        budget_name=budget,
    )
    plan = asking.plan("trace", (asking.named(shape, host),), asking.here(source, interface), timeout)
    return asking.carry_out(plan, chosen(format_, json=json), out, quiet=quiet)


def http(
    url: Annotated[str, typer.Argument(metavar="URL", help="What to ask for; https:// if no scheme is given.")],
    *,
    requests: Annotated[int | None, typer.Option("-n", min=1, max=100_000, help="Requests, the first cold.")] = None,
    cold: Annotated[int | None, typer.Option("--cold", min=0, help="On connections of their own.")] = None,
    hot: Annotated[int | None, typer.Option("--hot", min=0, help="On one kept connection.")] = None,
    resolve: Annotated[
        str | None, typer.Option("--resolve", metavar="HOST:PORT:ADDR", help="Dial this address for the name.")
    ] = None,
    http2: Annotated[bool, typer.Option("--http2", help="Offer HTTP/2.")] = False,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME: VALUE", help="Secrets as 'Name: env:VAR'.")
    ] = None,
    method: Annotated[str | None, typer.Option("-X", "--request", help="Method.")] = None,
    data: Annotated[str | None, typer.Option("-d", "--data", metavar="@FILE", help="Body, from a file.")] = None,
    cacert: Annotated[str | None, typer.Option("--cacert", help="Trust this CA file.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Measure in spite of a bad certificate.")] = False,
    four: Family4 = False,
    six: Family6 = False,
    source: Source = None,
    interface: Interface = None,
    budget: BudgetOption = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
) -> int:
    """Time a request: resolve, connect, TLS, upload, wait, download; network and server apart.

    Example: hopscope http https://gpu1.example.net/v1/models -n 10
    """
    from hopscope.cli import asking
    from hopscope.model.plan import Target

    if requests is not None and (cold is not None or hot is not None):
        message = "-n sets all requests, --cold and --hot each kind"
        raise UsageError(message, "give -n, or --cold and --hot")
    if cold == 0 and hot == 0:
        message = "--cold 0 and --hot 0 leave no request to make"
        raise UsageError(message, "give one of them a number, or leave both out")
    plain, from_variables = asking.headers(header or [])
    shape = Target(
        name="",
        host="",
        probes=("http",),
        family=family(four=four, six=six),
        cold=1 if requests is not None else cold,
        hot=requests - 1 if requests is not None else hot,
        method=(method or ("POST" if data is not None else "GET")).upper(),
        body_file=asking.body_file(data),
        headers=plain,
        headers_env=from_variables,
        ca_file=cacert,
        insecure=insecure,
        http2=http2,
        budget=asking.budget(budget),
        budget_name=budget,
    )
    target = asking.named(shape, url if "://" in url else f"https://{url}")
    target = asking.dialled(asking.renamed(target, url), resolve)
    plan = asking.plan("http", (target,), asking.here(source, interface), timeout)
    return asking.carry_out(plan, chosen(format_, json=json), out, quiet=quiet)


def stream(
    url: Annotated[str, typer.Argument(metavar="URL", help="Server; /v1/chat/completions is added where needed.")],
    *,
    model: Annotated[str | None, typer.Option("--model", help="Model; the first that the server lists.")] = None,
    prompt_tokens: Annotated[
        int | None, typer.Option("--prompt-tokens", min=1, max=1_000_000, help="Length of the prompt, about.")
    ] = None,
    max_tokens: Annotated[
        int | None, typer.Option("--max-tokens", min=1, max=100_000, help="Tokens to ask for.")
    ] = None,
    requests: Annotated[int | None, typer.Option("-n", min=1, max=100_000, help="Requests, the first cold.")] = None,
    api_key_env: Annotated[
        str | None, typer.Option("--api-key-env", metavar="VAR", help="Variable that holds the key.")
    ] = None,
    resolve: Annotated[
        str | None, typer.Option("--resolve", metavar="HOST:PORT:ADDR", help="Dial this address for the name.")
    ] = None,
    http2: Annotated[bool, typer.Option("--http2", help="Offer HTTP/2.")] = False,
    header: Annotated[
        list[str] | None, typer.Option("-H", "--header", metavar="NAME: VALUE", help="Secrets as 'Name: env:VAR'.")
    ] = None,
    cacert: Annotated[str | None, typer.Option("--cacert", help="Trust this CA file.")] = None,
    insecure: Annotated[bool, typer.Option("--insecure", help="Measure in spite of a bad certificate.")] = False,
    four: Family4 = False,
    six: Family6 = False,
    source: Source = None,
    interface: Interface = None,
    budget: BudgetOption = None,
    format_: FormatOption = Format.text,
    json: JsonOption = False,
    out: OutFile = None,
    quiet: Quiet = False,
    timeout: Timeout = DEADLINE,
) -> int:
    """Time streams of tokens: first byte, first token, time of a token; network and server apart.

    Example: hopscope stream https://gpu1.example.net --model llama-3.1-70b --api-key-env GPU1_KEY
    """
    from hopscope.cli import asking
    from hopscope.model.plan import Target

    plain, from_variables = asking.headers(header or [])
    shape = Target(
        name="",
        host="",
        probes=("stream",),
        family=family(four=four, six=six),
        cold=1 if requests is not None else None,
        hot=requests - 1 if requests is not None else None,
        model=model,
        prompt_tokens=prompt_tokens,
        max_tokens=max_tokens,
        api_key_env=api_key_env,
        headers=plain,
        headers_env=from_variables,
        ca_file=cacert,
        insecure=insecure,
        http2=http2,
        budget=asking.budget(budget),
        budget_name=budget,
    )
    target = asking.named(shape, url if "://" in url else f"https://{url}")
    target = asking.dialled(asking.renamed(target, url), resolve)
    plan = asking.plan("stream", (target,), asking.here(source, interface), timeout)
    return asking.carry_out(plan, chosen(format_, json=json), out, quiet=quiet)
