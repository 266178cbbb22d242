"""Bodies in Kubernetes' protobuf form, as typed Go clients send them (`kubectl create`): read, never written.

A client that sends protobuf accepts JSON in return, so only requests need decoding. The table of fields is data, made
from the types of k8s.io/api; it is loaded with the first such request.
"""
