"""CustomResourceDefinitions: schemas, and the resources they add."""
