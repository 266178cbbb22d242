"""End-to-end tests: they run against a real kube-apiserver, etcd and kube-controller-manager."""
