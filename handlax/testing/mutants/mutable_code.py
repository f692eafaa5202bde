"""The mutants of a file: which of its places are code, and the syntax tree with one of them replaced.

No mutant is made of what cannot change a result:

- docstrings, annotations, imports, type variables, ``__all__``, ``__slots__`` and what only checkers of types read;
- messages: what is raised, warned of or formatted, and functions that give representations;
- what serves speed alone: arguments such as ``maxsize``, and what is written into a cache;
- the order of the arguments of commutative functions;
- a replacement that compiles to the same bytecode.
"""

from __future__ import annotations

import ast
import hashlib
import itertools
import marshal
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from .mutation_operators import OF_PERFORMANCE, OPERATORS, Definition, MutableSite, called

TYPES = {"annotation", "returns", "type_params", "bases", "type_comment"}  # fields of nodes
REPRESENTATIONS = {"__repr__", "__str__", "__format__", "__rich_repr__", "_repr_html_", "_repr_pretty_", "_repr_svg_"}
UNREAD = {"__all__", "__slots__", "__match_args__"}
MESSAGES = {"warn", "warn_user", "TypeVar", "ParamSpec", "TypeVarTuple", "cast"}


class Mutant(NamedTuple):
    """One change of one place of a file."""

    key: str  # the same as long as the function that it is in stays the same
    path: str
    line: int
    kind: str
    change: int  # which one of the file
    reach: tuple[int, ...]  # lines, as the bits of a number: tests that execute some of the first ones reach it, ...


class Mutation(NamedTuple):
    """A mutant in full: its syntax tree, and the line before and after."""

    tree: ast.Module
    before: str
    after: str


def is_code(node: ast.AST) -> bool:
    """Whether a node is code whose mistakes tests should see; what is inside of one that is not is none either."""
    match node:
        case ast.Expr(value=ast.Constant()) | ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom():
            return False
        case ast.FunctionDef(name=name, decorator_list=marks) | ast.AsyncFunctionDef(name=name, decorator_list=marks):
            return name not in REPRESENTATIONS and not any([ast.unparse(mark).endswith("overload") for mark in marks])
        case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)) if name in UNREAD:
            return False
        case ast.If(test=ast.Name(id="TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
            return False
        case ast.keyword(arg=name):
            return name not in OF_PERFORMANCE
        case ast.Call():
            return called(node) not in MESSAGES
    return True


def sites(
    node: ast.AST, statement: ast.stmt | None = None, function: Definition | ast.Lambda | None = None
) -> Iterator[MutableSite]:
    """The places of code inside a node, from outside to inside."""
    own = node if isinstance(node, Definition | ast.Lambda) else function
    for field, value in ast.iter_fields(node):
        inner = own if field == "body" else function  # defaults and decorators belong to what is around
        for item, child in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(child, ast.AST) and field not in TYPES and is_code(child):
                around = child if isinstance(child, ast.stmt) else statement
                yield MutableSite(child, node, field, item, around, inner)
                yield from sites(child, around, inner)


def changes(module: ast.Module) -> Iterator[tuple[MutableSite, str, ast.AST]]:
    """Each single change of a module's syntax tree: where it is, its kind, and the code that replaces what is there."""
    for site in sites(module):
        for kind, operator in OPERATORS.items():
            for replacement in operator(site):
                yield site, kind, replacement


def mutants(root: Path, path: str) -> list[Mutant]:
    """The mutants of a file, which is named from ``root``.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "rules.py").write_text("def slope(x, dx):\\n    return 2 * x * dx\\n")
    ...     [(mutant.line, mutant.kind) for mutant in mutants(Path(folder), "rules.py")]
    [(2, 'factor'), (2, 'factor'), (2, 'factor'), (2, 'factor'), (2, 'constant')]
    """
    text = (root / path).read_text()
    lines, counts, made = text.splitlines(), Counter[tuple[object, ...]](), list[Mutant]()
    for change, (site, kind, _) in enumerate(changes(ast.parse(text))):
        line, owner = located(site.node).lineno, owner_of(site)
        place = "\n".join(lines[owner.lineno - 1 : owner.end_lineno]), line - owner.lineno, kind
        counts[place] += 1
        made.append(Mutant(digest(path, *place, counts[place]), path, line, kind, change, reach(site)))
    return made


def owner_of(site: MutableSite) -> Any:
    """What a mutant is known by: the function that it is in, or else the statement."""
    return site.function if isinstance(site.function, Definition) else site.statement


def located(node: ast.AST) -> Any:
    """The node, or the part of it that has a position."""
    return node.iter if isinstance(node, ast.comprehension) else node


def reach(site: MutableSite) -> tuple[int, ...]:
    """Lines of which a test that reaches the place executes one: those of the place, or else of its statement.

    What the import executes, before any test, is reached by all that execute a line of the file.
    """
    return (-1,) if site.function is None else (head(located(site.node)), head(site.statement))


def head(node: Any) -> int:
    """The lines of a node as the bits of a number; of a statement that has a body, those before it."""
    body = getattr(node, "body", None)
    last = body[0].lineno - 1 if isinstance(body, list) else node.end_lineno
    return sum([1 << line for line in range(node.lineno, max(last, node.lineno) + 1)])


def digest(*words: object) -> str:
    return hashlib.sha256(repr(words).encode()).hexdigest()[:16]


def mutation(root: Path, mutant: Mutant) -> Mutation | None:
    """The mutant in full; None if it compiles to the bytecode of the original, so that nothing is another."""
    text = (root / mutant.path).read_text()
    tree = ast.parse(text)
    original = bytecode(tree)
    site, _, new = next(itertools.islice(changes(tree), mutant.change, None))
    before, after = shown(text, site.node, new)
    site.put(new)
    ast.fix_missing_locations(ast.copy_location(new, site.node))
    return None if bytecode(tree) == original else Mutation(tree, before, after)


def bytecode(tree: ast.Module) -> bytes:
    return marshal.dumps(compile(tree, "", "exec", dont_inherit=True))


def shown(text: str, old: ast.AST, new: ast.AST) -> tuple[str, str]:
    """The line of the place before and after; of more than one line, the first of either."""
    place = located(old)
    line = text.splitlines()[place.lineno - 1].encode()  # columns count bytes
    if not isinstance(old, ast.comprehension) and place.lineno == place.end_lineno:
        after = line[: place.col_offset] + ast.unparse(new).encode() + line[place.end_col_offset :]
        return line.decode().strip(), after.decode().strip()
    first = lambda tree: ast.unparse(tree).strip().partition("\n")[0]
    return first(old), first(new)
