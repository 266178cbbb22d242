"""Creates PodGroups for pods that name none: bare pods, and pods of ReplicaSets, StatefulSets, Jobs and others."""
