"""A value that no lab could have is refused when it is made."""

import pytest

from hopscope.errors import HopscopeError
from hopscope.lab.topology import CLEAN, Block, Impairment, Inference, LabError, Link


@pytest.mark.parametrize("loss", [-0.01, 1.01, 12.0])
def test_loss_is_a_ratio(loss: float) -> None:
    with pytest.raises(LabError, match="loss") as caught:
        Impairment(loss=loss)
    assert caught.value.advice == "Give a ratio from 0 to 1."


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: Impairment(delay_ms=-1),
        lambda: Impairment(jitter_ms=-1),
        lambda: Impairment(rate_mbit=0),
        lambda: Impairment(rate_mbit=1, queue_ms=-1),
        lambda: Inference(port=0),
        lambda: Inference(port=65536),
        lambda: Inference(port=80, think_ms=-1),
        lambda: Inference(port=80, slots=0),
        lambda: Inference(port=80, models=()),
        lambda: Inference(port=80, status=100),
        lambda: Inference(port=80, status=600),
        lambda: Block(to="h", port=0),
        lambda: Block(to="h", port=65536),
    ],
)
def test_what_cannot_be_is_refused(wrong: type) -> None:
    with pytest.raises(LabError):
        wrong()


def test_a_link_is_relayed_only_if_it_must_be() -> None:
    assert not Link(a="a", b="b").relayed
    assert not Link(a="a", b="b", forward=Impairment(), back=CLEAN).relayed
    assert Link(a="a", b="b", adjustable=True).relayed
    assert Link(a="a", b="b", back=Impairment(loss=0.1)).relayed


def test_lab_errors_are_mistakes_with_a_remedy() -> None:
    assert issubclass(LabError, HopscopeError)
    assert LabError.exit_code == 3
