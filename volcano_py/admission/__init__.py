"""The rules of the admission webhooks, as pure functions, and the server that asks them.

Each kind of object has a module of its own: ``validate`` returns why an object is refused, ``mutate`` what it gets.
`rules` is the table of all paths, `contract` what rules are given and answer.
"""
