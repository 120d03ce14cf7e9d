"""Documents of a run folder have limits that no real one reaches."""

import pytest

from windtunnel.harness.artifact import documents
from windtunnel.harness.artifact.documents import DEPTH_MAX, DocumentError, parse_text


@pytest.mark.parametrize(("begin", "end"), [('{"a":', "}"), ("[", "]")])
def test_the_depth_is_limited(begin: str, end: str) -> None:
    def nested(depth: int) -> str:
        return '{"a":' + begin * (depth - 1) + "1" + end * (depth - 1) + "}"

    assert "a" in parse_text(nested(DEPTH_MAX), "x.json")
    with pytest.raises(DocumentError, match=r"^x\.json: objects and lists are nested more than 32"):
        parse_text(nested(DEPTH_MAX + 1), "x.json")


def test_the_number_of_values_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "VALUES_MAX", 4)
    assert parse_text('{"a": [1, 2, 3]}', "x.json") == {"a": [1, 2, 3]}
    with pytest.raises(DocumentError, match=r"^x\.json: expected at most 4 values, found more"):
        parse_text('{"a": [1, 2, 3, 4]}', "x.json")
