"""A stand-in for kubelets: nodes and pods that behave, driven by YAML stages."""
