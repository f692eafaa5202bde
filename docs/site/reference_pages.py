"""Sphinx extension: the page of a namespace, which lists its names in the repository, has all of each name on the site.

Each has its signature with types, its whole docstring, its source, and the name by which JAX knows it.
"""

from __future__ import annotations

import inspect
from functools import cache
from types import ModuleType
from typing import Any

import jax_names
import reference
from sphinx.application import Sphinx

_FOLDER = "reference/"


def directive(module: ModuleType, name: str, indexed: bool) -> list[str]:
    """The lines of reStructuredText that document one name; of several names of one thing one is ``indexed``."""
    value, full = getattr(module, name), f"{module.__name__}.{name}"
    options = [] if indexed else ["   :no-index:"]
    if inspect.isclass(value):
        exception = issubclass(value, BaseException)
        own = value.__module__.startswith("handlax") and not exception
        members = ["   :members:"] if own and indexed else []
        return [f".. auto{'exception' if exception else 'class'}:: {full}", *members, *options]
    if inspect.isroutine(value) or (callable(value) and hasattr(value, "__wrapped__")):
        return [f".. autofunction:: {full}", *options]
    text = reference.description(module, name).replace("`", "``")
    return [f".. py:data:: {full}", *options, f"   :value: {reference.default(value)[:80]}", "", f"   {text}"]


@cache
def first_namespaces() -> dict[int, str]:
    """The first namespace that has it, by the identity of each class and decorated function."""
    first: dict[int, str] = {}
    for namespace, module in reference.namespaces().items():
        for name in reference.public_names(module):
            first.setdefault(id(getattr(module, name)), namespace)
    return first


def jax_name(namespace: str, name: str, known: dict[str, frozenset[str]]) -> str:
    """What JAX calls a name of a namespace."""
    module = jax_names.jax_module(namespace)
    return f"In JAX: ``{module}.{name}``." if name in known.get(module, ()) else "Not in JAX."


def page(namespace: str, module: ModuleType) -> str:
    """The page of one namespace."""
    known, first = jax_names.read(), first_namespaces()
    blocks = [["```{eval-rst}", f".. py:module:: {namespace}", "```"]]
    for name in reference.public_names(module):
        value = getattr(module, name)
        if not isinstance(value, ModuleType):
            lines = directive(module, name, first.get(id(value), namespace) == namespace)
            jax = [".. container:: jax-name", "", f"   {jax_name(namespace, name, known)}"]
            if getattr(value, "__name__", name) == name:  # else autodoc adds a line to the text: "alias of ..."
                jax = [f"   {line}".rstrip() for line in jax]
            blocks.append(["```{eval-rst}", *lines, "", *jax, "```"])
    text = "\n\n".join(["\n".join(lines) for lines in blocks])
    return f"# {namespace}\n\n{reference.sentence(module)}\n\n{text}\n"


def replace(app: Sphinx, document: str, source: list[str]) -> None:
    """Put the page of a namespace in the place of its list."""
    namespace = document.removeprefix(_FOLDER)
    if namespace in reference.NAMESPACES and document.startswith(_FOLDER):
        module = reference.loaded(namespace)
        assert module is not None
        source[0] = page(namespace, module)


def skip_field(app: Sphinx, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Leave out the fields of named tuples, which the docstring of the class describes."""
    return True if type(value).__name__ == "_tuplegetter" else None


def setup(app: Sphinx) -> dict[str, Any]:
    app.connect("source-read", replace)
    app.connect("autodoc-skip-member", skip_field)
    return {"parallel_read_safe": True}
