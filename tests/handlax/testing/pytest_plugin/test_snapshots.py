"""Programs are compared with what is recorded of them, and what is no part of a program makes no difference."""

import numpy as np
import pytest

import handlax as hx
from handlax import numpy as hnp
from handlax.testing.pytest_plugin.snapshots import MOST_LINES, PROGRAM, STABLEHLO, Snapshots, difference, normalized


def model(w, x):
    return hnp.tanh(w @ x).sum()


ARGUMENTS = hnp.ones((2, 3)), hnp.ones(3)


def recorded(folder, f, *args, kind=STABLEHLO):
    Snapshots(folder, "test_model", kind, update=True)(f)(*args)
    (file,) = folder.iterdir()
    return file


@pytest.mark.parametrize("kind", [STABLEHLO, PROGRAM], ids=["stablehlo", "program"])
def test_a_program_is_compared_with_the_one_that_is_recorded(kind, tmp_path):
    file = recorded(tmp_path, model, *ARGUMENTS, kind=kind)
    text = file.read_text()
    assert Snapshots(tmp_path, "test_model", kind)(model)(*ARGUMENTS) == text and "tanh" in text
    with pytest.raises(AssertionError, match=r"(?s)the program must be the recorded one.*- .*tanh.*\+ .*sin"):
        Snapshots(tmp_path, "test_model", kind)(lambda w, x: hnp.sin(w @ x).sum())(*ARGUMENTS)
    assert file.read_text() == text


def test_a_program_that_is_not_recorded_is_refused(tmp_path):
    with pytest.raises(AssertionError, match=r"(?s)a snapshot must be recorded.*--handlax-update"):
        Snapshots(tmp_path, "test_model")(model)(*ARGUMENTS)
    assert not [*tmp_path.iterdir()]


def test_an_update_writes_what_has_changed_alone(tmp_path):
    file = recorded(tmp_path, model, *ARGUMENTS)
    before = file.stat().st_mtime_ns
    assert recorded(tmp_path, model, *ARGUMENTS).stat().st_mtime_ns == before
    recorded(tmp_path, lambda w, x: w @ x, *ARGUMENTS)
    assert "tanh" not in file.read_text()


def test_a_jitted_function_has_its_static_arguments(tmp_path):
    power = hx.jit(lambda x, n: x**n, static_argnums=1)
    assert "stablehlo.multiply" in Snapshots(tmp_path, "test_power", update=True)(power)(np.float32(2.0), 2)


def test_functions_of_one_test_have_names(tmp_path):
    snapshot = Snapshots(tmp_path, "test_two[a/b]", update=True)
    snapshot(model)(*ARGUMENTS)
    snapshot(hnp.sin, "sine")(1.0)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["test_two[a_b].mlir", "test_two[a_b].sine.mlir"]
    with pytest.raises(AssertionError, match="must be the name of one snapshot"):
        snapshot(model)


def test_names_of_modules_and_of_values_and_locations_make_no_difference():
    one = """module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %0 = stablehlo.sine %arg0 : tensor<f32>
    return %0 : tensor<f32>
  }
}
"""
    other = """#loc = loc(unknown)
module @jit_g {
  func.func public @main(%arg0: tensor<f32>) -> tensor<f32> {
    %cst_7 = stablehlo.sine %arg0 : tensor<f32> loc("sin"("a.py":3:1))
    return %cst_7 : tensor<f32> loc(#loc)
  }
}
"""
    assert normalized(one) == normalized(other)
    assert normalized(one) != normalized(other.replace("sine", "cosine"))
    assert "num_partitions = 8" in normalized(one.replace("partitions = 1", "partitions = 8"))


def test_a_difference_shows_what_is_new_and_not_what_is_renumbered():
    words = ["add", "exp", "tanh", "mul"]
    before = "\n".join([f"%{n} = {word} %{n - 1}" for n, word in enumerate(words, 1)])
    after = "\n".join([f"%{n} = {word} %{n - 1}" for n, word in enumerate(["add", "sine", *words[1:]], 1)])
    assert difference(before, after) == "  line 2\n  + %2 = sine %1"
    assert difference("%1 = sub %0 %0", "%1 = sub %0 %1") == "  line 1\n  - %1 = sub %0 %0\n  + %1 = sub %0 %1"


def test_a_long_difference_is_cut():
    shown = difference("\n".join("abc"), "\n".join(f"line {n}" for n in range(100)))
    assert len(shown.splitlines()) == MOST_LINES + 1 and shown.endswith("lines more")
