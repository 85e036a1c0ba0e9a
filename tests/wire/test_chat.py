"""What an event of a chat stream carries, by table; the request's words; answers that are no stream."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hopscope.model.delta import Delta
from hopscope.wire.chat import body, endpoint, listing, models, prompt, read, refusal, retry_after_ns

SECOND = 1_000_000_000
VISIBLE = Delta(token=True, visible=True)
HIDDEN = Delta(token=True)
NOTHING = Delta()
STRANGE = Delta(known=False)


def delta(fields: object, **others: object) -> str:
    return json.dumps({"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": fields, **others}]})


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(delta({"content": "Hi"}), VISIBLE, id="content"),
        pytest.param(delta({"role": "assistant", "content": "Hi"}), VISIBLE, id="role and content"),
        pytest.param(delta({"content": " \n"}), VISIBLE, id="white space is text"),
        pytest.param(delta({"refusal": "No."}), VISIBLE, id="refusal"),
        pytest.param(delta({"reasoning": "hm"}), HIDDEN, id="reasoning"),
        pytest.param(delta({"content": "", "reasoning_content": "hm"}), HIDDEN, id="reasoning_content"),
        pytest.param(delta({"content": None, "tool_calls": [{"function": {"arguments": "{"}}]}), HIDDEN, id="tool"),
        pytest.param(delta({"tool_calls": [{"function": {"name": "f", "arguments": ""}}]}), HIDDEN, id="tool's name"),
        pytest.param(delta({"function_call": {"arguments": "1"}}), HIDDEN, id="function_call"),
        pytest.param(delta({"content": [{"type": "text", "text": "Hi"}]}), VISIBLE, id="parts"),
        pytest.param(delta({"content": [{"type": "thinking", "thinking": ["hm"]}]}), HIDDEN, id="a thinking part"),
        pytest.param(delta({"role": "assistant"}), NOTHING, id="20 role only"),
        pytest.param(delta({"role": "assistant", "content": ""}), NOTHING, id="role and empty content"),
        pytest.param(delta({"role": "assistant", "content": None}), NOTHING, id="content null"),
        pytest.param(delta({"tool_calls": [{"index": 0, "function": {"arguments": ""}}]}), NOTHING, id="empty tool"),
        pytest.param(delta({}), NOTHING, id="empty delta"),
        pytest.param(delta(None), NOTHING, id="delta null"),
        pytest.param(delta({}, finish_reason="stop"), Delta(finish_reason="stop"), id="finish reason"),
        pytest.param(delta({"content": "Hi"}, finish_reason=None), VISIBLE, id="no finish reason yet"),
        pytest.param('{"choices": []}', NOTHING, id="no choices"),
        pytest.param(
            '{"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 4}}',
            Delta(prompt_tokens=9, completion_tokens=4),
            id="21 usage with empty choices",
        ),
        pytest.param('{"choices": [], "usage": null}', NOTHING, id="usage null"),
        pytest.param(
            '{"choices": [], "usage": {"prompt_tokens": true, "completion_tokens": -1}}', NOTHING, id="usage absurd"
        ),
        pytest.param(
            '{"choices": [{"delta": {"content": "a b"}}], "usage": {"completion_tokens": 2}}',
            Delta(token=True, visible=True, completion_tokens=2),
            id="usage beside text",
        ),
        pytest.param('{"object": null, "choices": [{"delta": {"content": "Hi"}}]}', VISIBLE, id="object null"),
        pytest.param("[DONE]", Delta(done=True), id="done"),
        pytest.param(" [DONE] ", Delta(done=True), id="done and spaces"),
        pytest.param('{"error": {"message": "out of memory", "code": 500}}', Delta(error="out of memory"), id="error"),
        pytest.param('{"error": {"code": 500}}', Delta(error="500"), id="error without message"),
        pytest.param('{"error": {"param": []}}', Delta(error="no message"), id="error without words"),
        pytest.param('{"error": "overloaded"}', Delta(error="overloaded"), id="error as text"),
        pytest.param('{"object": "error", "message": "bad"}', Delta(error="bad"), id="bare error"),
        pytest.param('{"error": null, "choices": [{"delta": {"content": "Hi"}}]}', VISIBLE, id="error null"),
        pytest.param("", STRANGE, id="empty"),
        pytest.param(": ping", STRANGE, id="a comment by mistake"),
        pytest.param("{", STRANGE, id="half"),
        pytest.param("[]", STRANGE, id="a list"),
        pytest.param("{}", STRANGE, id="an object"),
        pytest.param('{"choices": [1]}', STRANGE, id="choices of another kind"),
        pytest.param('{"choices": {"delta": 1}}', STRANGE, id="no list of choices"),
        pytest.param("[" * 100_000, STRANGE, id="deep"),
        pytest.param("9" * 10_000, STRANGE, id="a long number"),
    ],
)
def test_what_an_event_carries(data: str, expected: Delta) -> None:
    assert read(data) == expected


@pytest.mark.parametrize(
    ("data", "error"),
    [('{"message": "bad"}', "bad"), ('{"detail": "bad"}', "bad"), ("{}", "no message"), ("gone", "gone"), ("", None)],
)
def test_an_event_called_error(data: str, error: str | None) -> None:
    assert read(data, "error").error == error


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["choices", "delta", "usage", "content", "tool_calls", "error"]), inner)
    ),
)


@given(st.one_of(st.text(), VALUES.map(json.dumps)))
def test_reading_never_raises(data: str) -> None:
    read(data)
    refusal(data.encode("utf-8", "replace"))
    models(data.encode("utf-8", "replace"))


@pytest.mark.parametrize(
    ("url", "asked", "listed"),
    [
        ("http://h:8000", "http://h:8000/v1/chat/completions", "http://h:8000/v1/models"),
        ("http://h/", "http://h/v1/chat/completions", "http://h/v1/models"),
        ("https://h/v1", "https://h/v1/chat/completions", "https://h/v1/models"),
        ("https://h/v1/", "https://h/v1/chat/completions", "https://h/v1/models"),
        ("https://h/openai", "https://h/openai/chat/completions", "https://h/openai/models"),
        ("https://h/a/chat/completions", "https://h/a/chat/completions", "https://h/a/models"),
        ("https://h/chat/completions?v=1#x", "https://h/chat/completions?v=1", "https://h/models?v=1"),
        ("https://h/v1?v=1", "https://h/v1/chat/completions?v=1", "https://h/v1/models?v=1"),
    ],
)
def test_where_to_ask(url: str, asked: str, listed: str) -> None:
    assert (endpoint(url), listing(url)) == (asked, listed)


def test_a_prompt_is_as_long_as_asked_and_begins_like_no_other() -> None:
    made = [prompt(seed, number, 100) for seed in (1, 2) for number in range(50)]
    assert {len(text.split()) for text in made} == {100}
    assert len({text.split()[0] for text in made}) == 100
    assert prompt(1, 0, 100) == made[0]
    assert len(prompt(1, 0, 1).split()) == 9


def test_the_body() -> None:
    assert json.loads(body('m"ü', "Hi", 7)) == {
        "model": 'm"ü',
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "max_tokens": 7,
    }


@pytest.mark.parametrize(
    ("listed", "names"),
    [
        (b'{"data": [{"id": "m"}, {"id": "n"}]}', ("m", "n")),
        (b'{"data": [{"id": ""}, {"id": 3}, {}, 4, {"id": "n"}]}', ("n",)),
        (b'{"data": []}', ()),
        (b'{"data": {"id": "m"}}', ()),
        (b"[]", ()),
        (b"<html>", ()),
        (b"\xff\xfe", ()),
        (b"", ()),
    ],
)
def test_models(listed: bytes, names: tuple[str, ...]) -> None:
    assert models(listed) == names


@pytest.mark.parametrize(
    ("answered", "message"),
    [
        (b'{"error": {"message": "no such model"}}', "no such model"),
        (b'{"detail": "Not Found"}', "Not Found"),
        (b'{"message": "bad"}', "bad"),
        (b"{}", "no message"),
        (b"<html>", None),
        (b'"text"', None),
    ],
)
def test_refusals(answered: bytes, message: str | None) -> None:
    assert refusal(answered) == message


@pytest.mark.parametrize(
    ("name", "value", "wait_ns"),
    [
        ("retry-after", "30", 30 * SECOND),
        ("retry-after", " 0.5 ", SECOND // 2),
        ("retry-after-ms", "1500", 3 * SECOND // 2),
        ("retry-after", "Sun, 06 Nov 1994 08:49:37 GMT", 7 * SECOND),
        ("retry-after", "Sun, 06 Nov 1994 08:49:00 GMT", 0),
        ("retry-after", "soon", None),
        ("retry-after", "-3", None),
        ("retry-after", "", None),
        ("retry-after", "9" * 400, None),
        ("retry-after", "Sun, 06 Nov 0000 08:49:00 GMT", None),
    ],
)
def test_retry_after_in_both_forms(name: str, value: str, wait_ns: int | None) -> None:
    now_ns = 784_111_770 * SECOND  # 1994-11-06T08:49:30Z
    assert retry_after_ns(name, value, now_ns) == wait_ns
