"""Pages of meshes and shardings: grids of boxes, one for each device or shard."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...effects.sharding.mesh import Mesh, MeshAxes
from ...effects.sharding.named_sharding import NamedSharding, Sharding
from ...interpreters.inspection.outline import escape
from ...interpreters.inspection.sharding_picture import holders
from .page import Page, describe, note, table, titled

BOXES = 256  # of more devices or shards there is no picture


@describe.register
def _of_mesh(mesh: MeshAxes) -> Page:
    axes = [(name, size, kind.name) for (name, size), kind in zip(mesh.shape_tuple, mesh.axis_types)]
    parts = [table("lrl", ("axis", "size", "type"), axes)]
    if isinstance(mesh, Mesh) and 0 < mesh.size <= BOXES and mesh.axis_sizes:
        names = [device_name(device) for device in mesh.devices.flat]
        columns = mesh.axis_sizes[-1]
        parts.append(_grid([names[i : i + columns] for i in range(0, len(names), columns)]))
        *down, across = map(str, mesh.axis_names)
        parts.append(note(f"{across} to the right" + (f", {' and '.join(down)} down" if down else "")))
    sizes = " x ".join(map(str, mesh.axis_sizes)) or "no axes"
    return titled(f"{type(mesh).__name__} {sizes}", *parts)


@describe.register
def _of_sharding(sharding: Sharding) -> Page:
    return titled(type(sharding).__name__, note(f"memory {sharding.memory_kind}"), *boxes(sharding, 1))


@describe.register
def _of_named_sharding(sharding: NamedSharding) -> Page:
    mesh = sharding.mesh
    axes = ", ".join([f"{name}: {size}" for name, size in mesh.shape_tuple])
    memory = "" if sharding.memory_kind is None else f", memory {sharding.memory_kind}"
    drawn = boxes(sharding, max(len(sharding.spec), 1)) if isinstance(mesh, Mesh) else []
    return titled(f"NamedSharding by {sharding.spec}", note(f"over the mesh {axes}{memory}"), *drawn)


def boxes(sharding: Sharding, rank: int) -> list[str]:
    """The shards of an array of this rank as boxes, the last dimension to the right; in each the devices that hold it.
    """
    texts = holders(sharding, rank)
    return [_grid(texts)] if sum(map(len, texts)) <= BOXES else []


def device_name(device: Any) -> str:
    """The platform and number of a device: ``CPU 3``."""
    return f"{device.platform.upper()} {device.id}"


def _grid(texts: Sequence[Sequence[str]]) -> str:
    """Texts in boxes, each text with a hue of its own."""
    hues = {text: k for k, text in enumerate(dict.fromkeys([text for row in texts for text in row]))}
    style = lambda text: f"background: hsl({360 * hues[text] // len(hues)} 60% 50% / 0.25)"
    cells = [[f'<td style="{style(text)}">{escape(text)}</td>' for text in row] for row in texts]
    rows = [f"<tr>{''.join(row)}</tr>" for row in cells]
    return f'<table class="boxes">{"".join(rows)}</table>'
