"""The plugin contract and the machinery that asks: combining rules, session, statement, placement."""
