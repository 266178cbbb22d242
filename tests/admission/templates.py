"""Pod templates, good and bad, each as the changes that make it from a plain one.

The same templates go to a real API server as pods
(`tests/e2e/test_pod_templates.py`).
"""

from collections.abc import Mapping
from typing import Any, Final

from tests.admission.changes import GONE, Changes, changed

PLAIN: Final[Mapping[str, Any]] = {
    "metadata": {"labels": {"app": "a"}},
    "spec": {
        "containers": [
            {"name": "main", "image": "busybox:1", "resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}
        ],
        "restartPolicy": "Never",
    },
}


def template_of(changes: Changes) -> dict[str, Any]:
    """Return the plain template with changes."""
    return changed(PLAIN, changes)


C: Final = "spec/containers/0"
RES: Final = f"{C}/resources"
LONG: Final = "a" * 63
INIT: Final = {"name": "init", "image": "busybox:1"}
PROBE: Final = {"httpGet": {"path": "/", "port": 80}}
EMPTY: Final = {"name": "v", "emptyDir": {}}
CLAIM: Final = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
_REQ: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREF: Final = "preferredDuringSchedulingIgnoredDuringExecution"


def volume(kind: str, **source: Any) -> Changes:
    """Return a pod with one volume that is mounted."""
    return {"spec/volumes": [{"name": "v", kind: source}], f"{C}/volumeMounts": [{"name": "v", "mountPath": "/v"}]}


def mounted(**mount: Any) -> Changes:
    """Return a pod with an empty folder, and a mount of it."""
    return {"spec/volumes": [EMPTY], f"{C}/volumeMounts": [{"name": "v", "mountPath": "/v", **mount}]}


def device(**fields: Any) -> Changes:
    """Return a pod with a claim, and a block device of it."""
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    return {"spec/volumes": [claim], f"{C}/volumeDevices": [{"name": "v", "devicePath": "/dev/v", **fields}]}


def port(**fields: Any) -> Changes:
    """Return a pod with one port."""
    return {f"{C}/ports": [{"containerPort": 80, **fields}]}


def variable(**fields: Any) -> Changes:
    """Return a pod with one variable."""
    return {f"{C}/env": [{"name": "V", **fields}]}


def field_of(path: str, **more: Any) -> Changes:
    """Return a pod with a variable that is a field of the pod."""
    return variable(valueFrom={"fieldRef": {"fieldPath": path, **more}})


def amount_of(resource: str, **more: Any) -> Changes:
    """Return a pod with a variable that is a request or limit."""
    return variable(valueFrom={"resourceFieldRef": {"resource": resource, **more}})


def toleration(**fields: Any) -> Changes:
    """Return a pod with one toleration."""
    return {"spec/tolerations": [fields]}


def node_terms(*expressions: Any, fields: Any = ()) -> Changes:
    """Return a pod with required node affinity."""
    term: dict[str, Any] = {"matchExpressions": list(expressions)}
    if fields:
        term["matchFields"] = list(fields)
    return {"spec/affinity/nodeAffinity": {_REQ: {"nodeSelectorTerms": [term]}}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    """Return a requirement of a selector."""
    return {"key": key, "operator": operator, **({"values": list(values)} if values else {})}


def near(**fields: Any) -> Changes:
    """Return a pod with required pod affinity."""
    term = {"labelSelector": {"matchLabels": {"app": "a"}}, "topologyKey": "kubernetes.io/hostname", **fields}
    return {"spec/affinity/podAffinity": {_REQ: [term]}}


def spread(**fields: Any) -> Changes:
    """Return a pod with one constraint of spreading."""
    plain = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"}
    return {"spec/topologySpreadConstraints": [{**plain, **fields}]}


def projected(*sources: Any) -> Changes:
    """Return a pod with a volume of several sources."""
    return volume("projected", sources=list(sources))


def ephemeral(**spec: Any) -> Changes:
    """Return a pod with a claim of its own."""
    found = {key: value for key, value in {**CLAIM, **spec}.items() if value is not GONE}
    return volume("ephemeral", volumeClaimTemplate={"spec": found})


def requests(**fields: Any) -> Changes:
    """Return a pod with other requests and limits."""
    return {RES: fields}


def of_pod(**fields: Any) -> Changes:
    """Return a pod with resources of its own."""
    return {"spec/resources": fields}


GOOD: Final[Mapping[str, Changes]] = {
    "plain": {},
    "no metadata": {"metadata": {}},
    "no resources": {RES: GONE},
    "image with a digest": {f"{C}/image": f"registry.example.com:5000/a/b@sha256:{'0' * 64}"},
    "image of one letter": {f"{C}/image": "a"},
    "name of 63 letters": {f"{C}/name": LONG},
    "restart Always": {"spec/restartPolicy": "Always"},
    "restart OnFailure": {"spec/restartPolicy": "OnFailure"},
    "restart by default": {"spec/restartPolicy": GONE},
    "label with prefix": {"metadata/labels": {"example.com/app": "My_App.1"}},
    "label without value": {"metadata/labels": {"app": ""}},
    "annotation with any value": {"metadata/annotations": {"Example.com/Note": "anything at all: é {}"}},
    "two containers": {"spec/containers/1": {"name": "side", "image": "busybox:1"}},
    "init container": {"spec/initContainers": [INIT]},
    "sidecar with probe": {"spec/initContainers": [{**INIT, "restartPolicy": "Always", "livenessProbe": PROBE}]},
    "init container of its own restart policy": {"spec/initContainers": [{**INIT, "restartPolicy": "OnFailure"}]},
    "container restart policy": {f"{C}/restartPolicy": "Always"},
    "container restart rules": {
        f"{C}/restartPolicy": "Never",
        f"{C}/restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}],
    },
    "pull policy": {f"{C}/imagePullPolicy": "Never"},
    "message policy": {f"{C}/terminationMessagePolicy": "FallbackToLogsOnError"},
    "working dir and command": {f"{C}/command": ["sh"], f"{C}/args": ["-c", ""], f"{C}/workingDir": "/"},
    "port": port(),
    "port with all fields": port(name="http", hostPort=8080, hostIP="127.0.0.1", protocol="UDP"),
    "port sctp": port(protocol="SCTP"),
    "port 65535": port(containerPort=65535),
    "same port, two protocols": {
        f"{C}/ports": [{"containerPort": 53, "protocol": "TCP"}, {"containerPort": 53, "protocol": "UDP"}]
    },
    "same container port twice": {f"{C}/ports": [{"containerPort": 80}, {"containerPort": 80}]},
    "host port at two addresses": {
        f"{C}/ports": [
            {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.1"},
            {"containerPort": 80, "hostPort": 80, "hostIP": "10.0.0.2"},
        ]
    },
    "host network with port": {"spec/hostNetwork": True, **port()},
    "host network with equal ports": {"spec/hostNetwork": True, **port(hostPort=80)},
    "variable": variable(value="1"),
    "variable without value": variable(),
    "variable with dots": {f"{C}/env": [{"name": "my.var-1", "value": "x"}]},
    "variable with spaces": {f"{C}/env": [{"name": "my var", "value": "x"}]},
    "variable that begins with a digit": {f"{C}/env": [{"name": "1VAR", "value": "x"}]},
    "variable twice": {f"{C}/env": [{"name": "V"}, {"name": "V"}]},
    **{
        f"variable from {path}": field_of(path)
        for path in (
            "metadata.name",
            "metadata.namespace",
            "metadata.uid",
            "spec.nodeName",
            "spec.serviceAccountName",
            "status.hostIP",
            "status.podIP",
            "status.podIPs",
            "metadata.labels['app']",
            "metadata.annotations['example.com/Note']",
        )
    },
    "variable from a request": amount_of("requests.cpu", divisor="1m"),
    "variable from a limit": amount_of("limits.memory", divisor="1Mi"),
    "variable from huge pages": amount_of("limits.hugepages-2Mi"),
    "variable from a config map": variable(valueFrom={"configMapKeyRef": {"name": "c", "key": "k.1"}}),
    "variable from a secret": variable(valueFrom={"secretKeyRef": {"name": "s", "key": "K", "optional": True}}),
    "variables from a config map": {f"{C}/envFrom": [{"configMapRef": {"name": "c"}, "prefix": "P_"}]},
    "variables from a secret": {f"{C}/envFrom": [{"secretRef": {"name": "s.1"}}]},
    "mount": mounted(),
    "mount of a sub-path": mounted(subPath="a/b"),
    "mount of a computed sub-path": mounted(subPathExpr="$(V)"),
    "mount read only": mounted(readOnly=True, recursiveReadOnly="IfPossible"),
    "mount from the host": mounted(mountPropagation="HostToContainer"),
    "mount both ways": {**mounted(mountPropagation="Bidirectional"), f"{C}/securityContext": {"privileged": True}},
    "mount of one volume twice": {
        "spec/volumes": [EMPTY],
        f"{C}/volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/b"}],
    },
    "mount with a colon": mounted(mountPath="/a:b"),
    "relative mount path": mounted(mountPath="a"),
    "block device": device(),
    "volume without a source": {"spec/volumes": [{"name": "v"}]},
    "empty dir in memory": volume("emptyDir", medium="Memory", sizeLimit="1Gi"),
    "host path": volume("hostPath", path="/tmp", type="DirectoryOrCreate"),
    "config map": volume("configMap", name="c", defaultMode=0o644, items=[{"key": "k", "path": "a/b", "mode": 0o400}]),
    "secret": volume("secret", secretName="s"),
    "claim": volume("persistentVolumeClaim", claimName="c"),
    "nfs": volume("nfs", server="s", path="/p"),
    "csi": volume("csi", driver="d.example.com"),
    "ephemeral claim": ephemeral(),
    "ephemeral claim with a class": ephemeral(storageClassName="fast", volumeMode="Filesystem"),
    "image volume": volume("image", reference="busybox:1"),
    "downward volume": volume(
        "downwardAPI",
        items=[
            {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}},
            {"path": "cpu", "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"}},
        ],
    ),
    "projected volume": projected(
        {"configMap": {"name": "c"}},
        {"secret": {"name": "s", "items": [{"key": "k", "path": "p"}]}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3600}},
    ),
    "probes": {f"{C}/livenessProbe": PROBE, f"{C}/readinessProbe": PROBE, f"{C}/startupProbe": PROBE},
    "probe by command": {f"{C}/livenessProbe": {"exec": {"command": ["true"]}}},
    "probe of a socket by name": {f"{C}/readinessProbe": {"tcpSocket": {"port": "http"}}},
    "probe by grpc": {f"{C}/livenessProbe": {"grpc": {"port": 9000}}},
    "probe with header": {
        f"{C}/livenessProbe": {
            "httpGet": {"port": 80, "scheme": "HTTPS", "httpHeaders": [{"name": "X-A", "value": "1"}]}
        }
    },
    "probe with grace period": {f"{C}/livenessProbe": {**PROBE, "terminationGracePeriodSeconds": 5}},
    "readiness after three": {f"{C}/readinessProbe": {**PROBE, "successThreshold": 3}},
    "hooks": {f"{C}/lifecycle": {"postStart": {"exec": {"command": ["true"]}}, "preStop": {"sleep": {"seconds": 5}}}},
    "requests equal limits": requests(requests={"cpu": "1"}, limits={"cpu": "1"}),
    "requests below limits": requests(requests={"cpu": "500m", "memory": "1Gi"}, limits={"cpu": "1", "memory": "2Gi"}),
    "limits alone": requests(limits={"cpu": "1"}),
    "requests of nothing": requests(requests={"cpu": "0"}),
    "extended resource": requests(limits={"nvidia.com/gpu": 1}),
    "extended resource requested, too": requests(requests={"a.b/c": "2"}, limits={"a.b/c": "2"}),
    "huge pages": requests(limits={"hugepages-2Mi": "4Mi", "memory": "1Gi"}),
    "storage of the node": requests(requests={"ephemeral-storage": "1Gi"}),
    "fractions": requests(requests={"cpu": "0.1", "memory": "1.5Gi"}),
    "pod resources": of_pod(requests={"cpu": "2", "memory": "2Gi"}, limits={"cpu": "4"}),
    "pod resources with an init container": {
        **of_pod(requests={"cpu": "2"}),
        "spec/initContainers": [{**INIT, "resources": {"requests": {"cpu": "2"}}}],
    },
    "resize policy": {f"{C}/resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}]},
    "resource claim": {
        "spec/resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "t"}],
        f"{C}/resources": {"claims": [{"name": "gpu"}]},
    },
    "node selector": {"spec/nodeSelector": {"disk": "ssd", "example.com/zone": ""}},
    "node affinity": node_terms(expression("zone", "In", "a", "b"), expression("gpu", "Exists")),
    "node affinity by number": node_terms(expression("cores", "Gt", "4")),
    "node affinity by name": node_terms(fields=[expression("metadata.name", "In", "n1")]),
    "node affinity with an empty term": node_terms(),
    "node preference": {
        "spec/affinity/nodeAffinity": {
            _PREF: [{"weight": 100, "preference": {"matchExpressions": [expression("a", "NotIn", "b")]}}]
        }
    },
    "pod affinity": near(),
    "pod affinity in namespaces": near(namespaces=["a", "b"], namespaceSelector={"matchLabels": {"team": "x"}}),
    "pod affinity by keys of labels": near(matchLabelKeys=["version"]),
    "pod anti-affinity, preferred": {
        "spec/affinity/podAntiAffinity": {
            _PREF: [
                {
                    "weight": 1,
                    "podAffinityTerm": {
                        "topologyKey": "zone",
                        "labelSelector": {"matchExpressions": [expression("app", "DoesNotExist")]},
                    },
                }
            ]
        }
    },
    "toleration": toleration(key="a", operator="Equal", value="b", effect="NoSchedule"),
    "toleration of everything": toleration(operator="Exists"),
    "toleration for a while": toleration(key="a", operator="Exists", effect="NoExecute", tolerationSeconds=60),
    "toleration without operator": toleration(key="a", value="b"),
    "spread": spread(labelSelector={"matchLabels": {"app": "a"}}),
    "spread with domains": spread(minDomains=2, nodeAffinityPolicy="Ignore", nodeTaintsPolicy="Honor"),
    "spread in two ways": {
        "spec/topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"},
        ]
    },
    "scheduling gate": {"spec/schedulingGates": [{"name": "example.com/gate"}]},
    "readiness gate": {"spec/readinessGates": [{"conditionType": "example.com/ready"}]},
    "host alias": {"spec/hostAliases": [{"ip": "10.0.0.1", "hostnames": ["a.b"]}]},
    "own dns": {"spec/dnsPolicy": "None", "spec/dnsConfig": {"nameservers": ["1.1.1.1"], "searches": ["a.b", "x_y.z"]}},
    "dns option": {"spec/dnsConfig": {"options": [{"name": "ndots", "value": "2"}]}},
    "deadline": {"spec/activeDeadlineSeconds": 1},
    "no grace period": {"spec/terminationGracePeriodSeconds": 0},
    "hostname and subdomain": {"spec/hostname": "h", "spec/subdomain": "s"},
    "names of other objects": {"spec/schedulerName": "volcano"},
    "os": {"spec/os": {"name": "linux"}},
    "stop signal without os": {f"{C}/lifecycle": {"stopSignal": "SIGTERM"}},
    "stop signal": {"spec/os": {"name": "linux"}, f"{C}/lifecycle": {"stopSignal": "SIGTERM"}},
    "user and groups": {
        "spec/securityContext": {"runAsUser": 1000, "runAsGroup": 0, "fsGroup": 1, "supplementalGroups": [5]}
    },
    "change of groups": {"spec/securityContext": {"fsGroup": 1, "fsGroupChangePolicy": "OnRootMismatch"}},
    "sysctl": {"spec/securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]}},
    "seccomp": {"spec/securityContext": {"seccompProfile": {"type": "RuntimeDefault"}}},
    "seccomp file": {
        "spec/securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "profiles/a.json"}}
    },
    "apparmor": {f"{C}/securityContext": {"appArmorProfile": {"type": "Unconfined"}}},
    "privileged": {f"{C}/securityContext": {"privileged": True}},
    "capabilities": {
        f"{C}/securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"add": ["NET_ADMIN"], "drop": ["ALL"]},
        }
    },
    "host namespaces": {"spec/hostPID": True, "spec/hostIPC": True},
    "shared process namespace": {"spec/shareProcessNamespace": True},
    "own users": {"spec/hostUsers": False},
}
"""Templates of which pods can be made."""

BAD: Final[Mapping[str, Changes]] = {
    "no containers": {"spec/containers": []},
    "no spec": {"spec": {}},
    "container without name": {f"{C}/name": GONE},
    "container without image": {f"{C}/image": GONE},
    "image with a space": {f"{C}/image": " busybox"},
    "container name in capitals": {f"{C}/name": "Main"},
    "container name with a dot": {f"{C}/name": "a.b"},
    "container name with an underscore": {f"{C}/name": "a_b"},
    "container name of 64 letters": {f"{C}/name": LONG + "a"},
    "container name that ends in a dash": {f"{C}/name": "a-"},
    "two containers of one name": {"spec/containers/1": {"name": "main", "image": "busybox:1"}},
    "init container of the same name": {"spec/initContainers": [{"name": "main", "image": "busybox:1"}]},
    "init container without image": {"spec/initContainers": [{"name": "init"}]},
    "init container with probe": {"spec/initContainers": [{**INIT, "readinessProbe": PROBE}]},
    "init container with hook": {
        "spec/initContainers": [{**INIT, "lifecycle": {"preStop": {"exec": {"command": ["true"]}}}}]
    },
    "unknown restart policy": {"spec/restartPolicy": "Sometimes"},
    "unknown restart policy of a container": {f"{C}/restartPolicy": "Sometimes"},
    "restart rules without policy": {
        f"{C}/restartPolicyRules": [{"action": "Restart", "exitCodes": {"operator": "In", "values": [1]}}]
    },
    "restart rule without codes": {f"{C}/restartPolicy": "Never", f"{C}/restartPolicyRules": [{"action": "Restart"}]},
    "unknown action of a restart rule": {
        f"{C}/restartPolicy": "Never",
        f"{C}/restartPolicyRules": [{"action": "Stop", "exitCodes": {"operator": "In", "values": [1]}}],
    },
    "unknown pull policy": {f"{C}/imagePullPolicy": "Maybe"},
    "unknown message policy": {f"{C}/terminationMessagePolicy": "Mail"},
    "label key with a space": {"metadata/labels": {"a b": "c"}},
    "label key with two slashes": {"metadata/labels": {"a/b/c": "d"}},
    "label key with an empty prefix": {"metadata/labels": {"/b": "d"}},
    "label key with a prefix in capitals": {"metadata/labels": {"Example.com/b": "d"}},
    "label value with a space": {"metadata/labels": {"a": "b c"}},
    "label value of 64 letters": {"metadata/labels": {"a": LONG + "a"}},
    "label value that begins with a dash": {"metadata/labels": {"a": "-b"}},
    "annotation key with a space": {"metadata/annotations": {"a b": "c"}},
    "annotations too long": {"metadata/annotations": {"a": "b" * 262_145}},
    "port 0": port(containerPort=0),
    "port below 0": port(containerPort=-1),
    "port 65536": port(containerPort=65536),
    "port without number": {f"{C}/ports": [{"name": "http"}]},
    "host port 70000": port(hostPort=70000),
    "port name in capitals": port(name="HTTP"),
    "port name of 16 letters": port(name="a" * 16),
    "port name of digits": port(name="80"),
    "port name with two dashes": port(name="a--b"),
    "port name twice": {f"{C}/ports": [{"name": "a", "containerPort": 1}, {"name": "a", "containerPort": 2}]},
    "unknown protocol": port(protocol="HTTP"),
    "host port twice": {f"{C}/ports": [{"containerPort": 80, "hostPort": 80}, {"containerPort": 81, "hostPort": 80}]},
    "host port twice in two containers": {
        f"{C}/ports": [{"containerPort": 80, "hostPort": 80}],
        "spec/containers/1": {"name": "b", "image": "b", "ports": [{"containerPort": 80, "hostPort": 80}]},
    },
    "host network with another host port": {"spec/hostNetwork": True, **port(hostPort=81)},
    "variable without name": {f"{C}/env": [{"value": "x"}]},
    "variable with an equals sign": {f"{C}/env": [{"name": "a=b", "value": "x"}]},
    "variable with a letter beyond ASCII": {f"{C}/env": [{"name": "é", "value": "x"}]},
    "variable with two values": variable(value="x", valueFrom={"fieldRef": {"fieldPath": "metadata.name"}}),
    "variable from nothing": variable(valueFrom={}),
    "variable from two": variable(
        valueFrom={"fieldRef": {"fieldPath": "metadata.name"}, "secretKeyRef": {"name": "s", "key": "k"}}
    ),
    "variable from an unknown field": field_of("status.phase"),
    "variable from no field": field_of("spec.unknown"),
    "variable from all labels": field_of("metadata.labels"),
    "variable from no path": field_of(""),
    "variable from a label with a bad key": field_of("metadata.labels['a b']"),
    "variable from a subscript of a name": field_of("metadata.name['a']"),
    "variable from another version": field_of("metadata.name", apiVersion="v2"),
    "variable from an unknown resource": amount_of("limits.gpu"),
    "variable from a resource with a bad divisor": amount_of("limits.cpu", divisor="1Mi"),
    "variable from memory in thousandths": amount_of("limits.memory", divisor="1m"),
    "variable from no key": variable(valueFrom={"configMapKeyRef": {"name": "c", "key": ""}}),
    "variable from a bad key": variable(valueFrom={"configMapKeyRef": {"name": "c", "key": "a b"}}),
    "variable from the key of two dots": variable(valueFrom={"secretKeyRef": {"name": "c", "key": ".."}}),
    "variable from a secret without name": variable(valueFrom={"secretKeyRef": {"key": "k"}}),
    "variables from nothing": {f"{C}/envFrom": [{}]},
    "variables from two": {f"{C}/envFrom": [{"configMapRef": {"name": "c"}, "secretRef": {"name": "s"}}]},
    "variables from no name": {f"{C}/envFrom": [{"configMapRef": {}}]},
    "variables from a bad name": {f"{C}/envFrom": [{"configMapRef": {"name": "A_B"}}]},
    "variables with a bad prefix": {f"{C}/envFrom": [{"configMapRef": {"name": "c"}, "prefix": "a=b"}]},
    "mount of an unknown volume": {f"{C}/volumeMounts": [{"name": "w", "mountPath": "/v"}]},
    "mount without path": {"spec/volumes": [EMPTY], f"{C}/volumeMounts": [{"name": "v"}]},
    "two mounts at one path": {
        "spec/volumes": [EMPTY],
        f"{C}/volumeMounts": [{"name": "v", "mountPath": "/a"}, {"name": "v", "mountPath": "/a"}],
    },
    "mount of an absolute sub-path": mounted(subPath="/a"),
    "mount of a sub-path upwards": mounted(subPath="a/../b"),
    "mount of two sub-paths": mounted(subPath="a", subPathExpr="b"),
    "mount both ways without privilege": mounted(mountPropagation="Bidirectional"),
    "unknown propagation": mounted(mountPropagation="Sideways"),
    "recursive read-only mount that can be written": mounted(recursiveReadOnly="Enabled"),
    "unknown recursion": mounted(readOnly=True, recursiveReadOnly="Maybe"),
    "device of an empty folder": {"spec/volumes": [EMPTY], f"{C}/volumeDevices": [{"name": "v", "devicePath": "/d"}]},
    "device without path": device(devicePath=""),
    "device upwards": device(devicePath="/a/../b"),
    "device of an unknown volume": device(name="w"),
    "device and mount of one volume": {**device(), f"{C}/volumeMounts": [{"name": "v", "mountPath": "/v"}]},
    "volume without name": {"spec/volumes": [{"emptyDir": {}}]},
    "volume name in capitals": {"spec/volumes": [{"name": "V", "emptyDir": {}}]},
    "two volumes of one name": {"spec/volumes": [EMPTY, EMPTY]},
    "volume of two sources": {"spec/volumes": [{"name": "v", "emptyDir": {}, "secret": {"secretName": "s"}}]},
    "empty dir below zero": volume("emptyDir", sizeLimit="-1"),
    "host path without path": volume("hostPath", path=""),
    "host path upwards": volume("hostPath", path="/a/../b"),
    "host path of an unknown type": volume("hostPath", path="/a", type="Folder"),
    "config map without name": volume("configMap"),
    "config map with a bad mode": volume("configMap", name="c", defaultMode=0o1000),
    "config map item without key": volume("configMap", name="c", items=[{"path": "p"}]),
    "config map item without path": volume("configMap", name="c", items=[{"key": "k"}]),
    "config map item at an absolute path": volume("configMap", name="c", items=[{"key": "k", "path": "/p"}]),
    "config map item upwards": volume("configMap", name="c", items=[{"key": "k", "path": "../p"}]),
    "config map item with a reserved path": volume("configMap", name="c", items=[{"key": "k", "path": "..p"}]),
    "secret without name": volume("secret"),
    "claim without name": volume("persistentVolumeClaim"),
    "nfs without server": volume("nfs", path="/p"),
    "nfs with a relative path": volume("nfs", server="s", path="p"),
    "csi without driver": volume("csi"),
    "csi with a bad driver": volume("csi", driver="a b"),
    "ephemeral without template": volume("ephemeral"),
    "ephemeral without access modes": ephemeral(accessModes=GONE),
    "ephemeral without size": ephemeral(resources=GONE),
    "ephemeral with an unknown access mode": ephemeral(accessModes=["Write"]),
    "ephemeral with access modes that exclude": ephemeral(accessModes=["ReadWriteOncePod", "ReadWriteOnce"]),
    "ephemeral of no size": ephemeral(resources={"requests": {"storage": "0"}}),
    "ephemeral with a bad class": ephemeral(storageClassName="A_B"),
    "ephemeral with an unknown mode": ephemeral(volumeMode="Tape"),
    "iscsi without portal": volume("iscsi", iqn="iqn.2000-01.com.example:a", lun=0),
    "downward file of nothing": volume("downwardAPI", items=[{"path": "p"}]),
    "downward file of two": volume(
        "downwardAPI",
        items=[
            {
                "path": "p",
                "fieldRef": {"fieldPath": "metadata.name"},
                "resourceFieldRef": {"containerName": "main", "resource": "limits.cpu"},
            }
        ],
    ),
    "downward file of an address": volume(
        "downwardAPI", items=[{"path": "p", "fieldRef": {"fieldPath": "status.podIP"}}]
    ),
    "downward file without container": volume(
        "downwardAPI", items=[{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]
    ),
    "projected conflict": projected(
        {"secret": {"name": "a", "items": [{"key": "k", "path": "p"}]}},
        {"configMap": {"name": "b", "items": [{"key": "k", "path": "p"}]}},
    ),
    "projected two in one": projected({"secret": {"name": "a"}, "configMap": {"name": "b"}}),
    "projected token for a moment": projected({"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}),
    "projected token without path": projected({"serviceAccountToken": {"path": ""}}),
    "probe of nothing": {f"{C}/livenessProbe": {}},
    "probe of two": {f"{C}/livenessProbe": {**PROBE, "tcpSocket": {"port": 1}}},
    "probe of port 0": {f"{C}/livenessProbe": {"httpGet": {"path": "/", "port": 0}}},
    "probe of a bad port name": {f"{C}/livenessProbe": {"tcpSocket": {"port": "A B"}}},
    "probe without command": {f"{C}/livenessProbe": {"exec": {}}},
    "probe of an unknown scheme": {f"{C}/livenessProbe": {"httpGet": {"port": 80, "scheme": "FTP"}}},
    "probe with a bad header": {
        f"{C}/livenessProbe": {"httpGet": {"port": 80, "httpHeaders": [{"name": "a b", "value": ""}]}}
    },
    "probe with negative delay": {f"{C}/livenessProbe": {**PROBE, "initialDelaySeconds": -1}},
    "probe with negative period": {f"{C}/readinessProbe": {**PROBE, "periodSeconds": -1}},
    "liveness after two": {f"{C}/livenessProbe": {**PROBE, "successThreshold": 2}},
    "startup after two": {f"{C}/startupProbe": {**PROBE, "successThreshold": 2}},
    "readiness with grace period": {f"{C}/readinessProbe": {**PROBE, "terminationGracePeriodSeconds": 5}},
    "probe with no grace period": {f"{C}/livenessProbe": {**PROBE, "terminationGracePeriodSeconds": 0}},
    "hook of nothing": {f"{C}/lifecycle": {"preStop": {}}},
    "hook that sleeps too long": {f"{C}/lifecycle": {"preStop": {"sleep": {"seconds": 31}}}},
    "requests above limits": requests(requests={"cpu": "2"}, limits={"cpu": "1"}),
    "memory above its limit": requests(requests={"memory": "2Gi"}, limits={"memory": "1Gi"}),
    "negative request": requests(requests={"cpu": "-1"}),
    "negative limit": requests(limits={"memory": "-1Gi"}),
    "unknown resource": requests(requests={"gpu": "1"}),
    "pods as a resource": requests(requests={"pods": "1"}),
    "resource with a bad name": requests(limits={"a b/c": "1"}),
    "half a device": requests(limits={"nvidia.com/gpu": "500m"}),
    "device without limit": requests(requests={"nvidia.com/gpu": "1"}),
    "device above its request": requests(requests={"nvidia.com/gpu": "1"}, limits={"nvidia.com/gpu": "2"}),
    "huge pages alone": requests(limits={"hugepages-2Mi": "2Mi"}),
    "huge pages that do not divide": requests(limits={"hugepages-2Mi": "3Mi", "memory": "1Gi"}),
    "huge pages without limit": requests(requests={"hugepages-2Mi": "2Mi", "memory": "1Gi"}),
    "quota name as a resource": requests(requests={"requests.cpu": "1"}),
    "pod resources below its containers": of_pod(requests={"cpu": "500m"}),
    "pod resources above their limit": of_pod(requests={"cpu": "4"}, limits={"cpu": "2"}),
    "pod resources of devices": of_pod(limits={"nvidia.com/gpu": "1"}),
    "pod limit below that of a container": {**of_pod(limits={"cpu": "1"}), RES: {"limits": {"cpu": "2"}}},
    "resize of a device": {f"{C}/resizePolicy": [{"resourceName": "gpu", "restartPolicy": "NotRequired"}]},
    "resize twice": {f"{C}/resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}] * 2},
    "resize by a restart that never comes": {
        f"{C}/resizePolicy": [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]
    },
    "claim that the pod does not have": {f"{C}/resources": {"claims": [{"name": "gpu"}]}},
    "claim of nothing": {"spec/resourceClaims": [{"name": "gpu"}]},
    "claim of two": {
        "spec/resourceClaims": [{"name": "gpu", "resourceClaimName": "a", "resourceClaimTemplateName": "b"}]
    },
    "two claims of one name": {"spec/resourceClaims": [{"name": "gpu", "resourceClaimName": "a"}] * 2},
    "node selector with a bad key": {"spec/nodeSelector": {"a b": "c"}},
    "node selector with a bad value": {"spec/nodeSelector": {"a": "b c"}},
    "node affinity without terms": {"spec/affinity/nodeAffinity": {_REQ: {"nodeSelectorTerms": []}}},
    "node affinity in nothing": node_terms(expression("a", "In")),
    "node affinity that exists with values": node_terms(expression("a", "Exists", "b")),
    "node affinity above two numbers": node_terms(expression("a", "Gt", "1", "2")),
    "node affinity with an unknown operator": node_terms(expression("a", "Like", "b")),
    "node affinity with a bad key": node_terms(expression("a b", "Exists")),
    "node affinity with a bad value": node_terms(expression("a", "In", "b c")),
    "node affinity by an unknown field": node_terms(fields=[expression("metadata.uid", "In", "a")]),
    "node affinity by two names": node_terms(fields=[expression("metadata.name", "In", "a", "b")]),
    "node preference of weight 0": {"spec/affinity/nodeAffinity": {_PREF: [{"weight": 0, "preference": {}}]}},
    "node preference of weight 101": {"spec/affinity/nodeAffinity": {_PREF: [{"weight": 101, "preference": {}}]}},
    "pod affinity without topology": near(topologyKey=""),
    "pod affinity with a bad topology": near(topologyKey="a b"),
    "pod affinity with a bad label": near(labelSelector={"matchLabels": {"a": "b c"}}),
    "pod affinity in nothing": near(labelSelector={"matchExpressions": [expression("a", "In")]}),
    "pod affinity with an operator of nodes": near(labelSelector={"matchExpressions": [expression("a", "Gt", "1")]}),
    "pod affinity in a bad namespace": near(namespaces=["A"]),
    "pod affinity by keys without selector": near(labelSelector=None, matchLabelKeys=["a"]),
    "pod affinity by a key of the selector": near(matchLabelKeys=["app"]),
    "pod affinity by keys that exclude": near(matchLabelKeys=["a"], mismatchLabelKeys=["a"]),
    "toleration of any key by value": toleration(operator="Equal", value="a"),
    "toleration with an unknown operator": toleration(key="a", operator="Like", value="b"),
    "toleration that exists with value": toleration(key="a", operator="Exists", value="b"),
    "toleration with an unknown effect": toleration(key="a", operator="Exists", effect="Sometimes"),
    "toleration with a bad key": toleration(key="a b", operator="Exists"),
    "toleration with a bad value": toleration(key="a", operator="Equal", value="b c"),
    "toleration for a while without effect": toleration(key="a", operator="Exists", tolerationSeconds=1),
    "toleration by number": toleration(key="a", operator="Gt", value="1"),
    "spread by 0": spread(maxSkew=0),
    "spread over nothing": spread(topologyKey=""),
    "spread with an unknown action": spread(whenUnsatisfiable="Wait"),
    "spread over no domains": spread(minDomains=0),
    "spread with domains, perhaps": spread(minDomains=1, whenUnsatisfiable="ScheduleAnyway"),
    "spread twice": {
        "spec/topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
            {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule"},
        ]
    },
    "spread with an unknown policy": spread(nodeTaintsPolicy="Maybe"),
    "spread with a bad selector": spread(labelSelector={"matchLabels": {"a b": ""}}),
    "spread by keys without selector": spread(matchLabelKeys=["a"]),
    "gate without name": {"spec/schedulingGates": [{"name": ""}]},
    "gate twice": {"spec/schedulingGates": [{"name": "a"}, {"name": "a"}]},
    "readiness gate with a bad name": {"spec/readinessGates": [{"conditionType": "a b"}]},
    "host alias without address": {"spec/hostAliases": [{"ip": "a", "hostnames": ["b"]}]},
    "host alias with a bad name": {"spec/hostAliases": [{"ip": "10.0.0.1", "hostnames": ["A_B"]}]},
    "unknown dns policy": {"spec/dnsPolicy": "Mine"},
    "no dns at all": {"spec/dnsPolicy": "None"},
    "dns without server": {"spec/dnsPolicy": "None", "spec/dnsConfig": {"searches": ["a"]}},
    "four dns servers": {"spec/dnsConfig": {"nameservers": ["1.1.1.1", "1.1.1.2", "1.1.1.3", "1.1.1.4"]}},
    "dns server by name": {"spec/dnsConfig": {"nameservers": ["a.b"]}},
    "dns search with a space": {"spec/dnsConfig": {"searches": ["a b"]}},
    "33 dns searches": {"spec/dnsConfig": {"searches": [f"s{number}" for number in range(33)]}},
    "dns option without name": {"spec/dnsConfig": {"options": [{"value": "1"}]}},
    "deadline 0": {"spec/activeDeadlineSeconds": 0},
    "deadline too far": {"spec/activeDeadlineSeconds": 2**31},
    "hostname in capitals": {"spec/hostname": "H"},
    "subdomain with a dot": {"spec/subdomain": "a.b"},
    "hostname that is overridden on the host's network": {"spec/hostNetwork": True, "spec/hostnameOverride": "a"},
    "bad name of a service account": {"spec/serviceAccountName": "A_B"},
    "bad name of a node": {"spec/nodeName": "A_B"},
    "bad name of a runtime class": {"spec/runtimeClassName": "A_B"},
    "unknown preemption": {"spec/preemptionPolicy": "Perhaps"},
    "unknown os": {"spec/os": {"name": "plan9"}},
    "os without name": {"spec/os": {}},
    "negative user": {"spec/securityContext": {"runAsUser": -1}},
    "group beyond 31 bits": {"spec/securityContext": {"fsGroup": 2**31}},
    "negative supplemental group": {"spec/securityContext": {"supplementalGroups": [-1]}},
    "negative user of a container": {f"{C}/securityContext": {"runAsUser": -1}},
    "unknown change of groups": {"spec/securityContext": {"fsGroup": 1, "fsGroupChangePolicy": "Never"}},
    "sysctl without name": {"spec/securityContext": {"sysctls": [{"name": "", "value": "1"}]}},
    "sysctl with a bad name": {"spec/securityContext": {"sysctls": [{"name": "A b", "value": "1"}]}},
    "sysctl twice": {"spec/securityContext": {"sysctls": [{"name": "net.a", "value": "1"}] * 2}},
    "sysctl of the network on the host's": {
        "spec/hostNetwork": True,
        "spec/securityContext": {"sysctls": [{"name": "net.core.somaxconn", "value": "1"}]},
    },
    "unknown seccomp": {"spec/securityContext": {"seccompProfile": {"type": "Mine"}}},
    "seccomp without file": {"spec/securityContext": {"seccompProfile": {"type": "Localhost"}}},
    "seccomp with a file that does not count": {
        "spec/securityContext": {"seccompProfile": {"type": "Unconfined", "localhostProfile": "a"}}
    },
    "seccomp file upwards": {
        "spec/securityContext": {"seccompProfile": {"type": "Localhost", "localhostProfile": "../a"}}
    },
    "apparmor without file": {f"{C}/securityContext": {"appArmorProfile": {"type": "Localhost"}}},
    "privileged without escalation": {f"{C}/securityContext": {"privileged": True, "allowPrivilegeEscalation": False}},
    "capability without escalation": {
        f"{C}/securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"add": ["CAP_SYS_ADMIN"]}}
    },
    "unknown proc mount": {f"{C}/securityContext": {"procMount": "Half"}},
    "unmasked proc with the host's users": {f"{C}/securityContext": {"procMount": "Unmasked"}},
    "shared processes with the host's": {"spec/hostPID": True, "spec/shareProcessNamespace": True},
    "own users in the host's processes": {"spec/hostUsers": False, "spec/hostPID": True},
    "overhead below zero": {"spec/overhead": {"cpu": "-1"}},
    "gate on a chosen node": {"spec/schedulingGates": [{"name": "a"}], "spec/nodeName": "n"},
}
"""Templates of which no pod could ever be made."""
