"""Clusters: a process's index, the number of processes, and the coordinator's address, read from a launcher's
environment.

``CLUSTERS`` lists the launchers that are supported; each sets environment variables of its own.
"""

from __future__ import annotations

import importlib
import importlib.util
import json
import os
import re
import socket
import ssl
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...effects.base.errors import BadArgument, ProcessFailure

LAUNCH_ADDRESS = "HANDLAX_LAUNCH_ADDRESS"
LAUNCH_COUNT = "HANDLAX_LAUNCH_PROCESSES"
LAUNCH_INDEX = "HANDLAX_LAUNCH_PROCESS"
LAUNCH_RESTART = "HANDLAX_LAUNCH_RESTART"
_ORTE_URI = "OMPI_MCA_orte_hnp_uri"
_SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_NAMING = 60  # seconds in which a pod's name is to be known in its cluster


@dataclass(frozen=True, slots=True)
class Cluster:
    """One kind of launcher: functions that read this process's place in the cluster from the environment at each call.

    ``host`` is that of the first process, and ``port`` one that is likely to be free there, the same for all processes.
    ``local_device`` is the number of this process's GPU among those that it sees; None: all of them are its own.
    ``by_name_only``: it is used only if requested by name, never detected.
    """

    name: str
    is_present: Callable[[], bool]
    host: Callable[[], str]
    port: Callable[[], int]
    count: Callable[[], int]
    index: Callable[[], int]
    local_device: Callable[[], int | None]
    by_name_only: bool = False


def find(name: str | None = None) -> Cluster | None:
    """The cluster that started this process, or None; with a name, only that kind of cluster is considered.

    Raises: BadArgument: no cluster has this name.
    """
    names = [*dict.fromkeys([each.name for each in CLUSTERS])]
    if name not in (None, *names):
        raise BadArgument(
            f"distributed.initialize: cluster_detection_method must be one of {', '.join(map(repr, names))}, or "
            f"'deactivate', got {name!r}."
        )
    meant = [each for each in CLUSTERS if (not each.by_name_only if name is None else each.name == name)]
    return next((each for each in meant if each.is_present()), None)


def _has(*names: str) -> Callable[[], bool]:
    return lambda: all([name in os.environ for name in names])


def _number(name: str) -> Callable[[], int]:
    return lambda: int(os.environ[name])


def _ephemeral(number: int) -> int:
    """A port for a job number: one of the last 4,096, so that jobs of different numbers are unlikely to share it."""
    return 65536 - 4096 + number % 4096


def free_port() -> int:
    """A port of this machine at which nobody listens."""
    with socket.socket() as listener:
        listener.bind(("", 0))
        return int(listener.getsockname()[1])


def _own_device(local_index: int, is_alone: bool) -> int | None:
    """The GPU of one of the processes of a machine: the one of its index, where all of them see the same.

    A process that is alone on its machine, or sees a single GPU, has what it sees for itself.
    """
    sees_one = "," not in os.environ.get("CUDA_VISIBLE_DEVICES", ",")
    return None if is_alone or sees_one else local_index


# Our own launcher


def _launched_at(part: int) -> str:
    return os.environ[LAUNCH_ADDRESS].rpartition(":")[part]


def _launched_device() -> int | None:
    return _own_device(int(os.environ[LAUNCH_INDEX]), os.environ[LAUNCH_COUNT] == "1")


# SLURM


def _slurm_port() -> int:
    """A port for a step of a job, of which several may run at the same time; those of the next jobs are far from it."""
    return _ephemeral(int(os.environ["SLURM_JOB_ID"]) + 257 * int(os.environ.get("SLURM_STEP_ID", "0")))


def _slurm_host() -> str:
    """The first host of a node list such as ``node001,host2`` or ``node[001-015,020],host2``."""
    nodes = os.environ["SLURM_STEP_NODELIST"]
    match = re.match(r"([^\[,]+)(?:\[([^\],-]+))?", nodes)
    if match is None:
        raise ProcessFailure(f"distributed.initialize: SLURM_STEP_NODELIST must begin with a node, got {nodes!r}.")
    return match[1] + (match[2] or "")


def _slurm_device() -> int | None:
    if "SLURM_GPUS_PER_TASK" in os.environ:  # then each task sees its own alone
        return None
    is_alone = os.environ.get("SLURM_STEP_NUM_NODES") == os.environ["SLURM_NTASKS"]
    return _own_device(int(os.environ["SLURM_LOCALID"]), is_alone)


# Open MPI: before version 5 the launcher tells its address, since then mpi4py has to be asked


def _ompi_uri() -> str:
    return os.environ.get(_ORTE_URI, "")


def _ompi_host() -> str:
    """The first host of a URI such as ``1531576320.0;tcp://10.96.0.1,10.148.0.1:34911`` or
    ``...;tcp6://[fe80::1,2620::2]:43370``.
    """
    match = re.search(r"tcp://(.+?)[,:]|tcp6://\[(.+?)[,\]]", _ompi_uri())
    if match is None:
        raise ProcessFailure(f"distributed.initialize: Open MPI must tell an address, got {_ompi_uri()!r}.")
    return match[1] or match[2]


def _ompi_device() -> int | None:
    is_alone = os.environ.get("OMPI_COMM_WORLD_LOCAL_SIZE") == "1"
    return _own_device(int(os.environ["OMPI_COMM_WORLD_LOCAL_RANK"]), is_alone)


def _is_ompi_5() -> bool:
    version = os.environ.get("OMPI_VERSION", "").partition(".")[0]
    started = _has("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")()
    return started and (int(version) >= 5 if version.isdecimal() else not _ompi_uri())


def _mpi() -> Any:
    """The module ``mpi4py.MPI``. Raises ProcessFailure: it is not installed."""
    try:
        return importlib.import_module("mpi4py.MPI")
    except ImportError as error:
        raise ProcessFailure(
            "distributed.initialize: mpi4py must be installed, it tells the address since Open MPI 5.",
            hint="pip install mpi4py, or give coordinator_address, num_processes and process_id.",
        ) from error


def _of_first(fact: Callable[[], Any]) -> Any:
    """What ``fact()`` gives in the first process; a collective call, which every process must make."""
    world = _mpi().COMM_WORLD
    return world.bcast(fact() if world.Get_rank() == 0 else None, root=0)


def _mpi_device() -> int | None:
    mpi = _mpi()
    machine = mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED)
    return _own_device(int(machine.Get_rank()), machine.Get_size() == 1)


_MPI = Cluster(
    "mpi4py", lambda: importlib.util.find_spec("mpi4py") is not None, lambda: str(_of_first(socket.gethostname)),
    lambda: int(_of_first(free_port)), lambda: int(_mpi().COMM_WORLD.Get_size()),
    lambda: int(_mpi().COMM_WORLD.Get_rank()), _mpi_device, by_name_only=True,
)


# Kubernetes: a pod of an indexed job knows its index; the rest is asked of the cluster


def _kubernetes_job() -> dict[str, Any]:
    """The Kubernetes job of this pod, whose host name is ``JOB-INDEX``. Raises ProcessFailure: it cannot be read."""
    job = os.environ.get("HOSTNAME", socket.gethostname()).rpartition("-")[0]
    host, port = os.environ["KUBERNETES_SERVICE_HOST"], os.environ.get("KUBERNETES_SERVICE_PORT", "443")
    try:
        namespace = (_SERVICE_ACCOUNT / "namespace").read_text().strip()
        url = f"https://{f'[{host}]' if ':' in host else host}:{port}/apis/batch/v1/namespaces/{namespace}/jobs/{job}"
        token = (_SERVICE_ACCOUNT / "token").read_text().strip()
        request = urllib.request.Request(url, headers={"Authorization": f"Bearer {token}"})
        trust = ssl.create_default_context(cafile=str(_SERVICE_ACCOUNT / "ca.crt"))
        with urllib.request.urlopen(request, context=trust, timeout=30) as answer:
            job_record: dict[str, Any] = json.load(answer)
    except OSError as error:
        raise ProcessFailure(
            f"distributed.initialize: the pod's service account must be able to read its job {job!r}, got {error}.",
            hint="allow it to `get` jobs, or give coordinator_address, num_processes and process_id.",
        ) from error
    return job_record


def _kubernetes_host() -> str:
    """The name of the pod with index 0 in the job's headless service. Raises ProcessFailure: the job has no such
    service.
    """
    job = _kubernetes_job()
    name, labels = job["metadata"]["name"], job["metadata"].get("labels") or {}
    subdomain = job["spec"]["template"]["spec"].get("subdomain")
    subdomain = subdomain or labels.get("jobset.sigs.k8s.io/jobset-name")
    if subdomain is None:
        raise ProcessFailure(
            f"distributed.initialize: the pods of job {name!r} must be able to reach each other, it has no subdomain.",
            hint="make a headless service that selects the job, and name it in spec.template.spec.subdomain.",
        )
    host = f"{name}-0.{subdomain}"
    if _kubernetes_index() == 0:
        _await_name(host)
    return host


def _await_name(host: str) -> None:
    """Wait until the own name of the first pod is known: it listens there, and may start before its service knows it.

    Raises: ProcessFailure: it does not become known.
    """
    deadline = time.monotonic() + _NAMING
    while True:
        try:
            socket.getaddrinfo(host, None)
            return
        except OSError as error:
            if time.monotonic() > deadline:
                raise ProcessFailure(
                    f"distributed.initialize: the first pod's name {host!r} must be known within {_NAMING} s, "
                    f"got {error}.",
                    hint=f"a headless service named {host.partition('.')[2]!r} must select the pods of the job.",
                ) from error
        time.sleep(0.5)


def _kubernetes_index() -> int:
    index = os.environ.get("JOB_COMPLETION_INDEX")
    if index is None:
        raise ProcessFailure(
            "distributed.initialize: the job must be indexed, got no JOB_COMPLETION_INDEX.",
            hint="completionMode: Indexed in the job's spec.",
        )
    return int(index)


CLUSTERS = (
    Cluster(
        "handlax.launch", _has(LAUNCH_ADDRESS, LAUNCH_COUNT, LAUNCH_INDEX), lambda: _launched_at(0),
        lambda: int(_launched_at(2)), _number(LAUNCH_COUNT), _number(LAUNCH_INDEX), _launched_device,
    ),
    Cluster(
        "ompi", lambda: bool(_ompi_uri()) and not _is_ompi_5(), _ompi_host,
        lambda: _ephemeral(int(_ompi_uri().partition(".")[0]) // 4096),  # the low bits of a job's number are zero
        _number("OMPI_COMM_WORLD_SIZE"), _number("OMPI_COMM_WORLD_RANK"), _ompi_device,
    ),
    replace(_MPI, name="ompi", is_present=_is_ompi_5, by_name_only=False),
    Cluster(
        "slurm", _has("SLURM_JOB_ID", "SLURM_STEP_NODELIST", "SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID"),
        _slurm_host, _slurm_port,
        _number("SLURM_NTASKS"), _number("SLURM_PROCID"), _slurm_device,
    ),
    _MPI,
    Cluster(
        "k8s", _has("KUBERNETES_SERVICE_HOST"), _kubernetes_host, lambda: 55527,
        lambda: int(_kubernetes_job()["spec"]["parallelism"]), _kubernetes_index, lambda: None,
    ),
)
