"""Clusters on one machine: commands of SLURM and Open MPI 4, and Kubernetes, each of which does so much of what the
real one does as our recipes rest on.
"""

import json
import os
import signal
import ssl
import subprocess
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from handlax.launch import free_port

_TASKS = '''
import os, signal, subprocess, sys, time

def start(command, environments):
    """Start the command once in each environment; what the first process writes is read by ``end``."""
    return [
        subprocess.Popen(command, env=os.environ | told, stdin=subprocess.DEVNULL, text=True, start_new_session=True,
                         stdout=None if index else subprocess.PIPE)
        for index, told in enumerate(environments)
    ]

def end(tasks, at_first_step=lambda: None):
    """Wait for all, end with what they have started, and exit with the highest status."""
    for line in tasks[0].stdout:
        print(line, end="", flush=True)
        if line.startswith("step 10:"):
            at_first_step()
    statuses = [task.wait() for task in tasks]
    for task in tasks:
        try:
            os.killpg(task.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    sys.exit(max([status if status >= 0 else 128 - status for status in statuses]))
'''

# In ``STAND_IN_SIGNAL`` is the signal that a job gets before the end of its time, which is after ten steps here. The
# first process is stopped meanwhile: the runtime looks once a second whether there was a signal.
SRUN = _TASKS + '''
option, *command = sys.argv[1:]
assert option == "--kill-on-bad-exit=0"
count, each = int(os.environ["SLURM_NTASKS"]), int(os.environ["SLURM_NTASKS_PER_NODE"])
nodes = os.environ["SLURM_JOB_NUM_NODES"]
step = {"SLURM_STEP_ID": "0", "SLURM_STEP_NODELIST": ",".join(["localhost"] * int(nodes)),
        "SLURM_STEP_NUM_NODES": nodes, "SLURM_STEP_NUM_TASKS": str(count)}
tasks = start(command, [
    step | {"SLURM_PROCID": str(task), "SLURM_LOCALID": str(task % each), "SLURM_NODEID": str(task // each)}
    for task in range(count)
])

def time_is_over():
    if name := os.environ.get("STAND_IN_SIGNAL"):
        tasks[0].send_signal(signal.SIGSTOP)
        for task in tasks:
            task.send_signal(signal.Signals[f"SIG{name}"])
        time.sleep(3)
        tasks[0].send_signal(signal.SIGCONT)

end(tasks, time_is_over)
'''

SCONTROL = '''
import pathlib, sys
word, job = sys.argv[1:]
assert word == "requeue"
pathlib.Path("requeued").write_text(job)
'''

MPIRUN = _TASKS + '''
n, count, x, exported, *command = sys.argv[1:]
assert (n, x) == ("-n", "-x") and exported in os.environ
job = {"OMPI_MCA_orte_hnp_uri": f"{os.getpid() * 4096}.0;tcp://127.0.0.1:1", "OMPI_COMM_WORLD_SIZE": count,
       "OMPI_COMM_WORLD_LOCAL_SIZE": count}
end(start(command, [
    job | {"OMPI_COMM_WORLD_RANK": str(rank), "OMPI_COMM_WORLD_LOCAL_RANK": str(rank)} for rank in range(int(count))
]))
'''

# Put before a program that calls ``reached_preemption_sync_point(step)``: process 1 is killed at step 30, once.
KILLED = '''
import os, pathlib, signal, handlax
from handlax.experimental import multihost_utils

def killed_at(step, reached=multihost_utils.reached_preemption_sync_point):
    if step == 30 and handlax.process_index() == 1 and not pathlib.Path("killed").exists():
        pathlib.Path("killed").touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return reached(step)

multihost_utils.reached_preemption_sync_point = killed_at
'''

KUBECTL = '''
import json, pathlib, sys
if sys.argv[1:4] == ["create", "secret", "generic"]:
    name, literal = sys.argv[4:]
    key, value = literal.removeprefix("--from-literal=").split("=", 1)
    pathlib.Path("secrets.json").write_text(json.dumps({name: {key: value}}))
else:
    assert sys.argv[1:] == ["apply", "-f", "train.yaml"] and pathlib.Path("train.yaml").exists()
'''

# What every Python process of a pod executes first: the names of pods are this machine, for Python and for XLA's
# runtime, and the service account is in a folder of its own.
_POD = '''
import os, pathlib, socket
from jaxlib import _jax
from handlax.lowering.clients import clusters

clusters._SERVICE_ACCOUNT = pathlib.Path(os.environ["STAND_IN_ACCOUNT"])
names = os.environ["STAND_IN_NAMES"].split()
here = lambda host: "127.0.0.1" if host in names else host

def with_names(function):
    def resolved(address, *arguments, **options):
        host, _, port = address.rpartition(":")
        return function(f"{here(host)}:{port}", *arguments, **options)
    return resolved

socket.getaddrinfo = (lambda known: lambda host, *rest, **more: known(here(host), *rest, **more))(socket.getaddrinfo)
for name in ("get_distributed_runtime_client", "get_distributed_runtime_service"):
    setattr(_jax, name, with_names(getattr(_jax, name)))
'''

# Of localhost, made by ``openssl req -x509 -newkey ec`` for a hundred years.
CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUCi96BCXHYATqf/3CtdnmsF3kU0cwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyOTE1NTUyN1oYDzIxMjYxMTA1
MTU1NTI3WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQXUEbFF0ELXVy+WHRKdtZCW93wcZr8OzxBP94mODpkQVClLKvuekDp
D7ydmQJ9mZ87Vrdg2WpZmPUhmxz/ud8go28wbTAdBgNVHQ4EFgQUOWiKhRAjPbwx
iwIzgwfI85PYX14wHwYDVR0jBBgwFoAUOWiKhRAjPbwxiwIzgwfI85PYX14wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARhwR/AAABgglsb2NhbGhvc3QwCgYIKoZI
zj0EAwIDSAAwRQIgfm4jf+SeOSswXvhdOIUpLtQMg1iivFiDgDPUZau13akCIQD9
+PHsrPCsX6cqwTVEXeRbv3DOdoHsbvtNrSrRlKo3Eg==
-----END CERTIFICATE-----
"""
KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgVxL0IOXHIijLjWjl
sv5BdfQXrtuBK756rHxpNB/u+OKhRANCAAQXUEbFF0ELXVy+WHRKdtZCW93wcZr8
OzxBP94mODpkQVClLKvuekDpD7ydmQJ9mZ87Vrdg2WpZmPUhmxz/ud8g
-----END PRIVATE KEY-----
"""


class Kubernetes:
    """A cluster of one machine, in which manifests are applied: one of each kind, among them one indexed job.

    Its pods are processes. What they find, may ask and are called follows from the manifests.
    """

    def __init__(self, manifests, machine):
        self.manifests = {each["kind"]: each for each in manifests}
        self.job = self.manifests["Job"]
        self.template = self.job["spec"]["template"]
        self.pod = self.template["spec"]
        self.container, = self.pod["containers"]
        self.machine = machine
        self.account = machine.folder / "account"
        self.account.mkdir()
        for name, text in {"namespace": "default", "token": self.pod["serviceAccountName"], "ca.crt": CERTIFICATE,
                           "sitecustomize.py": _POD, "key": KEY}.items():
            (self.account / name).write_text(text)
        self.port = free_port()

    # The API server

    def may(self, account, verb, group, resource, name):
        """Whether the role bound to a service account allows this."""
        binding, role = self.manifests["RoleBinding"], self.manifests["Role"]
        subject = {"kind": "ServiceAccount", "name": account}
        is_bound = subject in binding["subjects"] and binding["roleRef"]["name"] == role["metadata"]["name"]
        exists = self.manifests["ServiceAccount"]["metadata"]["name"] == account
        return exists and is_bound and any(
            verb in rule["verbs"] and group in rule["apiGroups"] and resource in rule["resources"]
            and name in rule["resourceNames"] for rule in role["rules"]
        )

    def answer(self, request):
        """The status and the text that answer a request."""
        account = request.headers["Authorization"].removeprefix("Bearer ")
        *place, resource, name = request.path.strip("/").split("/")
        if place != ["apis", "batch", "v1", "namespaces", "default"] or name != self.job["metadata"]["name"]:
            return 404, ""
        return (200, json.dumps(self.job)) if self.may(account, "get", "batch", resource, name) else (403, "")

    def __enter__(self):
        cluster = self

        class Answer(BaseHTTPRequestHandler):
            def do_GET(self):
                status, text = cluster.answer(self)
                self.send_response(status)
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *words):
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.account / "ca.crt", self.account / "key")
        self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *error):
        self.server.shutdown()
        self.server.server_close()

    # Pods

    def names(self):
        """The names of pods that the cluster knows: by a headless service that selects them."""
        service, labels = self.manifests["Service"], self.template["metadata"]["labels"]
        selects = service["spec"]["selector"].items() <= labels.items() and service["spec"]["clusterIP"] == "None"
        if not selects or service["metadata"]["name"] != self.pod["subdomain"]:
            return []
        return [f"{self.name(index)}.{self.pod['subdomain']}" for index in range(self.job["spec"]["completions"])]

    def name(self, index):
        return f"{self.job['metadata']['name']}-{index}"

    def folder(self, path):
        """Where a path of the container lies: the working directory is the volume, the image has the program."""
        claim, = [volume["persistentVolumeClaim"]["claimName"] for volume in self.pod["volumes"]
                  for mount in self.container["volumeMounts"]
                  if volume["name"] == mount["name"] and mount["mountPath"] == path]
        volume = self.manifests["PersistentVolumeClaim"]
        assert volume["metadata"]["name"] == claim and volume["spec"]["accessModes"] == ["ReadWriteMany"]
        return self.machine.folder

    def environment(self, index):
        secrets = json.loads((self.machine.folder / "secrets.json").read_text())
        told = {}
        for variable in self.container["env"]:
            reference = variable["valueFrom"]["secretKeyRef"]
            told[variable["name"]] = secrets[reference["name"]][reference["key"]]
        path = os.pathsep.join([str(self.account), self.machine.environment.get("PYTHONPATH", "")])
        return self.machine.environment | told | {
            "JOB_COMPLETION_INDEX": str(index), "HOSTNAME": self.name(index), "KUBERNETES_SERVICE_HOST": "127.0.0.1",
            "KUBERNETES_SERVICE_PORT": str(self.server.server_port), "HANDLAX_COORDINATOR_PORT": str(self.port),
            "STAND_IN_NAMES": " ".join(self.names()), "STAND_IN_ACCOUNT": str(self.account), "PYTHONPATH": path}

    def start(self, index):
        command = [word.replace("/app", str(self.machine.folder)) for word in self.container["command"]]
        with (self.machine.folder / "log").open("a") as log:
            return subprocess.Popen(
                command, cwd=self.folder(self.container["workingDir"]), env=self.environment(index),
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True)

    def run(self, timeout):
        """The statuses of pods, until one with each index has succeeded; another takes the place of one that fails."""
        spec, deadline, statuses = self.job["spec"], time.monotonic() + timeout, []
        assert spec["completionMode"] == "Indexed" and spec["completions"] == spec["parallelism"]
        pods = {index: self.start(index) for index in range(spec["completions"])}
        try:
            while pods and time.monotonic() < deadline:
                for index, pod in list(pods.items()):
                    if (status := pod.poll()) is not None:
                        self.end(pods.pop(index))
                        statuses.append(status)
                        if status:
                            pods[index] = self.start(index)
                assert sum(map(bool, statuses)) <= spec["backoffLimit"], statuses
                time.sleep(0.05)
        finally:
            for pod in pods.values():
                self.end(pod)
        return statuses

    def end(self, pod):
        """The end of a container: of all that its first process has started."""
        with suppress(ProcessLookupError):
            os.killpg(pod.pid, signal.SIGKILL)
        pod.wait(60)
