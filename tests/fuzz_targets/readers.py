"""Targets that read texts and bytes: programs, artifacts, entries of the disk cache, executables, notations."""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from returns.result import Failure, Success

from handlax import lax, random
from handlax import numpy as hnp
from handlax.checkpoints import restore, save
from handlax.effects.base.caches import per_process
from handlax.effects.base.errors import HandlaxError, ParseError
from handlax.effects.control.callbacks import pure_callback
from handlax.effects.core.arrays import as_array
from handlax.effects.programs.program import Program
from handlax.effects.types.array_type import array_type
from handlax.effects.types.dtypes import float32
from handlax.effects.types.symbolic_shapes import symbolic_shape
from handlax.interpreters.analysis.typecheck import typecheck
from handlax.interpreters.transformations.checkpoint import checkpoint
from handlax.interpreters.transformations.derivatives import grad
from handlax.interpreters.transformations.make_program import make_program
from handlax.lowering.export.artifact_reader import deserialize
from handlax.lowering.export.artifact_schema import SCHEMA
from handlax.lowering.export.export import export
from handlax.lowering.export.flat_tables import Fields, decode, encode
from handlax.lowering.export.serialized_executables import deserialize_and_load
from handlax.lowering.jit.jit import jit
from handlax.lowering.xla import disk_cache
from handlax.testing.fuzzing import Target

_X = np.arange(3, dtype=np.float32)
_CONSTANTS = (as_array(_X), as_array(np.float32(2.0)))

# Values of fields that are of another kind, far too large, or that name what is not there.
PROGRAM_WORDS = (
    "0", "-1", "1", "2", "7", "9" * 5000, "99999999999", "1.5", "nan", "inf", "-0.0", "1e400", "True", "None", "()",
    "(0,)", "(0,0)", "(-1,)", "(1,2)", "(0,1,0)", "((0,0),)", "(0,(1,))", "(9999999999999,)", "'x'", "{}", "f32",
    "f32[2]", "n0", "op neg", "class neg", "range(0,3,1)", "frozen(1,2)", "tree()", "key<fry>", "@p0", "@c0", "...",
    "builtins:int", "complex(1,2)", "float(zz)", "f32[9223372036854775808]", "frozen((1,), tree())",
    "tree(None, None, ())", "tree(None, None, (1))", "tree(builtins:list, None, (tree(), tree()))",
    "b'x'", "tree(builtins:list, None, (f32))", "tree(builtins:dict, (1,2), (tree(),))", "tree(builtins:int, 1, ())",
)


def parse(data: bytes, constants: Sequence[Any] = _CONSTANTS) -> Program:
    """The program of a text, which the checker accepts, and whose text is read as the same program."""
    try:
        program = Program.parse(data.decode("utf-8", "surrogateescape"), constants)
    except ParseError:
        raise
    except HandlaxError as error:
        raise AssertionError(f"a text that is no program must be a ParseError, got {error}") from error
    typecheck(program)
    assert Program.parse(str(program), program.constants) == program, "text of the text's program"
    return program


def _programs() -> Iterable[bytes]:
    """Texts of programs with every kind of body, and with fields of many kinds."""
    functions: tuple[Callable[..., Any], ...] = (
        lambda x: hnp.sin(x) * 2 + x,
        lambda x: lax.scan(lambda c, y: (c + y * _X[0], c), 0.0, x, reverse=True),
        lambda x: lax.cond(x[0] > 0, lambda: x, lambda: x * x),
        lambda x: lax.while_loop(lambda c: c.sum() < 9.0, lambda c: c + x, x),
        lambda x: jit(lambda y: y * x)(x + 1),
        lambda x: grad(checkpoint(lambda x: hnp.sum(hnp.sin(x))))(x),
        lambda x: x.at[hnp.array([0, 2])].add(x[1:]),
        lambda x: random.normal(random.key(3), (2,)) + x[:2],
        lambda x: pure_callback(np.sin, array_type((3,), float32), x),
        lambda x: hnp.einsum("i,j->ij", x, x).reshape(9)[::-2],
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (1,), "SAME"),
    )
    return [str(make_program(f)(_X)).encode() for f in functions]


@per_process
def _exported() -> tuple[Fields, ...]:
    """The tables of some exported functions."""
    (rows,) = symbolic_shape("rows")

    def trees(x: Any, k: Any) -> Any:
        return {"r": hnp.sin(x) * k["a"], "n": (x.sum(), None)}

    def doubled(x: Any) -> Any:
        return x * 2

    made = (
        export(jit(trees))(_X, {"a": np.float32(2.0)}).serialize(vjp_order=1),
        export(jit(doubled), platforms=("cpu", "cuda"))(_X).serialize(vjp_order=1),
        export(jit(doubled))(array_type((rows,), float32)).serialize(),
    )
    return tuple([decode(SCHEMA, "Exported", bytes(each)) for each in made])


def _with_programs(table: Fields, program: Callable[[bytes], bytes]) -> Fields:
    """A table with other programs, also in the derivatives that it contains."""
    inner, given = table["vjp"], table["mlir_module_serialized"]
    return {
        **table, "vjp": inner and _with_programs(inner, program),
        "mlir_module_serialized": None if given is None else program(given),
    }


@per_process
def _modules() -> tuple[bytes, ...]:
    """The programs of the exported functions and of their derivatives."""
    found: list[bytes] = []
    for table in _exported():
        _with_programs(table, lambda module: found.append(module) or module)  # type: ignore[func-returns-value]
    return tuple(found)


def read_artifact(data: bytes) -> object:
    """The exported function of tables in which a byte stands for each program: damaged ones may end MLIR's reader."""
    modules = _modules()
    table = _with_programs(decode(SCHEMA, "Exported", data), lambda number: modules[sum(number) % len(modules)])
    found = deserialize(encode(SCHEMA, "Exported", table))
    return repr(found), hash(found), found.serialize(vjp_order=int(found.has_vjp()))


def _artifacts() -> Iterable[bytes]:
    """Tables with numbers of programs, without identifier and checksum, as JAX writes them."""
    modules = _modules()
    for table in _exported():
        encoded = encode(SCHEMA, "Exported", _with_programs(table, lambda module: bytes([modules.index(module)])))
        yield encoded[:4] + bytes(4) + encoded[8:-4]


_KEY = hashlib.sha256(b"the program of the entry").digest()


@per_process
def _folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="handlax-fuzzing-")


def read_entry(data: bytes) -> object:
    """The program of an entry of the disk cache: the one that was stored, or the reason why it is none."""
    path = Path(_folder().name) / "entry.xla"
    path.write_bytes(data)
    found = disk_cache.load(path, _KEY)
    if isinstance(found, Failure):
        return found.failure()
    disk_cache.store(path, _KEY, found.unwrap())
    assert path.read_bytes() == data, "what is loaded must be what was stored"
    return Success


def _entries() -> Iterable[bytes]:
    path = Path(_folder().name) / "seed.xla"
    disk_cache.store(path, _KEY, b"a program")
    yield path.read_bytes()


def read_tree(data: bytes) -> object:
    """The arrays of a file of safetensors."""
    path = Path(_folder().name) / "tree.safetensors"
    path.write_bytes(data)
    return restore(path)


def _trees() -> Iterable[bytes]:
    path = Path(_folder().name) / "seed.safetensors"
    save(path, {"a": _X, "b": [np.ones(2, np.int8), hnp.zeros(4, "float4_e2m1fn")], "c": np.zeros((0, 3), bool)})
    yield path.read_bytes()


def read_executable(data: bytes) -> object:
    """The compiled function of the bytes of ``serialize``; others do not have their checksum."""
    return deserialize_and_load(data, None, None)


_NOTATIONS: tuple[Callable[[str], Any], ...] = (
    symbolic_shape,
    lambda text: symbolic_shape("a, b", constraints=[text]),
    lambda text: hnp.vectorize(lambda x, y: x * y, signature=text)(_X, _X),
    lambda text: hnp.zeros(2, text),
    lambda text: hnp.einsum(text, _X, _X),
    lambda text: lax.conv_dimension_numbers((1, 2, 3), (1, 2, 3), tuple(text.split(","))),
)


def read_notation(data: bytes) -> object:
    """The small languages of arguments: sizes with variables, signatures, dtypes, subscripts, dimension numbers."""
    text = data[1:].decode("utf-8", "surrogateescape")
    return _NOTATIONS[(data or b"\0")[0] % len(_NOTATIONS)](text)


def _notations() -> Iterable[bytes]:
    sizes = "a, 2*b, floordiv(a, 2), mod(b, 3), max(a, 1)"
    texts = (sizes, "a >= 2*b + 1", "(n),(n)->()", "float32", "i,i->", "NCH,OIH")
    return [bytes([number]) + text.encode() for number, text in enumerate(texts)]


PARSER = Target("parser", parse, _programs, tuple([word.encode() for word in PROGRAM_WORDS]))
_PIECES = (b"a", b"9" * 30, b"(", b"**", b"mod(a, 0)", b"->", b"...", b"-1", b"=")
READERS = (
    PARSER,
    Target("artifact", read_artifact, _artifacts),
    Target("entry", read_entry, _entries),
    Target("safetensors", read_tree, _trees, (b'{"a":', b'"shape":[', b'"data_offsets":[0,', b'"F4"', b"9" * 30)),
    Target("executable", read_executable, lambda: [b"handlax executable 1\n" + _KEY]),
    Target("notation", read_notation, _notations, _PIECES),
)
