"""What every process of the system shares: start, lease, probes, drain, end."""
