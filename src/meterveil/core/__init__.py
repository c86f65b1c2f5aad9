"""The one physics of the product: pure functions on arrays whose first dimension is the household.

Positive battery power charges and adds to what the meter reads; negative power discharges (D14).
Training, benchmark and live controller all call these functions. Nothing in here reads a file, a clock
or a global random generator, and nothing changes its input.
"""
