"""The files that ``kemu artefact`` writes, with the ending ``.in``; ``@TITLE@`` and ``@VERSIONS@`` are filled in."""
