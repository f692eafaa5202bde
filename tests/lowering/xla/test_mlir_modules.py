"""Modules of MLIR: portable artifacts and what is read of them."""

import pytest

from handlax.errors import BadArtifact, NotExportable
from handlax.lowering.xla import mlir_modules

TEXT = """module @m {
  sdy.mesh @mesh = <["a"=2, "b"=4]>
  func.func public @main(%x: tensor<3xf32>) -> (tensor<3xf32>, tensor<f32>) {
    %y = func.call @other(%x) : (tensor<3xf32>) -> tensor<3xf32>
    %z = stablehlo.custom_call @target(%y) : (tensor<3xf32>) -> tensor<f32>
    return %y, %z : tensor<3xf32>, tensor<f32>
  }
  func.func private @other(%x: tensor<3xf32>) -> tensor<3xf32> {
    %y = sdy.sharding_constraint %x <@mesh, [{}]> : tensor<3xf32>
    return %y : tensor<3xf32>
  }
}
"""


def test_an_artifact_is_read_as_it_was_written():
    artifact = mlir_modules.portable_artifact(mlir_modules.parsed(TEXT))
    module = mlir_modules.read_artifact(artifact)
    assert mlir_modules.portable_artifact(module) == artifact
    assert mlir_modules.entry_types(artifact) == (("tensor<3xf32>",), ("tensor<3xf32>", "tensor<f32>"))
    assert mlir_modules.called_targets(module) == {"target"}
    assert mlir_modules.meshes_of(module) == {"mesh": (("a", 2), ("b", 4))}
    assert [*mlir_modules.symbols_of(module)] == ["mesh", "main", "other"]
    assert mlir_modules.mesh_texts(module) == ['  sdy.mesh @mesh = <["a"=2, "b"=4]>']


def test_the_entry_is_found_behind_other_functions():
    first, main, second = TEXT.partition("  func.func public")
    entry, other, rest = second.partition("  func.func private")
    text = f"{first}{other}{rest.removesuffix('}' + chr(10))}{main}{entry}}}"
    artifact = mlir_modules.portable_artifact(mlir_modules.parsed(text))
    assert [*mlir_modules.symbols_of(mlir_modules.read_artifact(artifact))] == ["mesh", "other", "main"]
    assert mlir_modules.entry_types(artifact) == (("tensor<3xf32>",), ("tensor<3xf32>", "tensor<f32>"))


def test_symbols_may_take_each_others_names():
    module = mlir_modules.parsed(TEXT)
    names = {"main": "other", "other": "main", "mesh": "mesh_1"}
    first, second = mlir_modules.renamed_functions(module, names)
    assert (first.symbol, second.symbol) == ("other", "main")
    assert 'sym_name = "other", sym_visibility = "private"' in first.text
    assert "callee = @main" in first.text
    assert "<@mesh_1, [{}]>" in second.text
    parts = "\n".join(['sdy.mesh @mesh_1 = <["a"=2, "b"=4]>', first.text, second.text])
    assert mlir_modules.parsed(f"module {{\n{parts}\n}}").operation.verify()


def test_meshes_with_an_order_of_devices_are_refused():
    module = mlir_modules.parsed(TEXT.replace('"b"=4]', '"b"=4], device_ids=[7, 6, 5, 4, 3, 2, 1, 0]'))
    with pytest.raises(NotExportable, match="in the order of their mesh"):
        mlir_modules.meshes_of(module)


def test_bytes_that_are_no_artifact_are_refused():
    artifact = mlir_modules.portable_artifact(mlir_modules.parsed(TEXT))
    for data in (artifact[:50], artifact[:-1], artifact + b"\1", artifact[1:], b"no artifact", b"",
                 b"ML\xefR" + bytes(20)):
        with pytest.raises(BadArtifact, match="must be MLIR's bytecode, all of it"):
            mlir_modules.read_artifact(data)
    later = artifact[:4] + b"\x63" + artifact[5:]  # bytecode of version 49
    with pytest.raises(BadArtifact, match="must be a portable artifact of StableHLO that jaxlib"):
        mlir_modules.read_artifact(later)
    with pytest.raises(BadArtifact, match="a function main"):
        mlir_modules.entry_types(mlir_modules.portable_artifact(mlir_modules.parsed("module {}")))
