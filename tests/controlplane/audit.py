"""The audit log of an API server: what the processes of manifests/ ask for, and how it is answered.

`$VOLCANO_PY_AUDIT` names the folder of the logs; without it, API servers write none. Requests of all ServiceAccounts in
`volcano-system` are logged, and no others. A Binding is logged with its body.
"""

from __future__ import annotations

import os
from pathlib import Path

import yaml

FOLDER = "VOLCANO_PY_AUDIT"
LOGS = "requests-*.log"
POLICY = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Request",
            "userGroups": ["system:serviceaccounts:volcano-system"],
            "resources": [{"group": "", "resources": ["pods/binding"]}],
        },
        {"level": "Metadata", "userGroups": ["system:serviceaccounts:volcano-system"]},
        {"level": "None"},
    ],
}


def audit_log(port: int) -> Path | None:
    """Return the log of an API server that this process starts on a port; None if it writes none."""
    folder = os.environ.get(FOLDER)
    return Path(folder, f"requests-{os.getpid()}-{port}.log") if folder else None


def audit_options(log: Path, policy: Path) -> list[str]:
    """Write the policy, and return the options of kube-apiserver with which it writes the log."""
    policy.write_text(yaml.safe_dump(POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={log}", "--audit-log-maxsize=10000"]
