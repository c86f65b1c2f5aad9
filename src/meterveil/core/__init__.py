"""The physics of the product: pure functions on arrays whose first dimension is the household.

Positive battery power charges and adds to what the meter reads; negative power discharges (D14).
Training and benchmark call these functions, and a live controller can call them. They read no file, clock
or global random generator, and do not change their input.
"""
