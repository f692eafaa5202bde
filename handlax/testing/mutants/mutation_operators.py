"""The mutation operators: for each kind of mistake, what may stand in the place of a part of the code.

Each is a function of a place, and yields syntax trees; ``OPERATORS`` has them by name. They are the mistakes of array
programs, so that `add`, `neg` and `conj` are operators here as ``+`` and ``-`` are.

Source: Offutt et al., "An Experimental Determination of Sufficient Mutant Operators", TOSEM 5 (1996), for the first
five and ``comparison``
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, TypeVar

Node = TypeVar("Node", bound=ast.AST)
Definition = ast.FunctionDef | ast.AsyncFunctionDef


class MutableSite(NamedTuple):
    """A place in a syntax tree: the node there, and ``parent.field``, or an item of that list, which holds it."""

    node: ast.AST
    parent: ast.AST
    field: str
    item: int | None
    statement: ast.stmt | None  # the innermost one around it, or itself
    function: Definition | ast.Lambda | None  # the innermost one whose body it is in; None: executed by the import

    def put(self, node: ast.AST) -> None:
        """Let another node stand in this place."""
        if self.item is None:
            setattr(self.parent, self.field, node)
        else:
            getattr(self.parent, self.field)[self.item] = node


Operator = Callable[[MutableSite], Iterator[ast.AST]]

SUMS, PRODUCTS = {"add", "sub", "subtract"}, {"mul", "multiply", "div", "divide", "true_divide", "matmul", "dot"}
OF_ONE = {"neg", "negative", "conj", "conjugate", "stop_gradient", "abs", "reversed", "sorted", "convert"}
COMMUTATIVE = {
    "max", "min", "maximum", "minimum", "eq", "ne", "equal", "not_equal", "bitwise_and", "bitwise_or", "promote_types",
}
AXES = {"axis", "axes", "dim", "dims", "dimension", "dimensions", "argnums", "in_axes", "out_axes"}
CHECKS = ("need", "check", "require", "refuse", "assert", "same", "ensure", "validate")
OTHER_DTYPE = {
    "bool_": "int32", "uint8": "int32", "uint32": "int32", "int32": "int64", "int64": "int32", "float16": "float32",
    "bfloat16": "float32", "float32": "float64", "float64": "float32", "complex64": "complex128",
    "complex128": "complex64",
}
OTHER_COMPARISON: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}


def altered(node: Node, **fields: Any) -> Node:
    """A copy of a node with other fields."""
    return type(node)(**{**dict(ast.iter_fields(node)), **fields})


def called(node: ast.AST) -> str:
    """The name of the function that a call calls, without what it is an attribute of; "" of anything else."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def block(statements: list[ast.stmt]) -> ast.stmt:
    """Several statements in the place of one."""
    return ast.If(ast.Constant(True), statements, []) if statements else ast.Pass()


def more(node: ast.expr, by: int = 1) -> ast.expr:
    return ast.BinOp(node, ast.Add() if by > 0 else ast.Sub(), ast.Constant(abs(by)))


def is_text(node: ast.AST) -> bool:
    """Whether an expression is evidently a text or a sequence, which ``+`` concatenates."""
    return isinstance(node, ast.JoinedStr | ast.Tuple | ast.List | ast.ListComp) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str))


def is_guard(node: ast.AST) -> bool:
    """Whether a statement can only refuse: it raises under a condition, asserts, or calls what is named as a check."""
    match node:
        case ast.If(body=[ast.Raise()]) | ast.Assert():
            return True
        case ast.Expr(value=ast.Call() as call):
            return called(call).lstrip("_").startswith(CHECKS)
    return False


def sign(site: MutableSite) -> Iterator[ast.AST]:
    """``a + b`` as ``a - b``, ``add(a, b)`` as ``add(a, -b)``, ``-a`` as ``a``."""
    match site.node:
        case ast.BinOp(left, ast.Add(), right) if not (is_text(left) or is_text(right)):
            yield ast.BinOp(left, ast.Sub(), right)
        case ast.BinOp(left, ast.Sub(), right):
            yield ast.BinOp(left, ast.Add(), right)
        case ast.Call(args=[left, right]) if called(site.node) in SUMS:
            yield altered(site.node, args=[left, ast.UnaryOp(ast.USub(), right)])
        case ast.UnaryOp(ast.USub(), operand):
            yield operand


def term(site: MutableSite) -> Iterator[ast.AST]:
    """``a + b`` as ``a`` and as ``b``, also of unions, intersections and ``add(a, b)``."""
    match site.node:
        case ast.BinOp(left, ast.Add() | ast.Sub() | ast.BitOr() | ast.BitAnd(), right) if not of_types(site):
            yield from (left, right)
        case ast.Call(args=[left, right]) if called(site.node) in SUMS:
            yield from (left, right)


def factor(site: MutableSite) -> Iterator[ast.AST]:
    """``a * b`` as ``a`` and as ``b``, ``a / b`` as ``a``; also of ``mul(a, b)``, and ``conj(a)`` as ``a``."""
    match site.node:
        case ast.BinOp(left, ast.Mult() | ast.MatMult(), right):
            yield from (left, right)
        case ast.BinOp(left, ast.Div() | ast.FloorDiv() | ast.Mod() | ast.Pow(), _) if not is_text(left):
            yield left
        case ast.Call(args=[left, _]) if called(site.node) in PRODUCTS:
            yield left
        case ast.Call(args=[operand, *_]) if called(site.node) in OF_ONE:
            yield operand


def index(site: MutableSite) -> Iterator[ast.AST]:
    """An index, the end of a slice or a range, or an axis, off by one."""
    match site.parent, site.node:
        case (ast.Subscript() | ast.Slice(), ast.Constant(value=int(n))) if site.field != "value":
            yield ast.Constant(n + 1)
        case ast.keyword(arg=name), ast.Constant(value=int(n)) if name in AXES and not isinstance(n, bool):
            yield ast.Constant(n + 1)
        case ast.Slice(), ast.expr() as end:
            yield more(end)
        case _, ast.Call(func=ast.Name("range"), args=[stop]):
            yield altered(site.node, args=[ast.Constant(1), stop])
            yield altered(site.node, args=[more(stop, -1)])


def constant(site: MutableSite) -> Iterator[ast.AST]:
    """Another number, and the other truth value."""
    if isinstance(site.parent, ast.Subscript | ast.Slice) or getattr(site.parent, "arg", None) in AXES:
        return
    match site.node:
        case ast.Constant(value=bool(truth)):
            yield ast.Constant(not truth)
        case ast.Constant(value=int() | float() as number):
            yield ast.Constant(number + 1)


def dtype(site: MutableSite) -> Iterator[ast.AST]:
    """A wrong dtype: ``float64`` for ``float32``, ``int64`` for ``int32``."""
    match site.node:
        case ast.Constant(value=str(name)) if name in OTHER_DTYPE:
            yield ast.Constant(OTHER_DTYPE[name])
        case ast.Attribute(value=ast.Name() as module, attr=name) if name in OTHER_DTYPE:
            yield ast.Attribute(module, OTHER_DTYPE[name], ast.Load())
        case ast.Name(id=name, ctx=ast.Load()) if name in OTHER_DTYPE:
            yield ast.parse(f"__import__('numpy').dtype('{OTHER_DTYPE[name]}')", mode="eval").body


def comparison(site: MutableSite) -> Iterator[ast.AST]:
    """``<`` as ``<=``, ``==`` as ``!=``, ``in`` as ``not in``."""
    match site.node:
        case ast.Compare(ops=ops):
            for i, op in enumerate(ops):
                yield altered(site.node, ops=[*ops[:i], OTHER_COMPARISON[type(op)](), *ops[i + 1 :]])


def condition(site: MutableSite) -> Iterator[ast.AST]:
    """A condition negated, always true, always false, or without one of its parts."""
    match site.node:
        case ast.If(test=test) | ast.IfExp(test=test) if not is_guard(site.node):
            for other in ast.UnaryOp(ast.Not(), test), ast.Constant(True), ast.Constant(False):
                yield altered(site.node, test=other)
        case ast.While(test=test) if not isinstance(test, ast.Constant):
            yield altered(site.node, test=ast.Constant(False))
        case ast.BoolOp(values=values):
            for i in range(len(values)):
                yield altered(site.node, values=rest) if len(rest := values[:i] + values[i + 1 :]) > 1 else rest[0]
        case ast.comprehension(ifs=[_, *_]):
            yield altered(site.node, ifs=[])


def guard(site: MutableSite) -> Iterator[ast.AST]:
    """A refusal removed: ``if ...: raise``, an assertion, a call of a check."""
    if is_guard(site.node):
        yield block(getattr(site.node, "orelse", []))


def argument(site: MutableSite) -> Iterator[ast.AST]:
    """An argument dropped, or exchanged with the next one."""
    match site.node:
        case ast.Call(args=args, keywords=keywords) if called(site.node) not in {"isinstance", *SUMS, *PRODUCTS}:
            if len(args) > 1 and not any([isinstance(x, ast.Starred) for x in args]):
                for i in range(len(args) - 1 if called(site.node) not in COMMUTATIVE else 0):
                    if ast.dump(args[i]) != ast.dump(args[i + 1]):
                        yield altered(site.node, args=[*args[:i], args[i + 1], args[i], *args[i + 2 :]])
                yield altered(site.node, args=args[:-1])
            for i, keyword in enumerate(keywords):
                if keyword.arg not in (None, *OF_PERFORMANCE):
                    yield altered(site.node, keywords=keywords[:i] + keywords[i + 1 :])


def statement(site: MutableSite) -> Iterator[ast.AST]:
    """Something not done: a call for its effect, such as a wait, or an assignment into an object."""
    match site.node:
        case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign() | ast.Delete() if not is_guard(site.node):
            yield ast.Pass()
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target]) if not of_cache(target):
            yield ast.Pass()


def context(site: MutableSite) -> Iterator[ast.AST]:
    """A lock not taken, a scope not entered, and what ``finally`` says not done."""
    match site.node:
        case ast.With(items=[*items], body=body) if not any([item.optional_vars for item in items]):
            yield block(body)
        case ast.Try(finalbody=[_, *_], handlers=[], body=body):
            yield block(body)


def key(site: MutableSite) -> Iterator[ast.AST]:
    """A key of a cache, or a value's identity, without one of its parts."""
    match site.node:
        case ast.Tuple(elts=[_, _, *_] as parts, ctx=ast.Load()) if of_key(site):
            for i in range(len(parts)):
                yield altered(site.node, elts=parts[:i] + parts[i + 1 :])


def result(site: MutableSite) -> Iterator[ast.AST]:
    """Another value returned: the first argument for the result of a call, results in another order, None."""
    match site.node:
        case ast.Return(value=value) | ast.Lambda(body=value):
            field = "value" if isinstance(site.node, ast.Return) else "body"
        case _:
            return
    match value:
        case ast.Call(args=[ast.expr() as first, *_]) if not isinstance(first, ast.Starred | ast.GeneratorExp):
            yield altered(site.node, **{field: first})
        case ast.Tuple(elts=[_, _, *_] as parts):
            yield altered(site.node, **{field: altered(value, elts=parts[::-1])})
        case ast.Name() | ast.Attribute() | ast.Subscript():
            yield altered(site.node, **{field: ast.Constant(None)})


OF_PERFORMANCE = {"maxsize", "bound", "costly", "capacity"}  # arguments that results do not depend on


def of_types(site: MutableSite) -> bool:
    """Whether a module names a union of types, for annotations."""
    types = {"None", "int", "float", "complex", "bool", "str", "bytes", "tuple", "Any"}
    return site.function is None and any([
        isinstance(node, ast.Subscript) or ast.unparse(node) in types for node in ast.walk(site.node)])


def of_cache(node: ast.AST) -> bool:
    """Whether something is stored where it is only found faster the next time."""
    return any([word in ast.unparse(node).lower() for word in ("cache", "memo", "_known")])


def of_key(site: MutableSite) -> bool:
    """Whether a tuple is a key: returned by, or assigned to, what has the word in its name, or looked up."""
    match site.parent:
        case ast.Return():
            return any([word in getattr(site.function, "name", "") for word in ("key", "hash", "identity")])
        case ast.Assign(targets=[target]):
            return "key" in ast.unparse(target)
        case ast.Subscript(value=container) | ast.Call(func=ast.Attribute(value=container)):
            return of_cache(container)
    return False


OPERATORS: dict[str, Operator] = {
    "sign": sign, "term": term, "factor": factor, "index": index, "constant": constant, "dtype": dtype,
    "comparison": comparison, "condition": condition, "guard": guard, "argument": argument, "statement": statement,
    "context": context, "key": key, "result": result,
}
