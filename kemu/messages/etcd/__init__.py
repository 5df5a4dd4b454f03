"""Generated from proto/ by scripts/genproto."""
