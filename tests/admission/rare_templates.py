"""Templates that break the rules that are rarely broken: of every one of the others there is one in `templates`."""

from collections.abc import Mapping
from typing import Any, Final

from tests.admission.changes import Changes
from tests.admission.template_parts import (
    EMPTY,
    INIT,
    LONG,
    RES,
    C,
    amount_of,
    device,
    expression,
    mounted,
    near,
    node_terms,
    of_pod,
    projected,
    variable,
    volume,
)


def claims(*found: Any) -> Changes:
    """Return a pod whose container uses devices of the claim of the pod."""
    return {"spec/resourceClaims": [{"name": "r", "resourceClaimName": "r"}], RES: {"claims": list(found)}}


def claim(**fields: Any) -> Changes:
    """Return a pod with a claim of devices."""
    return {"spec/resourceClaims": [fields]}


def from_file(source: str = "emptyDir", **fields: Any) -> Changes:
    """Return a pod with a variable whose value stands in a file."""
    reference = {"volumeName": "v", "path": "f", "key": "K", **fields}
    volumes = [{"name": "v", source: {} if source == "emptyDir" else {"name": "c"}}]
    return {"spec/volumes": volumes, **variable(valueFrom={"fileKeyRef": reference})}


def rules(count: int, operator: str = "In", codes: int = 1) -> Changes:
    """Return a pod with rules of restarting."""
    rule = {"action": "Restart", "exitCodes": {"operator": operator, "values": list(range(1, codes + 1))}}
    return {f"{C}/restartPolicy": "Never", f"{C}/restartPolicyRules": [rule] * count}


def resizing(**fields: Any) -> Changes:
    """Return a pod with a policy of resizing."""
    return {f"{C}/resizePolicy": [fields]}


def labels_match(*expressions: Any) -> Changes:
    """Return a pod near others that expressions choose."""
    return near(labelSelector={"matchExpressions": list(expressions)})


def devices(*found: Any, mounts: Any = ()) -> Changes:
    """Return a pod with block devices of two claims."""
    volumes = [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in ("v", "w")]
    return {
        "spec/volumes": [*volumes, {**EMPTY, "name": "e"}],
        f"{C}/volumeDevices": list(found),
        f"{C}/volumeMounts": list(mounts),
    }


def trust(**fields: Any) -> Changes:
    """Return a pod with a bundle of certificates."""
    return projected({"clusterTrustBundle": {"path": "a", **fields}})


_TOKEN: Final = {"path": "t", "expirationSeconds": 2**32 + 1}
_V: Final = {"name": "v", "devicePath": "/dev/v"}
RARE: Final[Mapping[str, Changes]] = {
    "amounts of a pod for windows": {**of_pod(requests={"cpu": "2", "memory": "2Gi"}), "spec/os": {"name": "windows"}},
    "claims of a pod's resources": of_pod(claims=[{"name": "r"}]),
    "an amount that is none": {RES: {"requests": {"cpu": "much"}}},
    "huge pages of a pod below its containers": {
        **of_pod(limits={"hugepages-2Mi": "2Mi", "cpu": "2", "memory": "2Gi"}),
        RES: {"limits": {"hugepages-2Mi": "4Mi", "cpu": "1", "memory": "1Gi"}},
    },
    "an amount of a quota": {RES: {"limits": {"requests.example.com/x": "1"}}},
    "a device without claim": claims({"name": ""}),
    "a request of a device that is none": claims({"name": "r", "request": "A B"}),
    "one device twice": claims({"name": "r"}, {"name": "r"}),
    "a claim without name": claim(name="", resourceClaimName="r"),
    "a claim with a name that is none": claim(name="A_B", resourceClaimName="r"),
    "a claim of a name that is none": claim(name="r", resourceClaimName="A_B"),
    "pull policy of a volume": volume("image", reference="a", pullPolicy="Sometimes"),
    "secret of a driver without name": volume("csi", driver="d.example.com", nodePublishSecretRef={}),
    "projected secret without name": projected({"secret": {}}),
    "token for more than a century": projected({"serviceAccountToken": _TOKEN}),
    "bundle of a name and a signer": trust(name="a", signerName="example.com/b"),
    "bundle of nothing": trust(),
    "a debug container": {"spec/ephemeralContainers": [{"name": "debug", "image": "busybox:1"}]},
    "file without volume": from_file(volumeName=""),
    "file of another volume": from_file(volumeName="x"),
    "file of a ConfigMap": from_file("configMap"),
    "file without path": from_file(path=""),
    "more than twenty rules": rules(21),
    "rule of another operator": rules(1, operator="Gt"),
    "rule of too many codes": rules(1, codes=256),
    "device without name": device(name=""),
    "one device at two paths": devices(_V, {**_V, "devicePath": "/dev/w"}),
    "two devices at one path": devices(_V, {**_V, "name": "w"}),
    "device where a volume is": devices(_V, mounts=[{"name": "e", "mountPath": "/dev/v"}]),
    "mount without name": mounted(name=""),
    "read only below, and passed on": mounted(
        readOnly=True, recursiveReadOnly="Enabled", mountPropagation="HostToContainer"
    ),
    "resize of nothing": resizing(restartPolicy="NotRequired"),
    "resize without reaction": resizing(resourceName="cpu"),
    "resize with another reaction": resizing(resourceName="cpu", restartPolicy="Sometimes"),
    "another host name that is none": {"spec/hostnameOverride": "A_B"},
    "another host name as FQDN": {"spec/hostnameOverride": "a", "spec/setHostnameAsFQDN": True},
    "another host name of 65 letters": {"spec/hostnameOverride": f"{LONG}.a"},
    "search paths of 2,049 letters": {
        "spec/dnsConfig": {"searches": [f"{index:02}{LONG[2:]}.{LONG}" for index in range(17)]}
    },
    "grpc without port": {f"{C}/livenessProbe": {"grpc": {"port": 0}}},
    "sidecar that asks nothing": {"spec/initContainers": [{**INIT, "restartPolicy": "Always", "livenessProbe": {}}]},
    "labels that are there, with values": labels_match(expression("a", "Exists", "b")),
    "key of a label that is none": labels_match(expression("a b", "Exists")),
    "value of a label that is none": labels_match(expression("a", "In", "b c")),
    "field of a node above": node_terms(fields=[expression("metadata.name", "Gt", "1")]),
    "node of a name that is none": node_terms(fields=[expression("metadata.name", "In", "A_B")]),
    "amount of nothing": amount_of(""),
    "sysctl of the host's memory": {
        "spec/hostIPC": True,
        "spec/securityContext": {"sysctls": [{"name": "kernel.shmmax", "value": "1"}]},
    },
    "empty policy of groups": {"spec/securityContext": {"fsGroupChangePolicy": ""}},
    "profile without type": {"spec/securityContext": {"seccompProfile": {"type": ""}}},
    "padded profile": {f"{C}/securityContext": {"appArmorProfile": {"type": "Localhost", "localhostProfile": " a "}}},
    "own users of a device": {"spec/hostUsers": False, **device()},
    "key of others that is none": near(matchLabelKeys=["a b"]),
}
"""Templates of which no pod could be made either."""
