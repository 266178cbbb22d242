from tests.effects.conftest import client, registry, rng, server, supervisor, write_queue_metrics

__all__ = ["client", "registry", "rng", "server", "supervisor", "write_queue_metrics"]
