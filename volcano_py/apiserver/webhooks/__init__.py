"""Admission webhooks: which are asked about a write, how they are asked, and what their answers do to it.

The order is that of a real server: mutate, validate by the kind's own rules, ask the validating webhooks, store.
Asked about are writes over HTTP of objects, their status and their deletion; not about bindings, evictions, scales
and what the server's own controllers and an in-process kubelet write. Mutating webhooks are called once, in order of
name. `clientConfig.service` cannot be resolved here and counts as a failed call; `matchConditions` are refused.
"""
