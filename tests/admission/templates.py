"""Pod templates of which pods can be made, each as the changes that make it from a plain one.

The same templates go to a real API server as pods (`tests/e2e/test_pod_templates.py`).
"""

from collections.abc import Mapping
from typing import Final

from tests.admission.changes import GONE, Changes
from tests.admission.template_parts import (
    _PREF,
    EMPTY,
    INIT,
    LONG,
    PROBE,
    RES,
    C,
    amount_of,
    device,
    ephemeral,
    expression,
    field_of,
    mounted,
    near,
    node_terms,
    of_pod,
    port,
    projected,
    requests,
    spread,
    template_of,
    toleration,
    variable,
    volume,
)

__all__ = ["GOOD", "template_of"]

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
