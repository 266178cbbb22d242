"""Times as the API server writes them."""

from datetime import datetime


def wire_time(moment: datetime) -> str:
    """Return a time as Kubernetes writes it, in whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
