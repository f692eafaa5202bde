"""What ``make release`` refuses before it builds, and what it tries."""

import importlib
import subprocess

import pytest
from helpers.package_source import ROOT


@pytest.fixture
def release(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "tools"))
    return importlib.import_module("release")


CHANGELOG = "# Changelog\n\n## [Unreleased]\n{}\n## [0.2.0]\n\n- new\n\n## [0.1.0]\n\n- old\n"


@pytest.mark.parametrize(("status", "text", "said"), [
    ("", "", None), ("", "\n### Added\n", None), ("", "\n### Added\n\n- more\n", "text under Unreleased"),
    (" M handlax/x.py\n", "", "not all is committed:\n M handlax/x.py"),
])
def test_all_must_be_committed_and_under_the_version(release, status, text, said):
    check = lambda: release.check_committed(status, CHANGELOG.format(text))
    if said is None:
        return check()
    with pytest.raises(release.NotReady, match=said):
        check()


@pytest.mark.parametrize(("there", "asked", "found"), [
    (["python3.11", "python3.13"], [], ["python3.11", "python3.13"]),
    (["python3.11", "python3.13"], ["python3.13"], ["python3.13"]),
    (["python3.11"], ["python3.13", "python3.11"], "python3.13"),
    (["python3.13"], [], "python3.11"),  # with which the lowest versions are tried
])
def test_interpreters_that_are_missing_are_named(release, monkeypatch, there, asked, found):
    monkeypatch.setattr(release, "runs", there.__contains__)
    if isinstance(found, list):
        assert release.interpreters(asked) == found
    else:
        with pytest.raises(release.NotReady, match=f"not on the path: {found}$"):
            release.interpreters(asked)


def test_a_command_that_starts_no_python_is_none(release, tmp_path, monkeypatch):
    for name, status in ("python3.11", 0), ("python3.12", 127):
        (tmp_path / name).write_text(f"#!/bin/sh\nexit {status}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [release.runs(f"python3.{minor}") for minor in (11, 12, 13)] == [True, False, False]


def test_the_tree_is_not_tried_in_place_of_the_archive(release):
    assert release.environment({"PATH": "/bin", "PYTHONPATH": "/tree", "PYTHONHOME": "/"}) == {"PATH": "/bin"}


def test_the_lowest_versions_are_those_of_the_requirements(release):
    assert [*release.lowest_versions.lowest(["numpy>=2.0", "jaxlib>=0.10.2,<0.13"])] == ["numpy==2.0", "jaxlib==0.10.2"]


def test_the_release_is_tried_without_extras(release):
    needed, more = release.lowest_versions.pins(), release.lowest_versions.pins(["direct"])
    assert [pin.startswith("greenlet==") for pin in more[len(needed):]] == [True] and more[: len(needed)] == needed
    assert not any([pin.startswith(("greenlet", "tensorstore")) for pin in needed])


def test_what_was_tried_takes_the_place_of_what_was_there(release, tmp_path, monkeypatch):
    monkeypatch.setattr(release, "RELEASE", tmp_path / "build" / "release")
    (tmp_path / "build" / "release").mkdir(parents=True)
    (tmp_path / "build" / "release" / "old.whl").touch()
    (tmp_path / "new.whl").touch()
    release.publish([tmp_path / "new.whl"], "text")
    assert {path.name for path in release.RELEASE.iterdir()} == {"new.whl", "notes.md"}
    assert not (tmp_path / "new.whl").exists()


def test_a_failed_try_leaves_what_was_there(release, tmp_path, monkeypatch, capsys):
    def build(folder):
        (folder / "new.whl").touch()
        return [folder / "new.whl"]

    def refuse(*facts):
        raise release.NotReady("it does not work")

    monkeypatch.setattr(release, "RELEASE", tmp_path)
    facts = dict(build=build, try_out=refuse, said_versions=lambda: {"pyproject.toml": "1.0"}, notes=str,
                 interpreters=lambda asked: ["python"], check_committed=lambda *texts: None)
    for name, value in facts.items():
        monkeypatch.setattr(release, name, value)
    completed = subprocess.CompletedProcess([], 0, "")
    monkeypatch.setattr(subprocess, "run", lambda *words, **options: completed)
    (tmp_path / "old.whl").touch()
    assert release.main([]) == 1 and "it does not work" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["old.whl"]
