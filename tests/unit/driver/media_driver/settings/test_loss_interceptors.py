"""Arguments of the loss interceptors."""

import pytest

from windtunnel.driver.base.errors import ConfigurationError
from windtunnel.driver.media_driver.settings import loss_interceptors
from windtunnel.driver.media_driver.settings.loss_interceptors import (
    FixedLoss,
    MultiGapLoss,
    RandomLoss,
)

PARSERS = {
    "loss": loss_interceptors.parse_random_loss,
    "fixed-loss": loss_interceptors.parse_fixed_loss,
    "multi-gap-loss": loss_interceptors.parse_multi_gap_loss,
}


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("loss", "rate=0.2|seed=10|recv-msg-mask=0xF", RandomLoss(0.2, 10, 15)),
        ("loss", "rate=1e-2|recv-msg-mask=f", RandomLoss(0.01, 0, 15)),
        ("loss", "seed=18446744073709551615|rate=1", RandomLoss(1.0, (1 << 64) - 1, 0)),
        ("fixed-loss", "length=4096|term-id=-1|term-offset=0", FixedLoss(-1, 0, 4096)),
        (
            "multi-gap-loss",
            "term-id=3|gap-radix=8192|gap-length=1408|total-gaps=100",
            MultiGapLoss(3, 8192, 1408, 100),
        ),
    ],
)
def test_arguments_are_read_and_written_back(name, text, expected):
    found = PARSERS[name]("SETTING", text)
    assert found == expected
    assert PARSERS[name]("SETTING", str(found)) == found


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("loss", "rate=1.1"),
        ("loss", "rate=-0.1"),
        ("loss", "rate=nan"),
        ("loss", "rate=much"),
        ("loss", "rate="),
        ("loss", "rate"),
        ("loss", "rate=0.1|"),
        ("loss", "loss=0.1"),
        ("loss", "seed=1.5"),
        ("loss", "recv-msg-mask=0xg"),
        ("loss", "recv-msg-mask=0x100000000"),
        ("fixed-loss", "term-id=1|term-offset=0"),
        ("fixed-loss", "term-id=1|term-offset=-1|length=5"),
        ("fixed-loss", "term-id=2147483648|term-offset=0|length=5"),
        ("multi-gap-loss", "term-id=1|gap-radix=0|gap-length=1|total-gaps=1"),
        ("multi-gap-loss", "term-id=1|gap-radix=8|gap-length=1"),
    ],
)
def test_invalid_arguments_are_rejected_with_the_name_of_their_setting(name, text):
    with pytest.raises(ConfigurationError, match="SETTING"):
        PARSERS[name]("SETTING", text)


def test_a_rate_of_zero_is_written_as_no_interceptor():
    assert (str(FixedLoss()), str(MultiGapLoss())) == ("", "")
    assert loss_interceptors.parse_random_loss("SETTING", str(RandomLoss())) == RandomLoss()
