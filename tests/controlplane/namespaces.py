"""Namespaces of tests: created with what pods need, then emptied and deleted without waiting until they are gone."""

from __future__ import annotations

import secrets

from tests.controlplane.cluster import Cluster
from tests.controlplane.rest import ApiFailure
from tests.controlplane.waiting import wait_until

NAMESPACES = "/api/v1/namespaces"


def create_namespace(cluster: Cluster, prefix: str = "t", *, wait_for_account: bool = True) -> str:
    """Create a namespace with a new name and return it.

    Pods are refused until a controller has made the ServiceAccount `default`; without controllers, do not wait for it.
    """
    name = f"{prefix}-{secrets.token_hex(4)}"
    cluster.request("POST", NAMESPACES, {"metadata": {"name": name}})
    if wait_for_account:
        wait_until(
            f"ServiceAccount {name}/default",
            lambda: cluster.request("GET", f"{NAMESPACES}/{name}/serviceaccounts/default"),
            30.0,
            every=0.02,
            tolerate=(ApiFailure,),
        )
    return name


def discard_namespace(cluster: Cluster, name: str) -> None:
    """Remove a namespace's pods at once and request its deletion, which takes a while."""
    try:
        cluster.request("DELETE", f"{NAMESPACES}/{name}/pods", {"gracePeriodSeconds": 0})
        cluster.request("DELETE", f"{NAMESPACES}/{name}", {"propagationPolicy": "Background"})
    except ApiFailure as refused:
        if refused.code not in {404, 409}:  # already gone or terminating
            raise
