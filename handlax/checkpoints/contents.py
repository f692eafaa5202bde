"""The table of contents of a saved tree: the metadata of a Zarr group, written last, in one step.

    folder/zarr.json               the table, with a digest of itself
    folder/data.1f0c3a5e/0.w/      an array of Zarr's third format, one for each array of the tree

What ``zarr.json`` names is whole. All else in the folder is of a save that goes on, or was killed.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from stat import S_ISREG
from types import NoneType
from typing import Any, NamedTuple

from ..effects.base.errors import BadCheckpoint, DamagedCheckpoint, HandlaxError, MissingCheckpoint
from ..effects.trees.frozen_tree import Frozen
from ..effects.trees.path_keys import DictKey
from ..effects.trees.paths import keystr
from ..effects.trees.structure import level
from ..lowering.clients.agreement import digest
from .folder_lock import FolderLock, sync_folder
from .stored_leaves import StoredLeaf, check_stored

TABLE = "zarr.json"
_FORMAT = 1
_NAME = re.compile(r"data\.[0-9a-f]{8}")  # of the arrays of one save


class Contents(NamedTuple):
    """The name of the folder of the arrays, the outline of the tree, its leaves, and what the saver has noted."""

    data: str
    outline: Any
    leaves: tuple[StoredLeaf, ...]
    notes: Mapping[str, Any]

    def __str__(self) -> str:
        """The text of the file."""
        said = {"format": _FORMAT, **self._asdict(), "leaves": [_facts(leaf) for leaf in self.leaves]}
        attributes = {"handlax": said, "sha256": digest(json.dumps(said).encode())}
        return json.dumps({"zarr_format": 3, "node_type": "group", "attributes": attributes})


def new_data_name() -> str:
    """A name for the arrays of one save, which no other save has."""
    return f"data.{uuid.uuid4().hex[:8]}"


def data_in(folder: Path, before: str = "") -> list[Path]:
    """What is in a folder by a name of arrays, after the text ``before``."""
    return [path for path in folder.iterdir()
            if path.name.startswith(before) and _NAME.fullmatch(path.name, len(before))]


def is_saved(folder: Path) -> bool:
    """Whether a tree was saved in a folder, or begun to be, damaged or not."""
    if FolderLock(folder).file.is_file():
        return True
    table = folder / TABLE
    return table.is_file() and b'"handlax"' in table.read_bytes()


def _facts(leaf: StoredLeaf) -> dict[str, Any]:
    return {name: value for name, value in leaf._asdict().items() if value != StoredLeaf._field_defaults.get(name)}


def _leaf(facts: Mapping[str, Any]) -> StoredLeaf:
    fields: dict[str, Any] = {name: tuple(x) if type(x) is list else x for name, x in facts.items()}
    return StoredLeaf(**fields)


def read_contents(where: str, folder: Path) -> Contents:
    """The table of contents in a folder.

    Raises: MissingCheckpoint: there is no folder. DamagedCheckpoint: the table is not as it was written. BadCheckpoint:
    there is none, it cannot be read, or it is of another version.
    """
    hint, kind = None, BadCheckpoint
    try:
        if not S_ISREG((folder / TABLE).stat().st_mode):  # nothing is read of a pipe, which may have no end
            raise BadCheckpoint("no regular file")
        text = (folder / TABLE).read_text()
        said = json.loads(text)["attributes"]["handlax"]
        if said["format"] == _FORMAT:
            leaves = tuple([_leaf(facts) for facts in said["leaves"]])
            contents = Contents(said["data"], said["outline"], leaves, said["notes"])
            if str(contents) == text:
                _check(contents)
                return contents
            raise BadCheckpoint("a damaged one")
        else:
            found = f"one of the format {said['format']!r}, where this version reads {_FORMAT}"
    except NotADirectoryError:
        raise BadCheckpoint(
            f"{where}: {folder} must be a folder with a saved tree or a file .safetensors, got a file of another kind.",
            hint="numpy.load reads the arrays of a file .npz or .npy.",
        ) from None
    except FileNotFoundError:
        if not folder.exists():
            raise MissingCheckpoint.at(where, folder) from None
        found, hint = "none", "a save that was killed leaves none."
    except OSError as error:
        found = f"one that cannot be read: {error.strerror or error}"
    except MemoryError:
        raise
    except HandlaxError as error:
        found, kind = error.what.rstrip("."), DamagedCheckpoint
    except Exception as error:  # a table that no save has written
        found, kind = f"{type(error).__name__}: {error}", DamagedCheckpoint
    raise kind(
        f"{where}: {folder / TABLE} must be the table of contents of a saved tree, got {found}.", hint=hint)


def _check(contents: Contents) -> None:
    """Check a table whose digest is right. Raises: any error: no save has written it."""
    if not _NAME.fullmatch(contents.data):
        raise BadCheckpoint(f"the arrays {contents.data!r}")
    for leaf in contents.leaves:
        check_stored(leaf)
    numbers = iter(range(len(contents.leaves)))
    plain(contents.outline, numbers)
    if next(numbers, None) is not None:
        raise BadCheckpoint("an outline of fewer leaves")
    contents.notes.items()


def new_table(folder: Path) -> Path:
    """Where a table is written before it is in its place."""
    return folder / f"{TABLE}.new"


def commit(folder: Path, contents: Contents) -> None:
    """Write the table of contents in one step: a kill at any moment leaves the former one, or this one."""
    new = new_table(folder)
    with open(new, "w") as file:
        file.write(str(contents))
        file.flush()
        os.fsync(file.fileno())
    os.replace(new, folder / TABLE)
    sync_folder(folder)


def outline_of(tree: Any) -> Any:
    """The containers of a tree, in JSON: a leaf is 0, ``[0, 0]`` is ``{"list": [0, 0]}``, ``{"a": 0}`` is
    ``{"dict": [["a", 0]]}``.

    A node that is no list, tuple, dict or None is a dict of its children by name, a frozen tree is the tree, and a key
    that JSON does not have is its text. Where two children have one name, the node is a list of them.
    """
    root = level(tree)
    if root is None:
        return 0
    kind, _, keys, children = root
    inner = [outline_of(child) for child in children]
    if kind is NoneType:
        return None
    if kind is Frozen:
        return inner[0]
    if kind in (list, tuple):
        return {kind.__name__: inner}
    names = [_name(key) for key in keys]
    return {"dict": [*zip(names, inner)]} if len({*names}) == len(names) else {"list": inner}


def _name(key: Any) -> Any:
    value = key.key if isinstance(key, DictKey) else None
    return value if type(value) in (str, int, float, bool) else keystr((key,), simple=True)


def plain(outline: Any, leaves: Iterator[Any]) -> Any:
    """The tree of an outline, with these leaves."""
    if outline is None:
        return None
    if outline == 0:
        return next(leaves)
    ((kind, inner),) = outline.items()
    if kind == "dict":
        return {key: plain(child, leaves) for key, child in inner}
    return {"list": list, "tuple": tuple}[kind]([plain(child, leaves) for child in inner])
