"""Runs jobs: creates their PodGroup, pods and the objects of their plugins, and acts on what happens to them."""
