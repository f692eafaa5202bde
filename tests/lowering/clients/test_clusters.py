"""Clusters by the variables that their schedulers set, which are faked here."""

import io
import json
import os
import socket

import pytest

from handlax.effects.base.errors import BadArgument, ProcessFailure
from handlax.lowering.clients import clusters

MARKS = ("HANDLAX_LAUNCH", "SLURM_", "OMPI_", "KUBERNETES_", "JOB_COMPLETION_INDEX", "HOSTNAME", "CUDA_VISIBLE_DEVICES")
SLURM = {
    "SLURM_JOB_ID": "10007", "SLURM_STEP_NODELIST": "node[003,007-015],login2", "SLURM_NTASKS": "8",
    "SLURM_PROCID": "5", "SLURM_LOCALID": "1",
}
OMPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1",
}
LAUNCH = {
    "HANDLAX_LAUNCH_ADDRESS": "127.0.0.1:4242", "HANDLAX_LAUNCH_PROCESSES": "3", "HANDLAX_LAUNCH_PROCESS": "2",
}
POD = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443", "HOSTNAME": "train-me-3",
    "JOB_COMPLETION_INDEX": "3",
}


@pytest.fixture
def environment(monkeypatch):
    """A function that replaces the variables of clusters by the given ones."""
    def replace(**variables):
        for name in [name for name in os.environ if name.startswith(MARKS)]:
            monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    replace()
    return replace


def told(cluster):
    facts = (cluster.host, cluster.port, cluster.count, cluster.index, cluster.local_device)
    return [cluster.name, *[fact() for fact in facts]]


@pytest.mark.parametrize(("variables", "expected"), [
    (SLURM, ["slurm", "node003", 61440 + 10007 % 4096, 8, 5, 1]),
    (SLURM | {"SLURM_STEP_ID": "3"}, ["slurm", "node003", 61440 + (10007 + 3 * 257) % 4096, 8, 5, 1]),
    (OMPI, ["ompi", "10.96.0.1", 61440 + 1531576320 // 4096 % 4096, 4, 3, 1]),
    (LAUNCH, ["handlax.launch", "127.0.0.1", 4242, 3, 2, 2]),
    (SLURM | LAUNCH, ["handlax.launch", "127.0.0.1", 4242, 3, 2, 2]),
], ids=["slurm", "a step", "ompi", "launch", "launch in slurm"])
def test_a_cluster_is_recognised_by_its_variables(environment, variables, expected):
    environment(**variables)
    assert told(clusters.find()) == expected


@pytest.mark.parametrize(("variables", "device"), [
    (SLURM | {"CUDA_VISIBLE_DEVICES": "0,1,2,3"}, 1),
    (SLURM | {"SLURM_STEP_NUM_NODES": "2"}, 1),
    (SLURM | {"SLURM_STEP_NUM_NODES": "8", "CUDA_VISIBLE_DEVICES": "0,1,2,3"}, None),
    (SLURM | {"CUDA_VISIBLE_DEVICES": "0"}, None),
    (SLURM | {"SLURM_GPUS_PER_TASK": "2", "CUDA_VISIBLE_DEVICES": "2,3"}, None),
    (OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "2"}, 1),
    (OMPI | {"OMPI_COMM_WORLD_LOCAL_SIZE": "1"}, None),
    (LAUNCH | {"HANDLAX_LAUNCH_PROCESSES": "1"}, None),
], ids=["slurm", "of two nodes", "a node each", "sees one", "given its own", "ompi", "ompi, alone", "launch, alone"])
def test_a_process_takes_one_of_the_devices_that_others_see_too_else_all(environment, variables, device):
    environment(**variables)
    assert clusters.find().local_device() == device


@pytest.mark.parametrize(("nodes", "first"), [
    ("node001", "node001"), ("node001,host2", "node001"), ("node[001-0015],host2", "node001"),
    ("node[001,007-015],host2", "node001"), ("a-b.c[7]", "a-b.c7"),
])
def test_the_first_node_of_slurm(environment, nodes, first):
    environment(**SLURM | {"SLURM_STEP_NODELIST": nodes})
    assert clusters.find().host() == first


@pytest.mark.parametrize("nodes", ["", ",node1", "[001-015]"])
def test_a_list_of_nodes_begins_with_one(environment, nodes):
    environment(**SLURM | {"SLURM_STEP_NODELIST": nodes})
    with pytest.raises(ProcessFailure, match="must begin with a node, got"):
        clusters.find().host()


def test_an_address_of_open_mpi_may_be_one_of_version_6(environment):
    environment(**OMPI | {"OMPI_MCA_orte_hnp_uri": "1314521088.0;tcp6://[fe80::b9b:ac5d,2620:10d::2]:43370"})
    assert clusters.find().host() == "fe80::b9b:ac5d"
    environment(**OMPI | {"OMPI_MCA_orte_hnp_uri": "1.0;usock"})
    with pytest.raises(ProcessFailure, match="Open MPI must tell an address"):
        clusters.find().host()


class World:
    """mpi4py's module and communicator, as one process of some sees them; ``said`` is what the first one broadcasts."""

    COMM_TYPE_SHARED = 1

    def __init__(self, rank, size=4, said=()):
        self.rank, self.size, self.said, self.COMM_WORLD = rank, size, list(said), self

    def Get_rank(self):
        return self.rank

    def Get_size(self):
        return self.size

    def Split_type(self, kind):
        return World(self.rank % 2, self.size // 2)

    def bcast(self, value, root):
        return self.said.pop(0) if self.rank else value


@pytest.mark.parametrize("version", ["5.0.3", None])
def test_open_mpi_5_is_asked_by_mpi4py(environment, monkeypatch, version):
    ranks = {name: value for name, value in OMPI.items() if "orte" not in name}
    environment(**ranks | ({"OMPI_VERSION": version} if version else {}))
    fourth = World(3, said=["first", 99])
    monkeypatch.setattr(clusters, "_mpi", lambda: fourth)
    assert told(clusters.find()) == ["ompi", "first", 99, 4, 3, 1]
    monkeypatch.setattr(clusters, "_mpi", lambda: World(0, size=2))
    first = clusters.find()
    assert (first.host(), first.local_device()) == (socket.gethostname(), None)
    with socket.create_server(("", first.port())):
        assert first.port() != 0
    monkeypatch.undo()
    environment(**ranks)
    monkeypatch.setattr(clusters.importlib, "import_module", raising(ImportError("none")))
    with pytest.raises(ProcessFailure, match="mpi4py must be installed"):
        clusters.find().count()


def raising(error):
    def function(*args, **kwargs):
        raise error
    return function


def test_a_cluster_may_be_named(environment, monkeypatch):
    environment(**SLURM)
    assert clusters.find("slurm").name == "slurm"
    assert clusters.find("ompi") is None
    with pytest.raises(BadArgument, match="'slurm', 'mpi4py', 'k8s', or 'deactivate', got 'pbs'"):
        clusters.find("pbs")
    monkeypatch.setattr(clusters.importlib.util, "find_spec", lambda name: name)
    assert clusters.find("mpi4py").name == "mpi4py"
    environment()
    assert clusters.find() is None, "mpi4py is used where it is asked for alone"


@pytest.fixture
def pod(environment, monkeypatch, tmp_path):
    """A function that makes this process a pod of the given job; it gives the requests made of the cluster."""
    for name in ("namespace", "token", "ca.crt"):
        (tmp_path / name).write_text(f"{name}\n")
    monkeypatch.setattr(clusters, "_SERVICE_ACCOUNT", tmp_path)
    monkeypatch.setattr(clusters.ssl, "create_default_context", lambda cafile: cafile)

    def make(job, **variables):
        environment(**POD | variables)
        asked = []

        def urlopen(request, context, timeout):
            asked.append((request.full_url, request.get_header("Authorization"), context))
            return io.BytesIO(json.dumps(job).encode())

        monkeypatch.setattr(clusters.urllib.request, "urlopen", urlopen)
        return asked

    return make


def job(subdomain=None, **labels):
    spec = {"parallelism": 5, "template": {"spec": {"subdomain": subdomain} if subdomain else {}}}
    return {"metadata": {"name": "train-me", "labels": labels}, "spec": spec}


def test_a_pod_of_an_indexed_job_asks_for_its_job(pod, tmp_path):
    asked = pod(job("pods"))
    assert told(clusters.find()) == ["k8s", "train-me-0.pods", 55527, 5, 3, None]
    url = "https://10.0.0.1:443/apis/batch/v1/namespaces/namespace/jobs/train-me"
    assert asked[0] == (url, "Bearer token", str(tmp_path / "ca.crt"))
    asked = pod(job("pods"), KUBERNETES_SERVICE_HOST="fd00::1")
    assert clusters.find().count() == 5 and asked[0][0] == url.replace("10.0.0.1", "[fd00::1]")
    pod(job(**{"jobset.sigs.k8s.io/jobset-name": "jobs"}))
    assert clusters.find().host() == "train-me-0.jobs"


def test_the_first_pod_waits_until_its_name_is_known(pod, monkeypatch):
    answers = [OSError("unknown name"), OSError("unknown name"), []]

    def getaddrinfo(host, port):
        assert host == "train-me-0.pods"
        if isinstance(answer := answers.pop(0), OSError):
            raise answer
        return answer

    monkeypatch.setattr(clusters.socket, "getaddrinfo", getaddrinfo)
    monkeypatch.setattr(clusters.time, "sleep", lambda seconds: None)
    pod(job("pods"), JOB_COMPLETION_INDEX="0")
    assert clusters.find().host() == "train-me-0.pods" and not answers
    monkeypatch.setattr(clusters, "_NAMING", -1)
    answers += [OSError("unknown name")]
    with pytest.raises(ProcessFailure, match=r"name 'train-me-0\.pods' must be known .*got unknown name"):
        clusters.find().host()


def test_what_a_job_must_have_is_said(pod, environment, monkeypatch):
    pod(job())
    with pytest.raises(ProcessFailure, match="has no subdomain"):
        clusters.find().host()
    monkeypatch.setattr(clusters.urllib.request, "urlopen", raising(OSError("403 Forbidden")))
    with pytest.raises(ProcessFailure, match="read its job 'train-me', got 403 Forbidden"):
        clusters.find().count()
    environment(KUBERNETES_SERVICE_HOST="10.0.0.1")
    with pytest.raises(ProcessFailure, match="the job must be indexed"):
        clusters.find().index()
