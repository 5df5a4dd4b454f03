"""Custom kinds behind the gateway."""
