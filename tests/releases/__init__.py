"""What a release holds: completion and man pages, files for other tools; run folders of earlier versions are read."""
