"""PodGroups for pods that name none: bare pods and those of ReplicaSets, StatefulSets, DaemonSets, Jobs and others."""
