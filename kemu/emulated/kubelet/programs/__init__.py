"""What the containers' programs would do: how long they run, how they end, what they print. Begin at ``courses``.

courses      which course a container takes from its start, with its variables and files
printouts    what its program prints
images       what images run that are known by name, and Kubernetes' test image agnhost
shells       carries out scripts in virtual time; ``syntax`` reads them, ``arithmetic`` is ``$(( ))``
tools        the commands; ``file_tools`` are those for files, ``text_tools`` those for texts, ``conditions`` is
             ``test``; ``arguments`` is what they have in common
files        the files of a container, and of the volumes that it mounts
"""
