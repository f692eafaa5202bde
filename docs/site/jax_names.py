"""The names that JAX's public modules have, from the list that tools/record_jax_names.py writes."""

from __future__ import annotations

from pathlib import Path

from handlax.as_jax.places import MODULES

NAMES = Path(__file__).parent / "jax_names.txt"


def jax_module(namespace: str) -> str:
    """The module of JAX's of which a namespace has the names: ``jax.X`` for ``handlax.X``, with few exceptions."""
    moved = {ours: theirs for theirs, ours in MODULES.items() if not theirs.startswith("jax._src")}
    return moved.get(namespace, "jax" + namespace.removeprefix("handlax"))


def read() -> dict[str, frozenset[str]]:
    """The names by module."""
    lines = [line.partition(":") for line in NAMES.read_text().splitlines() if not line.startswith("#")]
    return {module: frozenset(text.split()) for module, _, text in lines}
