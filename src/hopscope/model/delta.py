"""What one event of a chat stream carries, and when it came: passed from whoever reads the wire to the engine."""

from typing import NamedTuple

from msgspec import Struct


class Moment(NamedTuple):
    """When bytes came, anchored ns: `at` in user space, `stamp` in the kernel if it told."""

    at: int
    stamp: int | None


class Delta(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One event. `token`: it carries generated text of any channel, `visible`: of the one that people read.

    `completion_tokens` counts from the start of the answer, wherever it stands. `known` is false for an event that is
    nothing this API has. Text is as the server sent it: hostile until it has been cleaned.
    """

    token: bool = False
    visible: bool = False
    finish_reason: str | None = None
    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    error: str | None = None
    done: bool = False
    known: bool = True
