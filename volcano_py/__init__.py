"""volcano_py: a batch system for Kubernetes that takes Volcano's place; its policies are operations on arrays."""

__version__ = "0.1.0"
