"""The plugin contract and the engine around it: combining rules, state, statement, hooks, placement, eviction."""
