"""Mutation operators: small edits of the expressions and statements in a function.

    comparison   a < b     -> a <= b, a >= b        sign         a + b     -> a - b
    constant     3         -> 4                     extreme      min(a, b) -> max(a, b)
    connective   a and b   -> a or b                negation     not a     -> a
    drop         f(a); x.a = b; x += 1 -> pass      frame        x_offset = a -> a + 32
    arguments    f(a_id, b_offset) -> f(b_offset, a_id)

An edited kernel must still compile, so an operator keeps the types of what it edits: arguments are
exchanged only if their names say that both are numbers, and constants that index a tuple stay.
An edit that cannot change a result is left out: `if a < b: a = b` and `a if a < b else b` give the
same value with `<=`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

_OPPOSITES: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
}
_EXTREMES = {"min": "max", "max": "min"}
_NUMBERS = ("offset", "position", "length", "limit", "id", "ns")
_FRAME_NUMBERS = ("offset", "position", "length", "limit")
_FRAME_LENGTH = 32
_Text = ast.Constant | ast.JoinedStr | ast.List | ast.Tuple | ast.Dict


class Edit(NamedTuple):
    """One edit: an operator's name, the node that it replaces, and the node in its place."""

    operator: str
    node: ast.expr | ast.stmt
    other: ast.expr | ast.stmt

    @property
    def text(self) -> str:
        """The source code in place of the node."""
        text = ast.unparse(self.other)
        return text if isinstance(self.other, ast.Pass | ast.Constant) else f"({text})"


def edits(function: ast.FunctionDef) -> Iterator[Edit]:
    """Yield all edits of a function's body. Annotations, docstrings, assertions and exceptions are
    left alone.
    """
    choices = {each.test for each in ast.walk(function) if _chooses_extreme(each)}
    for statement in function.body:
        for edit in _in(statement, is_looping=False):
            if edit.node not in choices or not _differs_for_equals_only(edit):
                yield edit


def _chooses_extreme(node: ast.AST) -> TypeGuard[ast.If | ast.IfExp]:
    """Return whether a node compares two values and chooses one of these two."""
    match node:
        case ast.If(
            test=ast.Compare(left=left, comparators=[right]),
            body=[ast.Assign(targets=[one], value=other)],
            orelse=[],
        ):
            pass
        case ast.IfExp(test=ast.Compare(left=left, comparators=[right]), body=one, orelse=other):
            pass
        case _:
            return False
    return {ast.unparse(left), ast.unparse(right)} == {ast.unparse(one), ast.unparse(other)}


def _differs_for_equals_only(edit: Edit) -> bool:
    """Return whether an edit of a comparison changes its result only for equal values."""
    if not isinstance(edit.node, ast.Compare) or not isinstance(edit.other, ast.Compare):
        return False
    kinds = {type(edit.node.ops[0]), type(edit.other.ops[0])}
    return kinds in ({ast.Lt, ast.LtE}, {ast.Gt, ast.GtE})


def _in(node: ast.AST, *, is_looping: bool) -> Iterator[Edit]:
    """Yield the edits of a node and of everything in it.

    `is_looping` is set in the body of `while`, where a statement is not dropped, because the loop
    might then never end.
    """
    if isinstance(node, ast.Assert | ast.Raise | ast.FunctionDef | ast.Lambda | ast.JoinedStr):
        return
    if isinstance(node, ast.stmt):
        yield from _of_statement(node, is_looping=is_looping)
    elif isinstance(node, ast.expr):
        yield from _of_expression(node)
    for name, value in ast.iter_fields(node):
        is_fixed = name in ("annotation", "decorator_list", "ctx") or (
            isinstance(node, ast.Subscript) and isinstance(value, ast.Constant)
        )
        for child in () if is_fixed else value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield from _in(child, is_looping=is_looping or isinstance(node, ast.While))


def _of_statement(node: ast.stmt, *, is_looping: bool) -> Iterator[Edit]:
    is_call = isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
    targets = node.targets if isinstance(node, ast.Assign) else []
    is_store = bool(targets) and all(
        isinstance(each, ast.Attribute | ast.Subscript) for each in targets
    )
    if not is_looping and (is_call or is_store or isinstance(node, ast.AugAssign)):
        yield Edit("drop", node, ast.Pass())
    if len(targets) == 1 and _last_word(targets[0]) in _FRAME_NUMBERS:
        assert isinstance(node, ast.Assign)
        # An element of the state's arrays is a record, to which nothing can be added.
        is_element = isinstance(node.value, ast.Subscript) and isinstance(
            node.value.value, ast.Attribute
        )
        if not _is_text(node.value) and not is_element:
            more = ast.BinOp(node.value, ast.Add(), ast.Constant(_FRAME_LENGTH))
            yield Edit("frame", node.value, more)


def _of_expression(node: ast.expr) -> Iterator[Edit]:
    match node:
        case ast.Compare(ops=[operator]):
            for other in _OPPOSITES.get(type(operator), ()):
                yield _changed("comparison", node, ops=[other()])
        case ast.Constant(value=int(value)) if not isinstance(value, bool):
            yield Edit("constant", node, ast.Constant(value + 1))
        case ast.BinOp(op=ast.Add() | ast.Sub()) if not _is_text(node.left, node.right):
            other_op = ast.Sub() if isinstance(node.op, ast.Add) else ast.Add()
            yield _changed("sign", node, op=other_op)
        case ast.UnaryOp(op=ast.Not()):
            yield _changed("negation", node, operand=ast.UnaryOp(ast.Not(), node.operand))
        case ast.BoolOp():
            other_join = ast.Or() if isinstance(node.op, ast.And) else ast.And()
            yield _changed("connective", node, op=other_join)
        case ast.Call(func=ast.Name(id=("min" | "max") as name)):
            yield _changed("extreme", node, func=ast.Name(_EXTREMES[name], ast.Load()))
        case ast.Call(args=[*arguments]):
            yield from _exchanged(node, arguments)


def _exchanged(node: ast.Call, arguments: list[ast.expr]) -> Iterator[Edit]:
    for index in range(len(arguments) - 1):
        pair = arguments[index : index + 2]
        names = {each.id for each in pair if isinstance(each, ast.Name)}
        if len(names) == 2 and all(_last_word(each) in _NUMBERS for each in pair):
            order = [*arguments[:index], pair[1], pair[0], *arguments[index + 2 :]]
            yield _changed("arguments", node, args=order)


def _changed(operator: str, node: ast.expr, **fields: object) -> Edit:
    other = copy.copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return Edit(operator, node, other)


def _is_text(*nodes: ast.expr) -> bool:
    return any(
        isinstance(each, _Text)
        and not (isinstance(each, ast.Constant) and isinstance(each.value, int))
        for each in nodes
    )


def _last_word(node: ast.expr) -> str:
    name = node.id if isinstance(node, ast.Name) else getattr(node, "attr", "")
    return name.rsplit("_", 1)[-1]
