"""Grafana dashboards: written from descriptions, and drawn from the data of a Prometheus without a Grafana."""
