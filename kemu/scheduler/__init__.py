"""What authors of plugins and extenders import: ``framework``, ``extenders``. The code is in kemu.emulated."""
