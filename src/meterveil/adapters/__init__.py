"""Views of the core for other people's trainers: names and shapes only, no arithmetic.

`gymnasium` shows one household, `sb3` a whole batch; both call the same functions of `core.env`.
"""
