"""The built-in budgets, by what the server is used for, each number with its reason.

| name | rtt_p95 | pdv_p95 | loss | ttft_p95 | tps | why |
|---|---|---|---|---|---|---|
| chat | 20 ms | - | 1 % | 500 ms | 30 | half a second feels like an answer begun; 30 tokens/s outruns a reader |
| autocomplete | 20 ms | - | 1 % | 200 ms | 50 | text must stand before the next key stroke, and be whole soon after |
| realtime | 20 ms | 20 ms | 1 % | 300 ms | 30 | people take turns within 0.2 to 0.3 s; varying delay breaks speech up |
| agents | 100 ms | - | 1 % | 1 s | 50 | many calls in a row: the pace counts more than the first token |
| batch | - | - | 2 % | - | - | nobody waits for the first token; loss costs throughput and retries |

20 ms is a round trip within one continent (2000 km of fibre): nearer servers have no excuse, farther ones need a budget
of their own. From 1 % loss on, TCP itself slows down. A file replaces any of them with `[budget.NAME]`.
"""

from hopscope.errors import UsageError
from hopscope.model.plan import Budget
from hopscope.targets.wording import did_you_mean, shown

BUDGETS: dict[str, Budget] = {
    "chat": Budget(rtt_p95_ms=20.0, loss=0.01, ttft_p95_ms=500.0, tps=30.0),
    "autocomplete": Budget(rtt_p95_ms=20.0, loss=0.01, ttft_p95_ms=200.0, tps=50.0),
    "realtime": Budget(rtt_p95_ms=20.0, pdv_p95_ms=20.0, loss=0.01, ttft_p95_ms=300.0, tps=30.0),
    "agents": Budget(rtt_p95_ms=100.0, loss=0.01, ttft_p95_ms=1000.0, tps=50.0),
    "batch": Budget(loss=0.02),
}

REASONS: dict[str, str] = {
    "chat": "half a second feels like an answer begun; 30 tokens/s outruns a reader",
    "autocomplete": "text must stand before the next key stroke, and be whole soon after",
    "realtime": "people take turns within 0.2 to 0.3 s; varying delay breaks speech up",
    "agents": "many calls in a row: the pace counts more than the first token",
    "batch": "nobody waits for the first token; loss costs throughput and retries",
}


def budget(name: str, named: dict[str, Budget] = BUDGETS) -> Budget:
    """The budget of that name. Raises UsageError with the nearest name."""
    if name not in named:
        hint = did_you_mean(name, named)
        raise UsageError(f'no budget is named "{shown(name)}"{hint}', f"there are {', '.join(map(shown, named))}")
    return named[name]
