"""Answers as tables: what `kubectl get` prints, made by the server from the columns of each kind."""
