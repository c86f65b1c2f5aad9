"""Adapters of the core to reinforcement learning libraries: names and shapes only, no arithmetic.

`gymnasium` is one household, `sb3` a whole batch; both call the same functions of `core.env`. `embedded`
registers the synthetic household with Gymnasium.
"""
