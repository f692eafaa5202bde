"""``restore``: each process reads the parts of arrays that its devices hold."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from ..effects.base.errors import (
    BadCheckpoint,
    DamagedCheckpoint,
    DTypeMismatch,
    MissingCheckpoint,
    ShapeMismatch,
    TreeMismatch,
    some_of,
)
from ..effects.core.arrays import ConcreteArray, as_array, concrete
from ..effects.sharding.layout import Format
from ..effects.sharding.mesh import AbstractMesh
from ..effects.sharding.named_sharding import Index, NamedSharding
from ..effects.trees import pytrees
from ..effects.trees.paths import keystr
from ..effects.types.array_type import ArrayType
from ..interpreters.transformations.make_program import ShapeDtypeStruct
from ..lowering.arrays.assembled_arrays import make_array_from_callback
from ..lowering.arrays.device_put import device_put
from ..lowering.arrays.requested_shardings import requested
from ..lowering.clients.agreement import check_same, said_by_all, together
from .contents import Contents, plain, read_contents
from .folder_lock import place_of
from .safetensors_file import is_single_file, name_in_file, read_file
from .stored_leaves import NUMBERS, StoredLeaf, number_name
from .zarr_arrays import StoredArray


def restore(path: str | os.PathLike[str], like: Any = None) -> Any:
    """The tree that was saved in a folder or file, on the devices that ``like`` says.

        restore(path, like) == tree        after save(path, tree), bit for bit, whatever devices the tree was on

    Args:
        like: a tree with the structure, shapes and dtypes of the saved one. Of an array or a ``ShapeDtypeStruct`` with
            a sharding the result has this sharding, where it is a type's over the mesh in force, and its layout; of one
            without it is on the default device; of NumPy's arrays and scalars and of Python's numbers and texts it is
            their like. Without ``like``, dicts, lists, tuples, None and the kinds of leaves are as they were saved,
            arrays are on the default device, and a node of another type is a dict of its children by name, or a list
            where two have one name; a file ``.safetensors`` is a dict of arrays by their keys, joined by dots.

    Every process calls it, and reads the parts of arrays that its own devices hold. A tree that is replaced while it is
    read is that which replaces it.

    Raises: MissingCheckpoint: there is no folder or file. DamagedCheckpoint: a byte of it is not as it was saved.
    BadCheckpoint: there is no saved tree, it cannot be read, or it is of another version. TreeMismatch, ShapeMismatch,
    DTypeMismatch: ``like`` differs from it.
    ProcessesDiffer: the processes see different trees.
    """
    place = place_of("restore", path)
    while True:
        with ExitStack() as closing:
            contents, array = _agreed(place, closing)
            try:
                unflatten, readings = together(
                    lambda: _read(place, contents, array, like), failed=DamagedCheckpoint)
            except Exception as error:  # in all processes
                if not _is_replaced(place, contents):
                    _check_agreed(error)
                    raise
            else:
                return unflatten([reading() for reading in readings])


Reading = Callable[[], Any]
"""Gives a leaf whose elements were read."""


def _read(
    place: Path, contents: Contents, array: Callable[[StoredLeaf], StoredParts], like: Any
) -> tuple[Callable[[list[Any]], Any], list[Reading]]:
    """How the tree is made of its leaves, and the leaves, all of which are read at the same time, when they were."""
    leaves: Sequence[StoredLeaf] = contents.leaves
    likes: Iterable[Any] = repeat(None)
    unflatten: Callable[[list[Any]], Any] = lambda found: plain(contents.outline, iter(found))
    if like is not None:
        pairs, treedef = pytrees.flatten_with_path(like)
        wanted = [(name_in_file if is_single_file(place) else keystr)(keys) for keys, _ in pairs]
        leaves, likes, unflatten = _in_order(contents.leaves, wanted), [x for _, x in pairs], treedef.unflatten
    begun = [_reading(array, leaf, x) for leaf, x in zip(leaves, likes)]
    for stored, _ in begun:
        if stored is not None:
            stored.wait()
    return unflatten, [reading for _, reading in begun]


class StoredParts(Protocol):
    """A stored array, of which parts are read."""

    def ask(self, indices: Iterable[Index]) -> None:
        """Begin to read the parts at these indices. Raises: BadCheckpoint: they are missing or damaged."""

    def wait(self) -> None:
        """Wait until all that was asked for is read. Raises: BadCheckpoint: it is missing or damaged."""

    def read(self, index: Index) -> np.ndarray[Any, Any]:
        """The elements at an index that was asked for, and waited for."""


Found = tuple[Contents, Callable[[StoredLeaf], StoredParts]]
"""The contents, and the arrays of leaves."""


def _found(place: Path, closing: ExitStack) -> Found:
    """What this process finds. Raises: BadCheckpoint: no whole tree."""
    return read_file(place, closing) if is_single_file(place) else read_folder(place)


def _check_agreed(error: Exception) -> None:
    """Check that all processes have found damage, or none, each of which has an error.

    Raises: BadCheckpoint: this one has, where another could not read the tree.
    """
    damaged = isinstance(error, DamagedCheckpoint)
    all_damaged = all(said == "damaged" for said in said_by_all("damaged" if damaged else "other").values())
    if damaged and not all_damaged:
        raise BadCheckpoint(str(getattr(error, "what", error))) from error


def _is_replaced(place: Path, contents: Contents) -> bool:
    """Whether process 0 finds another tree than that with these contents, whose arrays may have been removed."""
    data = contents.data
    with ExitStack() as closing, suppress(BadCheckpoint):
        data = _found(place, closing)[0].data
    return said_by_all(data)[0] != contents.data


def _agreed(place: Path, closing: ExitStack) -> Found:
    """What all processes find alike. Raises: BadCheckpoint: no whole tree. ProcessesDiffer: one finds another, or none
    for another reason.
    """
    failure: Exception | None = None
    try:
        found = _found(place, closing)
        fact = (found[0].data, f"the arrays {found[0].data}")
    except Exception as error:
        # without a tree, one may have the folder, in which process 0 has locked it, and another none
        kind = BadCheckpoint if isinstance(error, MissingCheckpoint) else type(error)
        failure, fact = error, (kind.__name__, f"no saved tree ({kind.__name__})")
    check_same([("", *fact)], f"restore: every process must find the same tree in {place}")
    if failure is not None:
        raise failure
    return found


def read_folder(folder: Path) -> Found:
    contents = read_contents("restore", folder)
    return contents, partial(StoredArray, folder / contents.data)


def _in_order(leaves: Sequence[StoredLeaf], wanted: Sequence[str]) -> list[StoredLeaf]:
    """The leaves in the order of these paths; those with one path as they were saved.

    Raises: TreeMismatch: the tree that is asked for has other leaves than the saved one.
    """
    places = sorted(range(len(wanted)), key=lambda place: wanted[place])
    found = sorted(leaves, key=lambda leaf: leaf.path)
    saved = [leaf.path for leaf in found]
    if saved == sorted(wanted):
        return [leaf for _, leaf in sorted(zip(places, found), key=lambda pair: pair[0])]
    texts = []
    for word, one, other in (("none", saved, {*wanted}), ("more", wanted, {*saved})):
        paths = [path or "the root" for path in one if path not in other]
        texts += [f"{word} at {some_of(paths)}"] if paths else []
    raise TreeMismatch(
        "restore: like must have the leaves of the saved tree, got "
        f"{' and '.join(texts) or 'another number of them with one path'}.",
        hint="restore(path) gives all that was saved, in dicts, lists and tuples.",
    )


def _reading(
    array: Callable[[StoredLeaf], StoredParts], leaf: StoredLeaf, like: Any
) -> tuple[StoredParts | None, Reading]:
    """The array that is being read, if it is one, and the leaf that is like this one, when it was."""
    kind = _kind(leaf, like)
    if leaf.kind in NUMBERS:
        value = NUMBERS[leaf.kind].read(leaf.text)
        if kind == leaf.kind:
            return None, lambda: value
        if kind in NUMBERS or leaf.kind == "str":
            raise _other_kind(leaf, kind)
        x = as_array(value)
        wanted = _wanted(leaf, x.type, like)
        typed = concrete(x.type.update(weak=wanted.weak_type), np.asarray(x))
        return None, lambda: _as_kind(kind, typed if wanted.sharding is None else device_put(typed, wanted.format))
    if kind in NUMBERS:
        raise _other_kind(leaf, kind)
    wanted, stored = _wanted(leaf, leaf.type, like), array(leaf)
    if wanted.sharding is None:
        stored.ask([()])
        return stored, lambda: _as_kind(kind, concrete(wanted.type, stored.read(())))
    indices = wanted.sharding.addressable_devices_indices_map(wanted.shape).values()
    stored.ask(indices)
    return stored, lambda: _assembled(wanted, stored)


def _kind(leaf: StoredLeaf, like: Any) -> str:
    """The kind of the leaf that is asked for."""
    if like is None:
        return leaf.kind
    if isinstance(like, np.ndarray | np.generic):
        return "numpy" if isinstance(like, np.ndarray) else "scalar"
    return number_name(like) or "array"


def _other_kind(leaf: StoredLeaf, kind: str) -> DTypeMismatch:
    return DTypeMismatch(f"restore: like must have the kinds of the saved leaves, got {kind} at {leaf.place}, which is "
                         f"{leaf.kind}.")


def _wanted(leaf: StoredLeaf, saved: ArrayType, like: Any) -> ShapeDtypeStruct:
    """The type, sharding and layout in which the array of a leaf is to be restored, as ``like`` says.

    Raises: ShapeMismatch, DTypeMismatch: ``saved``, its type in the checkpoint, is another one.
    """
    if like is None:
        return ShapeDtypeStruct(saved.shape, saved.dtype, weak_type=saved.weak)
    wanted = like if isinstance(like, ShapeDtypeStruct) else ShapeDtypeStruct.like(like)
    for error, name in ((ShapeMismatch, "shape"), (DTypeMismatch, "dtype")):
        one, other = getattr(wanted.type, name), getattr(saved, name)
        if one != other:
            raise error(
                f"restore: like must have the {name}s of the saved leaves, got {one} at {leaf.place}, which has "
                f"{other}.",
                hint="restore it as it is, then convert it.",
            )
    sharding = None if wanted.sharding is None else requested("restore", wanted.sharding)
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh) and not sharding.spec.axes:
        sharding = None  # that of a whole type, which names no devices
    if sharding is None:
        return wanted.update(sharding=None)
    sharding.check_fit("restore", lambda: f"the leaf at {leaf.place}", wanted.shape)
    layout = like.format.layout if isinstance(like, ConcreteArray) else wanted.layout
    return wanted.update(sharding=Format(layout, sharding))


def _as_kind(kind: str, x: Any) -> Any:
    if kind == "array":
        return x
    return x.value if kind == "numpy" else x.value[()]


def _assembled(wanted: ShapeDtypeStruct, stored: StoredParts) -> Any:
    """The array with this format, of the parts that were asked for."""

    def part(index: Index) -> Any:
        data = stored.read(index)
        return concrete(wanted.type.update(shape=data.shape[:len(wanted.shape)]), data)

    x = make_array_from_callback(wanted.shape, wanted.format, part)
    return concrete(wanted.type, None, x.buffer)
