"""Generic Kubernetes machinery: credentials, typed requests, watches that recover. It knows nothing of scheduling."""
