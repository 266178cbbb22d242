"""Generic Kubernetes machinery: credentials, typed requests, watches that go on; nothing of scheduling."""
