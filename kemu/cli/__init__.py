"""The command line, a module for each command: ``run``, ``explore``, ``replay``, ``story``, ``trace``, ``bench`` …"""
