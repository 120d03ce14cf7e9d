"""The outline of a text has its functions and imports, in whatever statements they are."""

import ast
from pathlib import Path

from tests.tidy.syntax import outline, statements

EVERYWHERE = '''
"""A docstring."""
import a.b, c
from d.e import f
from . import g

class H:
    async def i(self):
        def j(): return lambda: (x for x in y)

if k:
    import l
elif m:
    import n
else:
    import o
for p in q:
    import r
else:
    import s
while t:
    import u
with v:
    import w
try:
    import x1
except E:
    import x2
else:
    import x3
finally:
    import x4
try:
    pass
except* E:
    import x5
match z:
    case 1:
        import x6
    case _ if (lambda: 1):
        def x7():
            pass
'''


def test_functions_and_imports_are_found_in_every_statement():
    found = outline(EVERYWHERE.lstrip())
    assert found.has_docstring
    assert [name for _, name in found.imports] == [
        *("a", "c", "d", "l", "n", "o", "r", "s", "u", "w"),
        *("x1", "x2", "x3", "x4", "x5", "x6"),
    ]
    assert found.functions == ((7, "i", 2), (8, "j", 1), (40, "x7", 2))
    assert not outline("x = 1\n").has_docstring


def test_no_statement_of_a_real_text_is_skipped():
    tree = ast.parse(Path(ast.__file__).read_text(encoding="utf-8"))
    expected = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    found = [node for node in statements(tree) if isinstance(node, ast.stmt)]
    assert len(found) == len(expected)
    assert {id(node) for node in found} == {id(node) for node in expected}
