"""The programs of examples/gallery: at their small size each reaches what it claims, and its page shows it."""

from __future__ import annotations

import ast
import importlib
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.columns_apart import columns_apart
from matplotlib import image, rc_context

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples" / "gallery"
PROGRAMS = sorted(path for path in FOLDER.glob("*.py") if path.stem != "command_line")
LARGEST = 80_000        # bytes of a picture


def autoencoder(found):
    """It learns, and an average over more draws is a better bound of the evidence."""
    assert found["loss"] < 0.3 * found["first loss"] and found["bound"] < found["evidence"] < 0


def batch_norm(found):
    """It learns, and each layer counts one update a step, however often a block is computed."""
    assert found["loss"] < 0.5 * found["first loss"] and found["accuracy"] > 0.3
    assert found["fewest updates"] == found["most updates"] == 20


def character_transformer(found):
    """It learns, and the cache gives the scores that the whole text gives, at a fraction of the price."""
    assert found["test loss"] < 0.6 * found["first loss"]
    assert found["difference"] < 1e-4 and found["price"] < 0.1


def five_handlers(found):
    """Without noise, with all bits, the handled network is the network; without a layer it is another one."""
    assert found["multiplications"].tolist() == [64 * 48, *[48 * 48] * 4, 48 * 10]
    assert found["activations"].shape == (5,) and 0 < found["activations"].min() < found["activations"].max() < 1
    assert found["accuracy"] > 0.9 and {*found["by noise"][0].tolist()} == {found["accuracy"]}
    assert abs(found["by bits"][-1] - found["accuracy"]) < 0.02 and found["by bits"][0] < 0.5
    assert found["by noise"][-1].mean() < 0.7 and found["without"].min() < 0.3


def gaussian_process(found):
    """The evidence grows, and years that it has not seen are within its band."""
    assert found["loss"] < found["first loss"] and found["error"] < 3 and found["within two deviations"] > 0.9


def neural_ode(found):
    """It fits, and the evaluations of both solvers are counted."""
    assert found["loss"] < found["first loss"] and found["forward"] > 7 and found["adjoint"] > 7


def ragged_sequences(found):
    """Both train alike, and the ragged arrays need a fraction of the padding's arithmetic and memory."""
    widest, wide, ragged = found["costs"]
    assert found["difference"] < 1e-5 and found["losses"][-1] < found["losses"][0]
    assert 5 * ragged["Mflop"] < wide["Mflop"] < widest["Mflop"]
    assert 2 * ragged["MiB"] < wide["MiB"] < widest["MiB"]


def regression(found):
    """Every draw is another one, the chains agree, and shrink the coefficients whose sign the data leave open."""
    assert found["distinct"] == 1 and found["r_hat"] < 1.05 and 0.6 < found["accepted"] < 1
    assert 0.8 < found["covered"] < 0.97
    assert np.abs(found["weights"]).sum() < np.abs(found["least squares"]).sum()
    assert np.abs(found["weights"][:4] - found["least squares"][:4]).max() < 0.03


def ultrasound(found):
    """Six steps of the descent go in the right direction, in the memory of the checkpoints."""
    assert found["last"] < 0.7 * found["first"] and found["match"] > 0.3
    assert 5 * found["memory"]["checkpoints"] < found["memory"]["max_steps"]
    assert len({*found["steps"].tolist()}) > 1


def vowels_and_consonants(found):
    """The sum over hidden states is the sum over paths, which drawing approaches, and states tell vowels apart."""
    assert abs(found["summed"] - found["exact"]) < 1e-3 and abs(found["drawn"] - found["exact"]) < 1
    assert found["vowels apart"] and found["bits"] < 4.1


CLAIMS = {claim.__name__: claim for claim in (
    autoencoder, batch_norm, character_transformer, five_handlers, gaussian_process, neural_ode, ragged_sequences,
    regression, ultrasound, vowels_and_consonants,
)}


def plain(text: str) -> str:
    """The words of a docstring or of a page, whatever its lines and quotes."""
    return " ".join(text.replace("``", "`").split())


@pytest.fixture
def program(monkeypatch):
    """Imports a program as Python does that runs it; its effects and the style of its pictures are gone afterwards."""
    monkeypatch.syspath_prepend(str(FOLDER))
    before = {*sys.modules}
    with columns_apart(), rc_context():
        yield importlib.import_module
    for file in FOLDER.glob("*.py"):
        if file.stem not in before:
            sys.modules.pop(file.stem, None)


@pytest.mark.optimised      # some claims are about memory
@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_a_program_reaches_what_it_claims(file, program, tmp_path):
    picture = tmp_path / f"{file.stem}.png"
    found = program(file.stem).main(small=True, picture=str(picture))
    CLAIMS[file.stem](found)
    assert image.imread(picture).std() > 0.05


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_a_program_is_short_and_uses_public_names_alone(file):
    text = file.read_text()
    assert 50 <= sum(bool(line.strip()) for line in text.splitlines()) <= 150
    for layer in ("effects", "interpreters", "lowering"):
        assert f"handlax.{layer}" not in text


@pytest.mark.parametrize("file", PROGRAMS, ids=lambda file: file.stem)
def test_the_gallery_shows_a_program(file):
    """Its section has the words of its docstring, its picture, its source, and the command that runs it."""
    sections = re.split(r"^## ", (ROOT / "docs" / "gallery.md").read_text(), flags=re.MULTILINE)
    (section,) = [section for section in sections if f"examples/gallery/{file.name})" in section]
    assert section.splitlines()[0].lower() == file.stem.replace("_", " ")
    for paragraph in ast.get_docstring(ast.parse(file.read_text())).split("\n\n"):
        assert plain(paragraph) in plain(section)
    assert f"python examples/gallery/{file.name}" in section
    assert f"](gallery/{file.stem}.png)" in section
    picture = ROOT / "docs" / "gallery" / f"{file.stem}.png"
    assert picture.stat().st_size < LARGEST
    height, width, _ = image.imread(picture).shape
    assert width <= 900 and height <= width


def test_a_picture_in_a_folder_that_is_not_there_is_refused_before_the_work(program, monkeypatch, capsys, tmp_path):
    command_line, calls = program("command_line"), []
    run = lambda picture: (
        monkeypatch.setattr(sys, "argv", ["program", "--picture", str(picture)]),
        command_line.run(lambda **options: calls.append(options)),
    )
    with pytest.raises(SystemExit):
        run(tmp_path / "none" / "a.png")
    assert f"there is no folder {tmp_path / 'none'}" in capsys.readouterr().err and not calls
    run(tmp_path / "a.png")
    assert calls == [{"small": False, "picture": str(tmp_path / "a.png")}]
