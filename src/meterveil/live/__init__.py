"""Live control of a home battery: ports, controller, safety, store, drivers and dashboard.

The outer loop decides once a minute with `core.rollout.advance`; the inner loop holds the meter at what was
decided. Nothing here loads torch, pandas or plotly. Positive battery power charges; a driver of a device with
another convention converts (D14).
"""
