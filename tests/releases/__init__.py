"""What a release holds: what is made for wheels, run folders of earlier versions, files for other tools, the public API."""
