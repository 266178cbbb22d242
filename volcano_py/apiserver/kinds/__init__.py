"""The Kubernetes kinds that this server serves; `table.built_ins` is the explicit list."""
