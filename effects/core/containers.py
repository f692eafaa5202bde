"""The registry of containers: types that ``vmap`` maps by a spec of their own, as it maps arrays by an integer.

    from_elt(cont, n, to_elt(cont, get_idx, x, spec), spec) == x

where ``to_elt`` gives a lane its element of the container and ``from_elt`` stacks the elements of all lanes.
"""

from __future__ import annotations

from collections import OrderedDict, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import NoneType
from typing import TYPE_CHECKING, Any

from ..base.caches import process_lock
from ..base.config import PROCESS
from ..base.errors import BadArgument, need_function
from ..trees import pytrees
from ..trees.structure import node_types

if TYPE_CHECKING:
    from ..trees.cpp_pytrees import PyTreeDef
from .arrays import Array


@dataclass(frozen=True, slots=True, eq=False)
class ContainerKind:
    """The registration of one container type: its spec type, and the functions that unstack and stack containers."""

    data_type: type
    spec_type: type
    axis_size_type: type
    to_elt: Callable[..., Any]
    from_elt: Callable[..., Any]
    make_iota: Callable[[Any], Any] | None

    @property
    def only_spec(self) -> str | None:
        """The name of the only value of the spec type, or None where the type has several."""
        return getattr(self.spec_type, "only", None)


_LOCK = process_lock()
_KINDS: dict[type, ContainerKind] = {}
_OF_SPEC: dict[type, tuple[ContainerKind, ...]] = {}  # the containers that specs of a type map
_LEAVES: set[type] = set()  # the containers that are leaves of trees, since they were no pytrees when registered
NODES = (tuple, list, dict, NoneType, OrderedDict, defaultdict)  # of trees of arrays, and of axes


def register_vmappable(
    data_type: type,
    spec_type: type,
    axis_size_type: type,
    to_elt: Callable[..., Any],
    from_elt: Callable[..., Any],
    make_iota: Callable[[Any], Any] | None = None,
) -> None:
    """Let ``vmap`` map values of exactly ``data_type`` by a spec: ``vmap(f, in_axes=spec, out_axes=spec)``.

        vmap(f, in_axes=spec, out_axes=spec)(x) == from_elt(cont, n, f(to_elt(cont, get_idx, x, spec)), spec)

    Args:
        data_type: the container's type. Inside of ``jit`` and ``grad`` it has to be a pytree as well.
        spec_type: the type of its entries in ``in_axes`` and ``out_axes``. Several containers may share one; it may be
            ``int``.
        axis_size_type: the type of ``axis_size=`` of ``vmap``: ``int``, or one whose ``__index__`` says how many lanes
            there are.
        to_elt: ``to_elt(cont, get_idx, x, spec)`` is what a lane sees of ``x``. ``cont(part, spec)`` is what it sees of
            a part: of a tree of arrays, by an integer, or of another container, by its spec. ``get_idx()`` is the
            index of the current lane. It may compute with both, as the mapped function does.
        from_elt: ``from_elt(cont, axis_size, y, spec)`` is the container of the results ``y`` of all lanes, of which
            ``cont(axis_size, part, spec)`` stacks a part.
        make_iota: ``make_iota(axis_size)``, for an ``axis_size`` of that type, is the vector of the numbers that lanes
            have in ``get_idx`` and ``axis_index`` where such a container, or ``axis_size=`` of a type other than int,
            says how many there are; by default 0, 1, 2, ....

    Raises: BadArgument: the type is registered already, or is one that ``vmap`` maps by integers.
    """
    for name, function in (("to_elt", to_elt), ("from_elt", from_elt)):
        need_function(f"register_vmappable({name}=)", function)
    for what, given in (("container", data_type), ("spec", spec_type)):
        if not isinstance(given, type) or issubclass(given, Array) or given in NODES:
            raise BadArgument(
                f"register_vmappable: a {what} has a type of its own, got {given!r}.",
                hint="a dataclass that holds it.",
            )
    if not isinstance(axis_size_type, type):
        raise BadArgument(
            f"register_vmappable: axis_size_type is int or a type with an __index__, got {axis_size_type!r}."
        )
    with _LOCK:
        if data_type in _KINDS:
            raise BadArgument(
                f"register_vmappable: a type is registered once, {data_type.__qualname__} is mapped by "
                f"{_KINDS[data_type].spec_type.__qualname__} already.",
                hint=f"hx.unregister_vmappable({data_type.__name__}) first.",
            )
        kind = ContainerKind(data_type, spec_type, axis_size_type, to_elt, from_elt, make_iota)
        _OF_SPEC[spec_type] = (*mapped_by(spec_type), kind)
        _KINDS[data_type] = kind
        if not pytrees.is_tree_node(data_type):
            _LEAVES.add(data_type)
        _enter_keys()


def unregister_vmappable(data_type: type) -> None:
    """Forget a container type; it is mapped as any other value from then on.

    Raises: BadArgument: the type is not registered.
    """
    with _LOCK:
        if data_type not in _KINDS:
            raise BadArgument(f"unregister_vmappable: {data_type.__qualname__} is not registered.")
        spec_type = _KINDS.pop(data_type).spec_type
        _LEAVES.discard(data_type)
        left = tuple([kind for kind in _OF_SPEC.pop(spec_type) if kind.data_type is not data_type])
        if left:
            _OF_SPEC[spec_type] = left
        _enter_keys()


def _enter_keys() -> None:
    """Make the registry part of the settings in every cache key, so that jitted functions are traced again."""
    PROCESS.update(containers=frozenset(_KINDS.values()))


def container_kind(x: Any) -> ContainerKind | None:
    """The registration of the type of ``x``; None if ``x`` is no container."""
    return _KINDS.get(type(x))


def is_container(x: Any) -> bool:
    """Whether ``x`` is of a registered type."""
    return type(x) in _KINDS


def holds_container(tree: PyTreeDef, leaves: Sequence[Any] = ()) -> bool:
    """Whether a node of the tree, or one of these leaves of it, is of a registered type."""
    if _LEAVES and not _LEAVES.isdisjoint(map(type, leaves)):
        return True
    return bool(_KINDS) and not node_types(tree).isdisjoint(_KINDS)


def mapped_by(spec_type: type) -> tuple[ContainerKind, ...]:
    """The containers that specs of this type map."""
    return _OF_SPEC.get(spec_type, ())


def is_spec(x: Any) -> bool:
    """Whether ``x`` is of a type registered as spec of containers, other than int, by which arrays are mapped too."""
    return type(x) in _OF_SPEC and type(x) is not int


def is_axis(x: Any) -> bool:
    """Whether ``x`` is a leaf of ``in_axes`` or ``out_axes``: None or a spec, even if it is a node of pytrees."""
    return x is None or is_spec(x)


def numbers_of(axis_size: Any, kind: ContainerKind | None) -> Callable[[Any], Any] | None:
    """The registered ``make_iota`` for a mapped axis of this size; None: the lanes are numbered 0, 1, 2, ....

    ``kind``: the registration of the mapped container; None for a mapped array or an ``axis_size=`` of the user's,
    whose type then selects among all registered ``axis_size_type`` but int.
    """
    kinds = (kind,) if kind is not None else () if type(axis_size) is int else tuple(_KINDS.values())
    makers = [kind.make_iota for kind in kinds if kind.axis_size_type is type(axis_size)]
    return next((make for make in reversed(makers) if make is not None), None)


def names_of_containers(kinds: Sequence[ContainerKind]) -> str:
    """The names of the registered container types, joined by "or" for a message."""
    return " or ".join([kind.data_type.__name__ for kind in kinds])


def need_no_container(where: str, tree: PyTreeDef, axes: Sequence[Any] | None = None) -> None:
    """Check that a function that cuts arrays along an axis, named ``where``, is given no container to cut.

    ``axes``: for each leaf the axis along which it is cut, None if it is not; by default all are cut.

    Raises: BadArgument: a node of the tree is a container with a leaf that is cut.
    """
    node = tree.node_data()
    if node is None or not holds_container(tree):
        return
    kind = _KINDS.get(node[0])
    if kind is None:
        start = 0
        for child in tree.children():
            end = start + child.num_leaves
            need_no_container(where, child, None if axes is None else axes[start:end])
            start = end
    elif axes is None or any([axis is not None for axis in axes]):
        name = kind.data_type.__name__
        raise BadArgument(
            f"{where}: an axis of arrays is cut, and a {name} has lanes of its own.",
            hint=f"hx.vmap with in_axes={kind.only_spec or f'{kind.spec_type.__name__}(...)'} maps over its lanes; or "
            "pass its arrays.",
        )


def specs_in(*axes: Any) -> list[Any]:
    """All specs of containers in these trees, each an ``in_axes`` or ``out_axes``."""
    trees = [axis for axis in axes if type(axis) is not int]  # nearly always there is none
    return [spec for tree in trees for spec in pytrees.leaves(tree, is_spec) if is_spec(spec)]


def need_no_spec(where: str, *axes: Any) -> None:
    """Check the axes of a function, named ``where``, that maps arrays alone.

    Raises: BadArgument: an axis is the spec of a container.
    """
    for spec in specs_in(*axes):
        raise BadArgument(
            f"{where}: axes are those of arrays, and {spec!r} is one of {names_of_containers(mapped_by(type(spec)))}.",
            hint=f"hx.vmap maps by it, inside or outside of {where}.",
        )
