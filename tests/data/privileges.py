"""File permissions that apply to root too."""

import os
from contextlib import contextmanager


@contextmanager
def without_privileges():
    """Act as a user to whom permissions apply, also where the tests run as root."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)
