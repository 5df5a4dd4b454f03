"""Published results that kemu reproduces."""
