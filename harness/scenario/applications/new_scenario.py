"""The text of a new scenario for programs of the user's own, with comments for the next steps.

The text is written for people: it has comments, and one line for each application's key. The lines
from `NEXT` on are comments that become valid keys without their `# `.
"""

import json
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Any

from windtunnel.harness.scenario.applications.placeholder import SCENARIO_DIRECTORY
from windtunnel.harness.scenario.loader import parse_scenario

NEXT = "# Remove `# ` from lines below to use them."
_FILE_NAME = re.compile(r"[\w./-]+\.(py|jar|sh|js|rb|dll|exe)")
_ID_LENGTH_MAX = 36
"""The ids of programs of the same name get numbers, which need a few characters more."""
_NO_TEXTS = ("null", "true", "false", "yes", "no", "on", "off")
"""Words that YAML takes for a null or a boolean."""
_WALL_S = 60
"""Longest time of a run, apart from the time after which it ends by itself."""


@dataclass(frozen=True)
class NewProgram:
    """A program of the user, and the host on which it runs."""

    host: str
    words: Sequence[str]


@dataclass(frozen=True)
class NewScenario:
    """What a new scenario contains."""

    name: str
    programs: Sequence[NewProgram]
    """In the order in which they are started."""
    impairments: Mapping[str, Any]
    """The impairments of each link in both directions, as in a scenario file."""
    variables: Mapping[str, str] = field(default_factory=dict)
    """Environment variables of all programs."""
    ready: Mapping[str, str] = field(default_factory=dict)
    """For each host, the text in the logs of its programs that shows that they are ready."""
    never: Mapping[str, str] = field(default_factory=dict)
    """For each host, a text that no line in the logs of its programs contains."""
    lasts_s: int = 20
    """Time after which the run ends, in seconds, if it does not wait for programs."""
    until: Collection[str] = ()
    """Hosts whose programs end by themselves, which ends the run."""

    @property
    def hosts(self) -> list[str]:
        """The hosts of the programs, sorted by name."""
        return sorted({each.host for each in self.programs})

    def absent_files(self, folder: Path) -> list[str]:
        """Return the words of commands that look like files of the folder, but do not exist."""
        words = [word for program in self.programs for word in program.words]
        return [each for each in words if _is_file_name(each) and not (folder / each).exists()]

    def text(self, folder: Path) -> str:
        """Return the scenario file, which will be in a folder. Raises ScenarioError if a value
        cannot be in a scenario.

        A word of a command that names a file in the folder gets the folder as a placeholder,
        because programs are started in another one.
        """
        text = "\n".join(self._lines(folder)) + "\n"
        parse_scenario(text, f"{self.name}.yaml")
        return text

    def _lines(self, folder: Path) -> Iterator[str]:
        yield f"# To run it: windtunnel run {self.name}.yaml --allow-commands"
        yield "schema: windtunnel/1"
        yield f"name: {_name(self.name)}"
        yield "about: |"
        yield f"  {self._about()}"
        yield "seeds: {root: 1}"
        yield "network:"
        yield f"  hosts: {_names(self.hosts)}"
        yield from self._links()
        yield "applications:                # started in this order"
        ids = _ids(self.programs)
        for name, program in zip(ids, self.programs, strict=True):
            then = "events count from here" if name == ids[-1] else "the next program waits for it"
            yield from self._application(name, program, folder, then)
        if not self.until:
            yield f"  - id: end-after-{self.lasts_s}s         # the run ends with this command"
            yield f"    on: {_name(self.hosts[0])}"
            yield f'    command: ["sleep", "{self.lasts_s}"]'
            yield "    driver: none"
            yield "    expect: {ends_by_itself: true}"
        yield "observe: all                 # judge all streams between the hosts"
        wall_s = _WALL_S + (0 if self.until else self.lasts_s)
        yield f"budget: {{wall: {wall_s}s}}          # longest time of a run"
        yield ""
        yield from self._next()

    def _about(self) -> str:
        found = " and ".join(f"{' '.join(each.words)} on {each.host}" for each in self.programs)
        return f"{found}.".replace("\n", " ")

    def _links(self) -> Iterator[str]:
        table = ""
        if self.impairments:
            table = f", impairments: {{both: {_flow(dict(self.impairments))}}}"
        pairs = [f"{{between: {_names(pair)}{table}}}" for pair in combinations(self.hosts, 2)]
        if len(pairs) == 1:
            yield f"  link: {pairs[0]}"
            return
        yield "  links:"
        yield from (f"    - {each}" for each in pairs)

    def _application(
        self, name: str, program: NewProgram, folder: Path, then: str
    ) -> Iterator[str]:
        words = [_in_folder(word, folder) for word in program.words]
        yield f"  - id: {_name(name)}"
        yield f"    on: {_name(program.host)}"
        yield f"    command: {json.dumps(words, ensure_ascii=False)}"
        if self.variables:
            yield f"    env: {json.dumps(dict(self.variables), ensure_ascii=False)}"
        ready = self.ready.get(program.host)
        if ready is not None:
            yield f"    ready: {{log: {json.dumps(ready, ensure_ascii=False)}}}   # {then}"
        else:
            yield f'    # ready: {{log: "a text in its log"}}   # {then}'
        expected = ["ends_by_itself: true"] if program.host in self.until else []
        never = self.never.get(program.host)
        if never is not None:
            expected.append(f"log_never: [{json.dumps(never, ensure_ascii=False)}]")
        hint = 'log_never: ["Exception"]'
        if not expected:
            yield f"    # expect: {{{hint}}}"
        else:
            also = f"   # also: {hint}" if never is None else ""
            yield f"    expect: {{{', '.join(expected)}}}{also}"

    def _next(self) -> Iterator[str]:
        first, last = _name(self.hosts[0]), _name(self.hosts[-1])
        yield NEXT
        yield "# events:"
        act = "act: {partition: 1s}"
        yield f"#   - {{id: cut, whom: {{host: {last}}}, when: {{after: 3s}}, {act}}}"
        whom = f"whom: {{host: {first}, process: driver}}"
        yield f"#   - {{id: stall, {whom}, when: {{after: 6s}}, act: {{pause: 500ms}}}}"


def _name(text: str) -> str:
    """Return a name in YAML, with quotes if it would be a boolean, a null or a number without."""
    is_plain = re.fullmatch(r"[a-zA-Z][a-zA-Z0-9./-]*", text) and text.lower() not in _NO_TEXTS
    return text if is_plain else json.dumps(text)


def _names(names: Iterable[str]) -> str:
    return f"[{', '.join(map(_name, names))}]"


def _flow(value: Any) -> str:
    """Return impairments as YAML in one line, with quotes only where they are needed."""
    if isinstance(value, dict):
        return f"{{{', '.join(f'{key}: {_flow(each)}' for key, each in value.items())}}}"
    text = str(value)
    return text if re.fullmatch(r"[a-zA-Z0-9.%/+-]+", text) else json.dumps(text)


def _ids(programs: Sequence[NewProgram]) -> list[str]:
    """Return an id for each program: the name of its file, with a number where it occurs again."""
    seen: Counter[str] = Counter()
    found = []
    for program in programs:
        name = _id(program.words)
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return found


def _id(words: Sequence[str]) -> str:
    files = [word for word in words if _FILE_NAME.fullmatch(word)]
    stem = Path(files[0] if files else words[0]).stem.lower()
    return re.sub(r"[^a-z0-9]+", "-", stem).strip("-")[:_ID_LENGTH_MAX] or "program"


def _may_be_own(word: str) -> bool:
    """Return whether a word may name a file in or near the scenario's folder."""
    return not word.startswith(("/", "-", "$"))


def _is_file_name(word: str) -> bool:
    """Return whether a word names a program or archive, but not by an absolute path."""
    return _may_be_own(word) and (word.startswith("./") or bool(_FILE_NAME.fullmatch(word)))


def _in_folder(word: str, folder: Path) -> str:
    if _may_be_own(word) and "/.." not in f"/{word}" and (folder / word).is_file():
        return f"${{{SCENARIO_DIRECTORY}}}/{word}"
    return word
