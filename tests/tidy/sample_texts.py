"""Draws docstrings and user-visible sentences at random, for readers who do not know the project.

    python -m tests.tidy.sample_texts [SEED] [ROOT]     100 docstrings, 60 sentences, numbered

A sentence is user-visible if it is the text of an exception, a finding, a help text, or printed.
"""

import ast
import random
import sys
from collections.abc import Iterator
from pathlib import Path

FOLDERS = ("driver", "harness", "reports")
DOCSTRINGS, SENTENCES = 100, 60
_SAYS = ("failed", "passed", "echo", "Fact", "secho", "Finding", "inconclusive", "could_not_look")
_WORDS_MIN = 4


def docstrings(tree: ast.Module) -> Iterator[tuple[str, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            text = ast.get_docstring(node)
            if text:
                yield getattr(node, "name", "module"), text.split("\n\n")[0]


def sentences(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        arguments: list[ast.expr] = []
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            arguments = node.exc.args
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            if name in _SAYS:
                arguments = node.args
            arguments = [*arguments, *(each.value for each in node.keywords if each.arg == "help")]
        for each in arguments:
            text = _text(each)
            if len(text.split()) >= _WORDS_MIN:
                yield text


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            f"<{ast.unparse(part.value)}>" if isinstance(part, ast.FormattedValue) else _text(part)
            for part in node.values
        )
    return ""


def main(seed: int, root: Path) -> None:
    described: list[str] = []
    visible: list[str] = []
    for folder in FOLDERS:
        for path in sorted((root / folder).rglob("*.py")):
            tree = ast.parse(path.read_text(encoding="utf-8"))
            place = path.relative_to(root)
            described += [f"{place}, {name}: {text}" for name, text in docstrings(tree)]
            visible += [f"{place}: {text}" for text in sentences(tree)]
    draw = random.Random(seed)
    for title, pool, count in (
        ("DOCSTRINGS", described, DOCSTRINGS),
        ("SENTENCES", visible, SENTENCES),
    ):
        print(f"{title} ({count} of {len(pool)}, seed {seed})\n")
        for number, text in enumerate(draw.sample(pool, count), 1):
            print(f"{number}. {text}\n")


if __name__ == "__main__":
    words = sys.argv[1:]
    main(int(words[0]) if words else 1, Path(words[1]) if len(words) > 1 else Path.cwd())
