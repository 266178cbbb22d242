"""The Helm chart: what it renders, compared with kustomize, and what its values change."""
