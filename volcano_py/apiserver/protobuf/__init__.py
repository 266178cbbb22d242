"""Decoding of request bodies in Kubernetes' protobuf form, which typed Go clients send (`kubectl create`).

A client that sends protobuf accepts JSON in return, so nothing is encoded. The table of fields is data, made
from the types of k8s.io/api; it is loaded with the first such request.
"""
