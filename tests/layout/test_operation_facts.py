"""What the package knows of one operation stands in its block or in a column, read from the source.

A name of an operation in a table or a comparison is a fact that stands elsewhere, and one that nobody corrects when the
operation gets another name. So is a clause of an interpreter for one first-order operation.
"""

from __future__ import annotations

import ast
import importlib
import types
from collections.abc import Iterator

import pytest
from helpers.package_source import PACKAGE, module_level, module_name, name

from handlax.effects.core.columns import FLOPS
from handlax.effects.core.operation import Operation
from handlax.effects.programs.operation_names import every_operation
from handlax.lowering.compile.eager_rates import CALLS, RATES

OURS = {kind for kind in every_operation() if kind.__module__.startswith("handlax.")}
NAMES = {kind.name for kind in OURS}
# Words for an operation, whose ``.name`` is compared with names of operations and with nothing else.
OPERATIONS = {"op", "kind", "operation", "effect"}
# Tables whose strings are names of something else, which operations happen to share.
OTHER_NAMES = {
    "_BINARY": "Python's operators, and the operations that arrays answer them with",
    "_COMPARISON": "the same",
    "__slots__": "attributes",
}
EXPORTS = "handlax"  # where lists hold the names of functions and methods, which those of operations often are too
INNER = ("interpreters", "lowering")  # where a table of a single name of an operation is a fact too
PARTS_OF_TEXT = {"startswith", "endswith", "removeprefix", "removesuffix", "partition", "rpartition", "split", "find"}


def strings(node: ast.AST) -> list[str]:
    """The string literals in a literal: itself, its items, or the keys of a dictionary."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return [node.value]
    if isinstance(node, ast.Tuple | ast.List | ast.Set):
        return [text for item in node.elts for text in strings(item)]
    if isinstance(node, ast.Dict):
        return [text for key in node.keys if key is not None for text in strings(key)]
    if isinstance(node, ast.Call) and ast.unparse(node.func) in ("frozenset", "set", "tuple") and node.args:
        return strings(node.args[0])
    if dict_call(node):
        return [keyword.arg for keyword in node.keywords if keyword.arg is not None]
    return []


def dict_call(node: ast.AST) -> bool:
    """Whether an expression is ``dict(...)``."""
    return isinstance(node, ast.Call) and ast.unparse(node.func) == "dict"


def name_of_operation(node: ast.AST) -> bool:
    """Whether an expression is ``op.name``, under one of the words for an operation, or ``type(op).name``."""
    if isinstance(node, ast.NamedExpr):
        return name_of_operation(node.value)
    if not isinstance(node, ast.Attribute) or node.attr != "name":
        return False
    owner = node.value.args[0] if isinstance(node.value, ast.Call) and node.value.args else node.value
    return isinstance(owner, ast.Name | ast.Attribute) and ast.unparse(owner).rpartition(".")[2] in OPERATIONS


def assigns_a_name(node: ast.AST) -> bool:
    """Whether something is assigned the name of an operation."""
    return isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and name_of_operation(node.value)


class Substituted(ast.NodeTransformer):
    """Puts for each of some local names the expression that it was assigned."""

    def __init__(self, values: dict[str, ast.expr]):
        self.values = values

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self.values.get(node.id, node) if isinstance(node.ctx, ast.Load) else node


def with_names_substituted(module: ast.Module) -> ast.Module:
    """The module in which ``name``, where ``name = op.name`` stands in the same scope, is ``op.name``."""
    if not any(map(assigns_a_name, ast.walk(module))):
        return module
    functions = [node for node in ast.walk(module) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    outside = [line for line in module_level(module.body)
               if not isinstance(line, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)]
    for lines in [outside, *[function.body for function in functions]]:
        values = {}
        for node in [inner for line in lines for inner in ast.walk(line)]:
            if assigns_a_name(node):
                targets = node.targets if isinstance(node, ast.Assign) else [node.target]
                values |= {target.id: node.value for target in targets if isinstance(target, ast.Name)}
        for line in lines if values else []:
            Substituted(values).visit(line)
    return module


def compared_names(node: ast.AST) -> list[str]:
    """The strings that ``.name`` of something is compared with, or looked up among, if they name operations."""
    if isinstance(node, ast.Compare):
        sides = [node.left, *node.comparators]
        attributes = [side for side in sides if isinstance(side, ast.Attribute) and side.attr == "name"]
        texts = [text for side in sides for text in strings(side)]
        if any(map(name_of_operation, sides)):
            return texts
        return [text for text in texts if text in NAMES] if attributes else []
    if isinstance(node, ast.Match) and name_of_operation(node.subject):
        return [text for inner in ast.walk(node) if isinstance(inner, ast.MatchValue) for text in strings(inner.value)]
    return []


def read_in_parts(node: ast.AST) -> bool:
    """Whether the text of the name of an operation is asked for how it begins, ends or is made up."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
        return False
    if ast.unparse(node.func.value) == "re":
        return any(map(name_of_operation, node.args))
    return node.func.attr in PARTS_OF_TEXT and name_of_operation(node.func.value)


def looked_up(node: ast.AST) -> bool:
    """Whether a table is asked for the name of an operation, other than the one of all operations."""
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
        table, key = node.value, node.slice
    elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get" and node.args:
        table, key = node.func.value, node.args[0]
    else:
        return False
    return name_of_operation(key) and ast.unparse(table) not in ("OPERATIONS", "LATE_OPERATIONS")


def tables(node: ast.AST) -> Iterator[tuple[ast.AST, list[str]]]:
    """The literals of items, with the strings in them, but those assigned to ``OTHER_NAMES``."""
    if isinstance(node, ast.Assign) and {ast.unparse(target) for target in node.targets} & OTHER_NAMES.keys():
        return
    if isinstance(node, ast.Tuple | ast.List | ast.Set | ast.Dict) or dict_call(node):
        yield node, strings(node)
    for child in ast.iter_child_nodes(node):
        yield from tables(child)


def facts_by_name(source: str, layer: str = "effects") -> list[str]:
    """The places where the source of a module of ``layer`` says something of operations by their names."""
    module, found = with_names_substituted(ast.parse(source)), []
    for node in ast.walk(module):
        texts = compared_names(node)
        unknown = [text for text in texts if text not in NAMES]
        if texts:
            found.append(f"{node.lineno} compares a name with {texts}" + f", not registered: {unknown}" * bool(unknown))
        elif looked_up(node):
            found.append(f"{node.lineno} looks up a name in a table")
        elif read_in_parts(node):
            found.append(f"{node.lineno} reads a name in parts")
    for node, texts in [] if layer == EXPORTS else tables(module):
        named = [text for text in texts if text in NAMES]
        enough = 1 if layer in INNER and (isinstance(node, ast.Dict | ast.Set) or dict_call(node)) else 2
        if len(named) >= enough and 2 * len(named) > len(texts):
            unknown = [text for text in texts if text not in NAMES]
            found.append(f"{node.lineno} lists {named}" + f", not registered: {unknown}" * bool(unknown))
    return found


def clauses(source: str, scope: dict[str, object]) -> list[str]:
    """The places where the source tells one pure first-order operation of this package from all others."""

    def holds(value: object) -> bool:
        if isinstance(value, tuple | frozenset | types.UnionType):
            return any(map(holds, value.__args__ if isinstance(value, types.UnionType) else value))
        return isinstance(value, type) and value in OURS and not value.effectful and not value.bodied

    def first_order(node: ast.AST) -> bool:
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            return any(map(first_order, node.elts))
        if isinstance(node, ast.BinOp):
            return first_order(node.left) or first_order(node.right)
        words = ast.unparse(node).split(".") if isinstance(node, ast.Name | ast.Attribute) else [""]
        kind = scope.get(words[0])
        for word in words[1:]:
            kind = getattr(kind, word, None)
        return holds(kind)

    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("isinstance", "issubclass"):
            named = first_order(node.args[1])
        elif isinstance(node, ast.Compare):
            named = any(map(first_order, [node.left, *node.comparators]))
        elif isinstance(node, ast.Dict | ast.Set):
            named = any(map(first_order, filter(None, node.keys if isinstance(node, ast.Dict) else node.elts)))
        elif isinstance(node, ast.MatchClass | ast.MatchValue):
            named = first_order(node.cls if isinstance(node, ast.MatchClass) else node.value)
        else:
            named = False
        if named:
            found.append(f"{node.lineno} {ast.unparse(node)}")
    return found


def test_no_fact_of_an_operation_is_told_by_its_name():
    assert not [f"{name(file)}:{place}" for file in PACKAGE
                for place in facts_by_name(file.read_text(), name(file).split("/")[0])]


def test_interpreters_and_lowering_have_no_clause_for_one_first_order_operation():
    assert not [f"{name(file)}:{place}" for file in PACKAGE if name(file).split("/")[0] in INNER
                for place in clauses(file.read_text(), vars(importlib.import_module(module_name(file))))]


def test_every_measured_operation_exists():
    assert {(module, name) for table in (CALLS, RATES) for module, rows in table.items() for name in rows} <= {
        (kind.__module__, kind.__qualname__) for kind in OURS
    }


def test_every_declaration_of_operations_is_made_by_one():
    for fact in ("contracts", "cheap_to_recompute", "checkpoint_name", "costly", "rounding"):
        assert any(getattr(kind, fact) != getattr(Operation, fact) for kind in OURS), fact
    assert any(map(FLOPS.has, OURS))


# The checks above hold of an empty tree too, so each is shown a mistake that it must find.

@pytest.mark.parametrize(("source", "found"), [
    ("if op.name == 'sin': pass", "compares"),
    ("if type(op).name != 'sin': pass", "compares"),
    ("if self.op.name == 'sin': pass", "compares"),
    ("good = op.name in ('dot_general', 'dot_special')", "not registered: ['dot_special']"),
    ("good = kind.name in frozenset({'sine'})", "not registered: ['sine']"),
    ("found.sort(key=lambda origin: origin[0].name == 'broadcast_in_dim')", "compares"),
    ("match op.name:\n    case 'sin': pass", "compares"),
    ("rule = RULES.get(op.name)", "looks up"),
    ("rule = RULES[kind.name]", "looks up"),
    ("TABLE = {'sin': 1, 'cos': 2}", "lists"),
    ("TABLE = {'circular': ('sin', 'cos', 'sine')}", "not registered: ['sine']"),
    ("NAMES = frozenset(('exp', 'log'))", "lists"),
    ("NAMES: set[str] = {'exp', 'log'}", "lists"),
    ("def f(x):\n    return x in ('exp', 'log')", "lists"),
    ("def f(op):\n    name = op.name\n    return name == 'sin'", "compares"),
    ("def f(op):\n    if (name := type(op).name) in ('sin', 'sine'): pass", "not registered: ['sine']"),
    ("for kind in kinds:\n    name = kind.name\n    if name == 'sin': pass", "compares"),
    ("def f(op):\n    name: str = op.name\n    return RULES[name]", "looks up"),
    ("if op.name.startswith('reduce_'): pass", "in parts"),
    ("word = type(op).name.removesuffix('_p')", "in parts"),
    ("def f(op):\n    name = op.name\n    return re.match('reduce_.*', name)", "in parts"),
    ("TABLE = dict(sin=1, cos=2)", "lists"),
    ("known = OPERATIONS.get(kind.name)", None),
    ("def f(op):\n    name = op.name\ndef g(name):\n    return name == 'sin'", None),
    ("def f(op):\n    name = op.name\n    return f'{name}: wrong'", None),
    ("made = dict(sin=1, tent=2)", None),
    ("TABLE = {'sin': 3}", None),
    ("packed = dtype.name in ('int2', 'int4')", None),
    ("Sin = elementwise('sin', FLOATING, np.sin, lower='sine')", None),
    ("def sin(x):\n    need_array('sin', 'x')", None),
    ("TABLE = {'sin', 'tent', 'wave'}", None),
    ("__slots__ = ('name', 'round')", None),
])
def test_a_fact_told_by_name_is_found(source, found):
    places = facts_by_name(source)
    assert not places if found is None else any(found in place for place in places)


@pytest.mark.parametrize(("source", "found"), [
    ("TABLE = {'sin': 3}", True),
    ("TABLE = dict(sin=1)", True),
    ("TABLE = frozenset({'sin'})", True),
    ("TABLE = {'sine': 3}", False),
    ("TABLE = dict(sin=1, tent=2)", False),
])
def test_a_table_of_one_name_is_found_in_the_inner_layers(source, found):
    assert all(bool(facts_by_name(source, layer)) == found for layer in INNER)


@pytest.mark.parametrize(("source", "found"), [
    ("isinstance(op, BroadcastInDim)", True),
    ("isinstance(op, (Checkpoint, shapes.BroadcastInDim))", True),
    ("type(op) is BroadcastInDim", True),
    ("{BroadcastInDim: 1}.get(type(op))", True),
    ("isinstance(op, Checkpoint | BroadcastInDim)", True),
    ("isinstance(op, Checkpoint | shapes.Reshape | Operation)", True),
    ("isinstance(op, FIRST)", True),
    ("isinstance(op, (Checkpoint, FIRST))", True),
    ("isinstance(op, EITHER)", True),
    ("type(op) in FIRST", True),
    ("type(op) in [BroadcastInDim]", True),
    ("match op:\n    case BroadcastInDim(): pass", True),
    ("match op:\n    case Checkpoint() | shapes.BroadcastInDim(shape=()): pass", True),
    ("match type(op):\n    case shapes.BroadcastInDim: pass", True),
    ("match op:\n    case Checkpoint(): pass", False),
    ("isinstance(op, Checkpoint | Operation)", False),
    ("isinstance(op, Checkpoint)", False),
    ("perform(BroadcastInDim((3,), ()), x)", False),
    ("isinstance(op, Operation)", False),
])
def test_a_clause_for_one_operation_is_found(source, found):
    shapes = importlib.import_module("handlax.effects.operations.foundations.shapes")
    checkpoint = importlib.import_module("handlax.effects.control.checkpoint").Checkpoint
    scope = {"shapes": shapes, "BroadcastInDim": shapes.BroadcastInDim, "Checkpoint": checkpoint,
             "FIRST": (shapes.BroadcastInDim, shapes.Reshape), "EITHER": shapes.BroadcastInDim | checkpoint}
    assert bool(clauses(source, {**scope, "Operation": Operation})) == found
