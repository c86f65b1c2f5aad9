"""The physics of the product: pure functions on arrays whose first dimension is the household.

Positive battery power charges and adds to what the meter reads; negative power discharges (D14).
Training, benchmark and live controller all call these functions. They read no file, clock or global random
generator, and do not change their input.
"""
