"""Smart-meter privacy that works on a real home battery."""

__version__ = "0.1.0"
