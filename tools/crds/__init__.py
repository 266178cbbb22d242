"""Generates the definitions in `manifests/crds/`: `python -m tools.crds`.

Three sources, each for what it knows:

- `volcano_py/api/` has the fields that the programs read, with their types;
- `kinds/*.yaml` has the words, limits, defaults and columns, and the fields that no program reads;
- `kubernetes.json` has the types of Kubernetes that are part of ours, such as the pod template. It is an extract of
  what a kube-apiserver publishes; `tools.crds.extract` makes it.
"""
