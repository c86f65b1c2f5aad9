"""The one error that a user may see: it says what came, what is allowed and what to do."""


class InputError(ValueError):
    """Reject something that came from outside (a file, an option, a setting) with a one-line reason.

    The command line prints the message and exits with status 2; no traceback is shown.
    """
