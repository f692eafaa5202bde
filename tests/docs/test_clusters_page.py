"""The recipes of docs/how-to/clusters.md, each executed as it stands there, under a stand-in for the cluster.

Whatever interrupts it, a recipe ends with the weights of one process that nothing interrupts. Recipes that differ from
another in their launcher alone are in a sweep.
"""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers.new_process import inherited
from helpers.package_source import ROOT
from helpers.stand_in_clusters import KILLED, KUBECTL, MPIRUN, SCONTROL, SRUN, Kubernetes

FENCE = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)
BLOCKS = {
    section.partition("\n")[0]: FENCE.findall(section)
    for section in (ROOT / "docs/how-to/clusters.md").read_text().split("\n## ")
}
LIMIT = 300  # seconds


def block(section, language):
    """The first block of a section of the page that is in this language."""
    return next(text for name, text in BLOCKS[section] if name == language)


class Machine:
    """A working directory with train.py, and commands of its own."""

    def __init__(self, folder):
        self.folder, self.commands = folder, folder / "bin"
        self.commands.mkdir()
        (folder / "train.py").write_text(block("The program", "py"))
        self.command("python", f'exec {shlex.quote(sys.executable)} "$@"\n', "/bin/sh")
        path = os.pathsep.join([str(self.commands), str(Path(sys.executable).parent), os.environ["PATH"]])
        schedulers = ("SLURM_", "OMPI_", "KUBERNETES_")
        kept = {name: value for name, value in inherited().items() if not name.startswith(schedulers)}
        self.environment = kept | {"PATH": path, "HANDLAX_PLATFORMS": "cpu"}

    def command(self, name, program, interpreter=sys.executable):
        (self.commands / name).write_text(f"#!{interpreter}\n{program}")
        (self.commands / name).chmod(0o755)

    def precede(self, program):
        """Have something executed before train.py, in the same file."""
        file = self.folder / "train.py"
        file.write_text(program + file.read_text())

    def run(self, script, **environment):
        """Execute a script of the shell: its status and its output."""
        done = subprocess.run(
            ["bash", "-c", script], cwd=self.folder, env=self.environment | environment, stdin=subprocess.DEVNULL,
            capture_output=True, text=True, check=False, timeout=LIMIT)
        return done.returncode, done.stdout + done.stderr

    def saved(self):
        """The step and the weights that were saved last."""
        with np.load(self.folder / "train.npz") as saved:
            return int(saved["step"]), saved["w"]

    def trains(self, script, **environment):
        """Execute a script, which must succeed: its output."""
        status, said = self.run(script, **environment)
        assert status == 0, said
        return said


@pytest.fixture
def machine(tmp_path):
    return Machine(tmp_path)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """What one process saves at the end."""
    machine = Machine(tmp_path_factory.mktemp("alone"))
    machine.trains("python -m handlax.launch --processes 1 train.py")
    step, weights = machine.saved()
    return step, pytest.approx(weights, rel=1e-4, abs=1e-6)


@pytest.mark.sweep
def test_on_one_machine(machine, trained):
    machine.trains(block("On one machine", "sh"))
    assert machine.saved() == trained


def options(script):
    """What the lines ``#SBATCH`` of a script say."""
    return dict(re.findall(r"^#SBATCH --([\w-]+)=?(.*)$", script, re.MULTILINE))


def test_slurm_saves_when_the_time_is_over_and_goes_on_from_there(machine, trained):
    script = block("SLURM", "sh")
    asked = options(script)
    machine.command("srun", SRUN)
    machine.command("scontrol", SCONTROL)
    nodes, each = int(asked["nodes"]), int(asked["ntasks-per-node"])
    job = {"SLURM_JOB_ID": str(os.getpid()), "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_NTASKS": str(nodes * each),
           "SLURM_NTASKS_PER_NODE": str(each), "STAND_IN_SIGNAL": asked["signal"].partition("@")[0]}
    assert asked["gpus-per-node"] == asked["ntasks-per-node"] and "requeue" in asked
    status, said = machine.run(script, **job)
    assert (status, "step 10: loss" in said) == (75, True), said
    assert (machine.folder / "requeued").read_text() == job["SLURM_JOB_ID"]
    step, _ = machine.saved()
    assert 10 < step < trained[0]
    said = machine.trains(script, **job | {"STAND_IN_SIGNAL": ""})
    assert machine.saved() == trained
    assert "step 10: loss" not in said and f"step {step // 10 * 10 + 10}: loss" in said, said


AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
MORE_THAN_CORES = {"PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}


@pytest.mark.sweep
def test_open_mpi_4(machine, trained):
    machine.command("mpirun", MPIRUN)
    machine.trains(block("Open MPI", "sh"))
    assert machine.saved() == trained


def test_open_mpi_5(machine, trained):
    pytest.importorskip("mpi4py")
    if "Open MPI" not in machine.run("mpirun --version")[1]:
        pytest.skip("needs Open MPI")
    machine.trains(block("Open MPI", "sh"), **AS_ROOT, **MORE_THAN_CORES)
    assert machine.saved() == trained


def test_kubernetes_starts_all_pods_again_when_one_is_killed(machine, trained):
    yaml = pytest.importorskip("yaml")
    manifests = block("Kubernetes", "yaml")
    (machine.folder / "train.yaml").write_text(manifests)
    machine.precede(KILLED)
    machine.command("kubectl", KUBECTL)
    machine.trains(block("Kubernetes", "sh"))
    with Kubernetes([*yaml.safe_load_all(manifests)], machine) as cluster:
        statuses = cluster.run(LIMIT)
    said = (machine.folder / "log").read_text()
    assert sorted(statuses) == [-9, 0, 0, 1], said
    assert machine.saved() == trained
    assert "process 1 has left" in said and said.count("step 20: loss") == 1, said


def test_ray_starts_new_actors_when_one_is_killed(machine, trained):
    pytest.importorskip("ray")
    (machine.folder / "actors.py").write_text(block("Ray", "py"))
    machine.precede(KILLED)
    said = machine.trains("python actors.py")
    assert machine.saved() == trained
    assert "attempt 1 has failed" in said and "attempt 2" not in said, said
