from kemu.runtime.sim.actor_tests import Recorder as Recorder
from kemu.runtime.sim.actor_tests import sim as sim
