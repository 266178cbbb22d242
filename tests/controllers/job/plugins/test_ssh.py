"""Plugin ssh: keys and client configuration."""

import subprocess
import sys
from base64 import b64decode

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.controllers.job.plugins.seen import KEYS, a_vcjob, data_of, the_pod
from volcano_py.controllers.job.plugins.contract import PluginProblem
from volcano_py.controllers.job.plugins.key_pair import generate_key_pair
from volcano_py.controllers.job.plugins.registry import build_plugins
from volcano_py.kube.resource import SECRETS

CONFIG = """\
StrictHostKeyChecking no
UserKnownHostsFile /dev/null
Host train-master-0
  HostName train-master-0.train
  Port 22
Host train-worker-0
  HostName train-worker-0.train
  Port 22
Host train-worker-1
  HostName train-worker-1.train
  Port 22
"""


def test_every_container_has_keys_and_configuration_that_only_root_can_read():
    pod = the_pod(a_vcjob({"ssh": []}, master=(1, {"initContainers": [{"name": "fetch"}]}), worker=2), "master")

    for container in ("fetch", "main"):
        assert pod[container].files == {
            "/root/.ssh/id_rsa": "the private key",
            "/root/.ssh/id_rsa.pub": "the public key",
            "/root/.ssh/authorized_keys": "the public key",
            "/root/.ssh/config": CONFIG,
        }
        assert set(pod[container].modes.values()) == {0o600}


def test_files_in_another_folder_are_readable_for_its_user():
    pod = the_pod(a_vcjob({"ssh": ["--ssh-key-file-path=/home/me/.ssh"]}, worker=1), "worker")

    assert pod["main"].files["/home/me/.ssh/id_rsa"] == "the private key"
    assert set(pod["main"].modes.values()) == {0o644}


def test_the_configuration_has_the_port_and_the_host_of_the_template():
    job = a_vcjob({"ssh": ["--ssh-port", "2222"]}, master=(3, {"hostname": "boss", "subdomain": "own"}))

    config = the_pod(job, "master")["main"].files["/root/.ssh/config"]

    assert config.splitlines()[2:] == ["Host boss", "  HostName boss.own", "  Port 2222"]


def test_the_secret_follows_the_hosts_and_keeps_the_generated_keys():
    job = a_vcjob({"ssh": []}, worker=2)
    plugins = build_plugins(job)

    (secret,) = plugins.objects(job, KEYS)

    assert plugins.needs_key_pair
    assert secret.resource is SECRETS
    assert (secret.body["metadata"], secret.body["type"]) == ({"name": "train-ssh"}, "Opaque")
    assert (secret.follow, secret.keep) == (("data",), ("id_rsa", "id_rsa.pub", "authorized_keys"))
    assert data_of(secret.body).keys() == {"id_rsa", "id_rsa.pub", "authorized_keys", "config"}


def test_a_later_look_needs_no_key_pair_and_sees_only_the_configuration():
    job = a_vcjob({"ssh": []}, worker=2)
    plugins = build_plugins(job)
    plugins.objects(job, KEYS)

    (secret,) = plugins.objects(job)

    assert secret.body["data"].keys() == {"config"}
    assert b64decode(secret.body["data"]["config"]).decode().count("HostName") == 2
    assert plugins.objects(job)[0] is secret


def test_keys_of_the_user_are_used_and_none_is_generated():
    job = a_vcjob({"ssh": ["--ssh-private-key=mine", "--ssh-public-key=yours"]}, worker=1)
    plugins = build_plugins(job)

    seen = the_pod(job, "worker")["main"]
    (secret,) = plugins.objects(job)

    assert not plugins.needs_key_pair
    assert plugins.warnings == ()
    assert [seen.files[f"/root/.ssh/{name}"] for name in ("id_rsa", "id_rsa.pub", "authorized_keys")] == [
        "mine",
        "yours",
        "yours",
    ]
    assert secret.keep == ()


@pytest.mark.parametrize(
    ("argument", "generated"), [("--ssh-public-key=yours", True), ("--ssh-private-key=mine", False)]
)
def test_half_a_key_pair_is_reported(argument, generated):
    plugins = build_plugins(a_vcjob({"ssh": [argument]}, worker=1))

    assert plugins.needs_key_pair == generated
    assert len(plugins.warnings) == 1
    assert "without --ssh-" in plugins.warnings[0]


def test_more_hosts_than_a_secret_holds_are_a_problem_of_the_job():
    job = a_vcjob({"ssh": []}, worker=20_000)

    with pytest.raises(PluginProblem, match=r'^plugin "ssh": .* bytes in Secret train-ssh'):
        build_plugins(job).objects(job, KEYS)


def test_a_generated_pair_belongs_together_and_has_the_formats_of_openssh():
    pair = generate_key_pair()

    key = serialization.load_pem_private_key(pair.private.encode(), None)
    public = serialization.load_ssh_public_key(pair.public.encode())
    assert pair.private.startswith("-----BEGIN RSA PRIVATE KEY-----\n")
    assert pair.public.startswith("ssh-rsa ")
    assert pair.public.endswith("\n")
    assert isinstance(key, rsa.RSAPrivateKey)
    assert key.key_size == 2048
    assert key.public_key() == public


def test_a_process_without_such_jobs_does_not_load_the_library_for_keys():
    code = (
        "import sys, volcano_py.controllers.job.plugins.registry, volcano_py.controllers.job.plugins.key_pair;"
        " sys.exit('cryptography' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 0
