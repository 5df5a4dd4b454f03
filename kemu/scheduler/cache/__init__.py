"""The scheduler's cache: nodes and pods, columns and counts derived from them, and what checks them."""
