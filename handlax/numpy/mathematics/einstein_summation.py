"""Einstein summation: einsum and einsum_path; operands are contracted two at a time, cheapest first."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from math import prod
from typing import Any, NamedTuple

from ...effects.base.caches import cached
from ...effects.base.errors import BadArgument, ShapeMismatch
from ...effects.core.arrays import Array
from ...effects.functions.out_shardings import cuts_result
from ...effects.operations.elementwise.arithmetic import mul
from ...effects.operations.elementwise.comparison import select_n
from ...effects.operations.elementwise.conversion import convert
from ...effects.operations.foundations import shapes
from ...effects.operations.foundations.half_precision import HALF
from ...effects.operations.manipulation.creation import broadcasted_iota
from ...effects.operations.manipulation.operand_promotion import promote
from ...effects.types.dtypes import canonical, float32
from ...effects.types.extent import estimate
from ..arrays.argument_conversion import array_of, like, no_out
from .matrix_products import contract, contraction

__all__ = ["einsum", "einsum_path"]


_LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
_PUNCTUATION = frozenset("->.")
ContractionPath = tuple[tuple[int, ...], ...]


class EinsumTerms(NamedTuple):
    """Index words of the operands, of the result, and the size of each index."""

    words: tuple[str, ...]
    result: str
    sizes: dict[str, int]


@cuts_result
def einsum(
    subscripts: Any, /, *operands: Any, out: None = None, optimize: Any = "auto", precision: Any = None,
    preferred_element_type: Any = None, _dot_general: Any = None, out_sharding: Any = None,
) -> Array:
    """The sum of products over the indices that the result lacks: ``"ij,jk->ik"`` is a product of matrices.

        einsum("ij,jk->ik", a, b)[i, k] == sum over j of a[i, j] * b[j, k]

    An index is a letter, or another character, as in ``"sd,3dk->s3k"``. Without ``->`` the result has the indices that
    occur once, in alphabetic order. ``...`` stands for leading dimensions, which broadcast.
    ``einsum(a, [0, 1], b, [1, 2], [0, 2])`` names indices by numbers, texts or other values, in their order.

    Args:
        optimize: the order of contractions: "auto", "optimal", "greedy" or True for a cheap one, False for the
            operands' order, or a path as ``einsum_path`` gives it.
    Raises: ShapeMismatch: an index has two sizes. BadArgument: the subscripts do not fit. Source: NumPy, ``einsum``.

    >>> from handlax.numpy import ones
    >>> einsum("ij,jk->ik", ones((2, 3)), ones((3, 4))).shape
    (2, 4)
    """
    no_out(out, "einsum")
    if optimize.__class__ is not str or optimize != "auto":
        optimize = _order("einsum", optimize)
    text, given = _spelled(subscripts, operands)
    xs = promote(*given)
    if len(xs) == 2:
        pair = _pair(text, xs[0].type.shape, xs[1].type.shape)
        if pair is not None:
            swapped, numbers, order = pair
            x, y = reversed(xs) if swapped else xs
            z = contract(x, y, numbers, precision, preferred_element_type)
            return z if order is None else shapes.permute(z, order)
    todo, path = _plan(text, tuple([x.type.shape for x in xs]), optimize)
    words = list(todo.words)
    for chosen in path:
        step = [words.pop(i) for i in sorted(chosen, reverse=True)]
        parts = [xs.pop(i) for i in sorted(chosen, reverse=True)]
        needed = set(todo.result).union(*words)
        last = not words
        word, x = step.pop(), parts.pop()
        while parts:
            between = needed if len(parts) == 1 else needed.union(*step[:-1])
            wanted = todo.result if last else ""
            word, x = _contract(word, x, step.pop(), parts.pop(), between, wanted, precision, preferred_element_type)
        words.append(word)
        xs.append(x)
    (word,), (x,) = words, xs
    word, x = _reduced(word, x, set(todo.result))
    x = shapes.permute(x, [word.index(c) for c in todo.result])
    return x if preferred_element_type is None else convert(x, canonical(preferred_element_type))


def einsum_path(subscripts: Any, /, *operands: Any, optimize: Any = "auto") -> tuple[list[tuple[int, ...]], str]:
    """The order in which ``einsum`` contracts its operands, and a text with its cost.

    Each item is positions in the list of remaining operands; their contraction is appended to that list.

    >>> from handlax.numpy import ones
    >>> einsum_path("ij,jk,kl->il", ones((2, 9)), ones((9, 9)), ones((9, 1)))[0]
    [(1, 2), (0, 1)]
    """
    text, given = _spelled(subscripts, operands)
    todo, path = _plan(text, tuple([array_of(x).type.shape for x in given]), _order("einsum_path", optimize))
    naive = prod(todo.sizes.values()) * max(1, len(todo.words))
    cost, words = 0, list(todo.words)
    for chosen in path:
        step = [words.pop(i) for i in sorted(chosen, reverse=True)]
        cost += _volume(set().union(*step), todo.sizes) * len(step)
        words.append("".join(sorted(set().union(*step) & set(todo.result).union(*words))))
    return list(
        path
    ), f"  Complete contraction:  {text}\n  Naive FLOP count:  {naive:.3e}\n  Optimized FLOP count:  {cost:.3e}"


def _spelled(subscripts: Any, operands: Sequence[Any]) -> tuple[str, list[Any]]:
    """The subscripts as text, and the operands, from either calling convention of ``einsum``.

    Raises: BadArgument: there is no operand.
    """
    if not operands:
        raise BadArgument(f"einsum: there must be an operand, got {subscripts!r} alone.")
    if isinstance(subscripts, str):
        return subscripts.replace(" ", ""), list(operands)
    listed = [subscripts, *operands]
    words = [_names(word) for word in [*listed[1::2], *listed[2 * (len(listed) // 2) :]]]
    try:
        given = {name for word in words for name in word} - {Ellipsis}
        letters = {name: _letter(i) for i, name in enumerate(sorted(given))} | {Ellipsis: "..."}
    except TypeError:
        raise BadArgument(f"einsum: indices must be numbers, or texts, or alike in another way, got {words}.") from None
    spelled = ["".join([letters[name] for name in word]) for word in words]
    count = len(listed) // 2
    return ",".join(spelled[:count]) + "".join([f"->{result}" for result in spelled[count:]]), listed[: 2 * count : 2]


def _names(word: Any) -> list[Any]:
    """The indices of one operand, given as a list. Raises BadArgument: it is no list."""
    if not isinstance(word, (list, tuple)):
        raise BadArgument(f"einsum: after each operand comes a list of its indices, got {word!r}.")
    return [name.__index__() if hasattr(name, "__index__") else name for name in word]


def _letter(i: int) -> str:
    """The letter that stands in subscripts for the index that is number ``i`` in order: a-z, A-Z, then ideographs."""
    return _LETTERS[i] if i < len(_LETTERS) else chr(0x4E00 + i)


_ORDERS = frozenset({
    "auto", "auto-hq", "optimal", "dp", "dynamic-programming", "greedy", "eager", "opportunistic", "branch-all",
    "branch-2", "branch-1", "random-greedy", "random-greedy-128",
})


def _order(name: str, optimize: Any) -> bool | str | ContractionPath:
    """``optimize`` as a boolean, a word or a path; of NumPy's pair (word, memory limit) the word.

    Raises: BadArgument: it is something else.
    """
    if optimize is None or isinstance(optimize, bool):
        return optimize is not False
    if isinstance(optimize, (tuple, list)):
        limited = len(optimize) == 2 and isinstance(optimize[0], str) and isinstance(optimize[1], (int, float))
        steps = [step for step in optimize if step != "einsum_path"]
        if not limited and all([isinstance(step, (tuple, list)) for step in steps]):
            return tuple([tuple(step) for step in steps])
        optimize = optimize[0] if limited else optimize
    if not isinstance(optimize, str) or optimize not in _ORDERS:
        raise BadArgument(
            f"{name}: optimize must be a boolean, a path, or one of {', '.join(sorted(_ORDERS))}, got {optimize!r}."
        )
    return optimize


@cached("einsum")
def _plan(text: str, given: tuple[tuple[int, ...], ...], optimize: Any) -> tuple[EinsumTerms, ContractionPath]:
    """The parsed subscripts and the contraction path for operands of these shapes."""
    todo = parsed(text, given)
    count = len(given)
    if isinstance(optimize, tuple):
        if any(not step or not all(0 <= i < count for i in step) for step in optimize):
            raise BadArgument(f"einsum: a path names operands that are left, got {optimize} for {count} operands.")
        return todo, optimize
    if count == 1:
        return todo, ()
    if count == 2:
        return todo, ((0, 1),)
    if not optimize:
        return todo, ((0, 1), *[(0, left) for left in range(count - 2, 0, -1)])
    return todo, _greedy(todo)


def parsed(text: str, given: tuple[tuple[int, ...], ...]) -> EinsumTerms:
    """The subscripts parsed, with ellipses expanded."""
    left, arrow, right = text.partition("->")
    words = left.split(",")
    if len(words) != len(given):
        raise BadArgument(f"einsum: {text!r} has {len(words)} operands, got {len(given)}.")
    spare = [c for c in reversed(_LETTERS) if c not in text]
    ellipsis = ""
    full = []
    for word, shape in zip(words, given):
        if "..." in word:
            extra = len(shape) - len(word) + 3
            if extra < 0:
                raise BadArgument(f"einsum: {word!r} of {text!r} has more indices than shape {shape}.")
            ellipsis = max(ellipsis, "".join(reversed(spare[:extra])), key=len)
            word = word.replace("...", "".join(reversed(spare[:extra])))
        if len(word) != len(shape):
            raise BadArgument(f"einsum: {word!r} of {text!r} does not fit shape {shape}.")
        if not _PUNCTUATION.isdisjoint(word):
            raise BadArgument(
                f"einsum: an index must be a character other than '-', '>' and '.', got {word!r} of {text!r}."
            )
        full.append(word)
    joined = "".join(full)
    if arrow:
        result = right.replace("...", ellipsis)
    else:
        result = ellipsis + "".join(sorted(c for c in set(joined) - set(ellipsis) if joined.count(c) == 1))
    if len(set(result)) != len(result) or not set(result) <= set(joined):
        raise BadArgument(
            f"einsum: the result's indices must be distinct indices of operands, got {right!r} of {text!r}.",
            hint=f"{unknown[0]!r} is an index of no operand." if (unknown := sorted(set(result) - set(joined))) else
            "a result has each index once; numpy.diag makes a diagonal matrix.",
        )
    sizes: dict[str, int] = {}
    for word, shape in zip(full, given):
        for c, n in zip(word, shape):
            if sizes.setdefault(c, n) == 1:
                sizes[c] = n
            elif n not in (1, sizes[c]):
                named = ", ".join([f"{word!r} of {shape}" for word, shape in zip(full, given)])
                raise ShapeMismatch(
                    f"einsum: index {c!r} of {text!r} must have one size, got {sizes[c]} and {n}.",
                    hint=f"indices name the dimensions of each operand in order: {named}.",
                )
    return EinsumTerms(tuple(full), result, sizes)


@cached("einsum of two")
def _pair(text: str, left: tuple[int, ...], right: tuple[int, ...]) -> tuple[bool, Any, tuple[int, ...] | None] | None:
    """An einsum of two operands as one ``dot_general``: whether they are swapped, its dimensions, a permutation.

    None if that is not enough: an index is repeated, broadcast or summed in one operand alone, or nothing is summed.
    """
    todo = parsed(text, (left, right))
    a, b = todo.words
    lone = set(a) ^ set(b)
    repeated = len(set(a)) < len(a) or len(set(b)) < len(b)
    stretched = any(todo.sizes[c] != n for word, shape in ((a, left), (b, right)) for c, n in zip(word, shape))
    if lone - set(todo.result) or repeated or stretched or not (set(a) - set(todo.result) or lone):
        return None
    swapped, numbers, made = contraction(a, b, todo.result, todo.result)
    order = tuple([made.index(c) for c in todo.result])
    return swapped, numbers, None if order == tuple(range(len(order))) else order


def _volume(indices: Any, sizes: dict[str, int]) -> int:
    """The number of elements of an array with these indices; a symbolic dimension is estimated."""
    return prod([estimate(sizes[c]) for c in indices])


def _greedy(todo: EinsumTerms) -> ContractionPath:
    """The greedy path: the pair whose result grows least over its operands, then the cheapest one."""
    words, path = [set(word) for word in todo.words], []
    while len(words) > 1:
        options = []
        for i, j in combinations(range(len(words)), 2):
            a, b = words[i], words[j]
            kept = (a | b) & set(todo.result).union(*[word for k, word in enumerate(words) if k not in (i, j)])
            last_resort = len(words) > 2 and not a & b  # an outer product only where nothing else is left
            growth = _volume(kept, todo.sizes) - _volume(a, todo.sizes) - _volume(b, todo.sizes)
            options.append((last_resort, growth, _volume(a | b, todo.sizes), i, j, kept))
        *_, i, j, kept = min(options)
        path.append((i, j))
        del words[j], words[i]
        words.append(kept)
    return tuple(path)


def _reduced(word: str, x: Any, needed: set[str]) -> tuple[str, Any]:
    """An operand after diagonals of repeated indices are taken and indices not in ``needed`` are summed."""
    while len(set(word)) < len(word):
        c = next(c for c in word if word.count(c) > 1)
        p, q = word.index(c), word.rindex(c)
        shape = x.type.shape
        if shape[p] != shape[q]:
            raise ShapeMismatch(f"einsum: index {c!r} must have one size, got {shape[p]} and {shape[q]}.")
        sizes = (shape[p], shape[q])
        mask = broadcasted_iota("int32", sizes, 0) == broadcasted_iota("int32", sizes, 1)
        x = select_n(shapes.broadcast_in_dim(mask, shape, (p, q)), like(x, 0), x)
        x = _sum(x, (p,))
        word = word[:p] + word[p + 1 :]
    gone = tuple([d for d, c in enumerate(word) if c not in needed])
    return "".join([c for c in word if c in needed]), _sum(x, gone)


def _sum(x: Any, axes: tuple[int, ...]) -> Any:
    """The sum over axes in the dtype of ``x``: of 16-bit floats computed in float32, of booleans their disjunction."""
    if not axes:
        return x
    kind = x.type
    if kind.dtype in HALF:
        return convert(shapes.reduce_sum(convert(x, float32, kind.weak), axes), kind.dtype, kind.weak)
    if kind.dtype.kind == "b":
        return convert(shapes.reduce_sum(convert(x, canonical("int32")), axes), kind.dtype)
    return shapes.reduce_sum(x, axes)


def _contract(
    a: str, x: Any, b: str, y: Any, needed: set[str], wanted: str, precision: Any, preferred: Any
) -> tuple[str, Any]:
    """The product of two operands summed over the indices not in ``needed``, with the word of its indices.

    ``wanted`` is the word of the final result, if this product gives it, else empty.
    """
    a, x = _stretched(a, x, b, y)
    b, y = _stretched(b, y, a, x)
    a, x = _reduced(a, x, needed | set(b))
    b, y = _reduced(b, y, needed | set(a))
    if set(a) == set(b) <= needed and preferred is None:  # no sum: a product of elements
        y = shapes.permute(y, [b.index(c) for c in a])
        return a, mul(x, y)
    swapped, numbers, word = contraction(a, b, needed, wanted)
    x, y = (y, x) if swapped else (x, y)
    return "".join(word), contract(x, y, numbers, precision, preferred)


def _stretched(a: str, x: Any, b: str, y: Any) -> tuple[str, Any]:
    """``x``, with the indices ``a``, without its dimensions of size 1 that broadcast against ``y``, and its indices."""
    gone = [d for d, (c, n) in enumerate(zip(a, x.type.shape)) if n == 1 and c in b and y.type.shape[b.index(c)] != 1]
    if not gone:
        return a, x
    shape = tuple([n for d, n in enumerate(x.type.shape) if d not in gone])
    return "".join([c for d, c in enumerate(a) if d not in gone]), shapes.reshape(x, shape)
