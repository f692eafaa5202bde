"""The functions of docs/how-to/ffi.md in C++, and a few that tests need beside, as a library of this machine."""

import ctypes
import functools
import re
import shutil
import subprocess
import tempfile
from pathlib import Path

import numpy as np
import pytest

import handlax as hx

PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "ffi.md"
MORE = """
#include <atomic>

// what its attributes hold, as one row of numbers
static ffi::Error attributes(int64_t i, double d, bool b, std::string_view s, ffi::Span<const float> a,
                             ffi::Dictionary more, ffi::Result<ffi::Buffer<ffi::F64>> y) {
  auto n = more.get<int32_t>("n");
  if (n.has_error()) return n.error();
  double sum = 0;
  for (float x : a) sum += x;
  const double row[] = {double(i), d, double(b), double(s.size()), sum, double(*n)};
  std::copy(row, row + 6, y->typed_data());
  return ffi::Error::Success();
}

static std::atomic<int> calls{0};
static ffi::Error count(ffi::AnyBuffer) {
  ++calls;
  return ffi::Error::Success();
}
extern "C" int calls_so_far() { return calls; }

XLA_FFI_DEFINE_HANDLER_SYMBOL(
    Attributes, attributes, ffi::Ffi::Bind().Attr<int64_t>("i").Attr<double>("d").Attr<bool>("b")
    .Attr<std::string_view>("s").Attr<ffi::Span<const float>>("a").Attr<ffi::Dictionary>("more")
    .Ret<ffi::Buffer<ffi::F64>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(Count, count, ffi::Ffi::Bind().Arg<ffi::AnyBuffer>());
"""


def block(language: str) -> str:
    """The first block of the page in this language."""
    found = re.search(rf"^```{language}\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert found, language
    return found[1]


@functools.cache
def library() -> ctypes.CDLL:
    """The library, compiled once; the test is skipped where there is no compiler or no header."""
    compiler = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    if compiler is None:
        pytest.skip("there is no compiler of C++")
    if not (Path(hx.ffi.include_dir()) / "xla" / "ffi" / "api" / "ffi.h").exists():
        pytest.skip("jaxlib has no headers here")
    folder = Path(tempfile.mkdtemp())
    (folder / "functions.cc").write_text(block("cpp") + MORE)
    options = ["-std=c++17", "-O0", "-w", "-shared", "-fPIC", f"-I{hx.ffi.include_dir()}"]
    subprocess.run(
        [compiler, *options, "-o", folder / "functions.so", folder / "functions.cc"], check=True, timeout=300
    )
    found = ctypes.CDLL(str(folder / "functions.so"))
    shutil.rmtree(folder)
    for name, symbol in (("attributes", found.Attributes), ("count", found.Count)):
        hx.ffi.register_ffi_target(f"test_{name}", hx.ffi.pycapsule(symbol))
    return found


def calls_of(f, *args):
    """How often ``f(*args)`` calls the function that counts its calls."""
    before = library().calls_so_far()
    hx.block_until_ready(f(*args))
    hx.effects_barrier()
    return library().calls_so_far() - before


def count(x, effectful=True, method=None):
    """``x``, after a call of the function that counts its calls."""
    hx.ffi.ffi_call("test_count", (), has_side_effect=effectful, vmap_method=method)(x)
    return x


@functools.cache
def rms_norm():
    """The function of the page with its derivative."""
    space = {"hx": hx, "np": np, "ffi_call": hx.ffi.ffi_call, "library": library()}
    source = block("py").replace('library = ctypes.CDLL("./rms_norm.so")', "")
    exec(compile(source, "<page>", "exec"), space)
    return space["rms_norm"]
