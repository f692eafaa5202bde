"""Shape refinement: portable artifacts with unknown sizes for arguments of known types, by XLA's passes."""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...effects.base.errors import NotExportable, ShapeMismatch
from . import mlir_modules

_INNER = "refined_main"


def refined_artifact(artifact: bytes, name: str, takes: Sequence[str], gives: Sequence[str]) -> bytes:
    """The artifact of the function ``name`` for arguments of the types ``takes``, with results of the types ``gives``.

    Raises: ShapeMismatch: an assertion of the program about its sizes does not hold. NotExportable: some sizes do not
    follow from those of the arguments.
    """
    text = _entry_text(artifact, takes, gives)
    try:
        refined = mlir_modules.refined(text)
    except (RuntimeError, ValueError) as error:
        found = re.search(r"error: (.*)", str(error))
        said = str(error) if found is None else found[1]
        if "shape_assertion" in str(error):
            raise ShapeMismatch(f"{name}: {said}", hint="other sizes, or export the function for these.") from error
        raise NotExportable(f"{name}: sizes must follow from those of the arguments, got {said}.") from error
    return mlir_modules.portable_artifact(mlir_modules.parsed(refined))


def _entry_text(artifact: bytes, takes: Sequence[str], gives: Sequence[str]) -> str:
    """The module with an entry of these types, which calls the one that it had."""
    module = mlir_modules.read_artifact(artifact)
    ins, outs = mlir_modules.entry_types(artifact)
    symbols = {symbol: _INNER if symbol == "main" else symbol for symbol in mlir_modules.symbols_of(module)}
    meshes = mlir_modules.mesh_texts(module)
    inner = [f"  {function.text}" for function in mlir_modules.renamed_functions(module, symbols)]
    given, made = [f"%in{i}" for i in range(len(ins))], [f"%made#{i}" for i in range(len(outs))]
    results = [f"%out{i}" for i in range(len(outs))]
    arguments = ", ".join([f"%arg{i}: {t}" for i, t in enumerate(takes)])
    call = f"func.call @{_INNER}({', '.join(given)}) : ({', '.join(ins)}) -> ({', '.join(outs)})"
    lines = [
        *meshes,
        f"  func.func public @main({arguments}) -> ({', '.join(gives)}) {{",
        *[f"    {x} = stablehlo.convert %arg{i} : ({t}) -> {u}" for i, (x, t, u) in enumerate(zip(given, takes, ins))],
        f"    %made:{len(outs)} = {call}" if outs else f"    {call}",
        *[f"    {y} = stablehlo.convert {x} : ({t}) -> {u}" for y, x, t, u in zip(results, made, outs, gives)],
        f"    return {', '.join(results)} : {', '.join(gives)}" if outs else "    return",
        "  }",
        *inner,
    ]
    return "\n".join(["module {", *lines, "}"])
