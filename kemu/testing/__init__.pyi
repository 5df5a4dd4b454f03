from kemu.testing.actor_tests import Recorder as Recorder
from kemu.testing.actor_tests import sim as sim
