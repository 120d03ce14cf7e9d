"""The program that executes own checks, with each kind of file and check."""

import sys

import pytest

from tests.unit.harness.verdict.synthetic_run import make_run
from windtunnel.harness.checks import __main__ as program
from windtunnel.harness.checks.check import defined

HEAD = "from windtunnel.harness.checks import EvidenceMissing, check\n"


class Results:
    """Records the written results."""

    def __init__(self):
        self.written = []

    def write(self, document):
        self.written.append(document)


@pytest.fixture(scope="module")
def run_dir(tmp_path_factory):
    return make_run(tmp_path_factory.mktemp("runs") / "one").write()


@pytest.fixture
def execute(tmp_path, run_dir, monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))

    def execute(text, name="checks.py"):
        defined.clear()
        (tmp_path / "checks.py").write_text(HEAD + text)
        results = Results()
        error = program._execute(tmp_path, name, run_dir, results)
        count = len(defined)
        announced, made = results.written[:count], results.written[count:]
        assert {(each["outcome"], *each["texts"]) for each in announced} <= {("HARNESS",)}
        assert [each["name"] for each in announced] == [each["name"] for each in made]
        return error, [(each["name"], each["outcome"], each["texts"]) for each in made]

    yield execute
    defined.clear()
    sys.modules.pop(program.MODULE, None)


def one(body):
    return f"@check\ndef feed(evidence):\n    {body}\n"


@pytest.mark.parametrize(
    ("body", "outcome", "texts"),
    [
        ("return None", "PASS", []),
        ("return", "PASS", []),
        ("yield from ()", "PASS", []),
        ("return []", "PASS", []),
        ("return 'late by\\n  3 s'", "FAIL", ["late by 3 s"]),
        ("yield 'one'; yield 'two'", "FAIL", ["one", "two"]),
        ("return ('one', 'two')", "FAIL", ["one", "two"]),
        ("return 'a\\ud800b'", "FAIL", ["a?b"]),
        ("return str(sorted(evidence.hosts))", "FAIL", ["['a', 'b']"]),
        ("raise EvidenceMissing('no capture')", "INCONCLUSIVE", ["no capture"]),
        ("raise EvidenceMissing('torn', damaged=True)", "HARNESS", ["torn"]),
        ("return True", "HARNESS", ["checks.py:2: expected None, or a text that says what is "
                                    "wrong, found True"]),
        ("return 0", "HARNESS", ["checks.py:2: expected None, or a text that says what is wrong, "
                                 "found 0"]),
        ("return ''", "HARNESS", ["checks.py:2: expected None, or a text that says what is wrong, "
                                  "found ''"]),
        ("yield 'one'; yield 2", "HARNESS", ["checks.py:2: expected None, or a text that says "
                                             "what is wrong, found 2"]),
        ("return {'a': 1}", "HARNESS", ["checks.py:2: expected None, or a text that says what is "
                                        "wrong, found {'a': 1}"]),
        ("return evidence.nothing", "HARNESS", ["checks.py:4: AttributeError: 'Evidence' object "
                                                "has no attribute 'nothing'"]),
        ("yield 'one'; 1 / 0", "HARNESS", ["checks.py:4: ZeroDivisionError: division by zero"]),
        ("exit(3)", "HARNESS", ["checks.py:4: SystemExit: 3"]),
        ("feed(evidence)", "HARNESS", ["checks.py:4: RecursionError: maximum recursion depth "
                                       "exceeded"]),
    ],
)  # fmt: skip
def test_what_a_check_returns_is_its_outcome(execute, body, outcome, texts):
    error, ((name, found, found_texts),) = execute(one(body))
    assert (error, name, found) == ("", "feed", outcome)
    assert [each[: len(text)] for each, text in zip(found_texts, texts, strict=True)] == texts


def test_a_check_without_an_argument_is_an_error_of_its_line(execute):
    _, ((_, outcome, (text,)),) = execute("@check\ndef feed():\n    return None\n")
    assert outcome == "HARNESS"
    assert text.startswith("checks.py:2: TypeError: feed() takes 0 positional arguments")


def test_texts_are_limited_in_number_and_length(execute):
    body = "n = 0\n    while True:\n        n += 1\n        yield 'x' * 1000 + str(n)"
    _, ((_, outcome, texts),) = execute(one(body))
    assert outcome == "FAIL"
    assert [len(each) for each in texts] == [program.TEXT_LENGTH_MAX] * program.TEXTS_MAX
    assert texts[0].endswith("x...")


def test_the_checks_after_a_broken_one_are_executed(execute):
    text = "@check\ndef second(evidence):\n    return 1\n@check\ndef first(evidence):\n    return\n"
    _, found = execute(text)
    assert [(name, outcome) for name, outcome, _ in found] == [
        ("second", "HARNESS"), ("first", "PASS"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("\ndef x(:\n", "checks.py:3: SyntaxError: "),
        ("\n1 / 0\n", "checks.py:3: ZeroDivisionError: division by zero"),
        ("import no_such_module_here\n", "checks.py:2: ModuleNotFoundError: No module named"),
        ("raise SystemExit\n", "checks.py:2: SystemExit"),
        ("def feed(evidence):\n    return None\n", "checks.py: expected functions below @check"),
        (one("return") + one("return"), "checks.py:5: ValueError: two checks have the name 'feed'"),
        ("\0", "checks.py"),
    ],
)
def test_a_file_that_cannot_be_executed_is_an_error(execute, text, error):
    found, made = execute(text)
    assert found.startswith(error)
    assert [name for name, _, _ in made if name == "feed"] == []


def test_a_file_that_cannot_be_read_is_an_error(execute):
    error, _ = execute("", name="other.py")
    assert error.endswith("other.py: No such file or directory")


def test_it_imports_modules_beside_it_which_replace_no_other(execute, tmp_path):
    (tmp_path / "feed_rules_of_test.py").write_text("LIMIT = 5\n")
    (tmp_path / "json.py").write_text("raise ValueError('not this one')\n")
    text = "import json\nfrom feed_rules_of_test import LIMIT\n" + one("return json.dumps(LIMIT)")
    try:
        assert execute(text) == ("", [("feed", "FAIL", ["5"])])
    finally:
        sys.modules.pop("feed_rules_of_test", None)


def test_dataclasses_and_annotations_work(execute):
    text = "from __future__ import annotations\nfrom dataclasses import dataclass\n"
    defined.clear()
    body = "@dataclass\nclass Seen:\n    count: int = 3\n" + one("return str(Seen())")
    error, found = execute(body.join([text.splitlines()[1] + "\n", ""]))
    assert (error, found) == ("", [("feed", "FAIL", ["Seen(count=3)"])])
