"""Counts the nodes of HyperNodes, and keeps HyperNodes that are found from labels of nodes."""
