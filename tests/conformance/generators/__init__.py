"""Makes cases from seeds, for the recorder and for tests that know properties of the right answer."""
