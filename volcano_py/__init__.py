"""volcano_py: a batch scheduler for Kubernetes in Volcano's place, its policy written as arithmetic over columns."""

__version__ = "0.1.0"
