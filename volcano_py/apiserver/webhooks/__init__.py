"""Admission webhooks: which of them see a write, how they are called, and what their answers do to the write.

The order is that of a real server: mutate, validate by the kind's own rules, call the validating webhooks, store.
Webhooks see writes over HTTP of objects and their status, and deletions. They do not see bindings, evictions, scales,
or writes by the server's own controllers and an in-process kubelet. Mutating webhooks are called once, in order of
name. `clientConfig.service` cannot be resolved here and counts as a failed call; `matchConditions` are refused.
"""
