from kemu.api.explorations import Exploration as Exploration
from kemu.api.explorations import explore as explore
from kemu.api.live_clusters import Cluster as Cluster
from kemu.api.live_clusters import cluster as cluster
from kemu.api.live_clusters import pod as pod
from kemu.api.reports import RunFailed as RunFailed
from kemu.api.run_logs import events as events
from kemu.api.runs import Run as Run
from kemu.api.runs import run as run
from kemu.api.simulations import simulate as simulate
from kemu.api.sweeps import Sweep as Sweep
from kemu.api.sweeps import experiment as experiment
from kemu.api.views import Finding as Finding
from kemu.api.views import Moment as Moment
from kemu.api.views import Pod as Pod
from kemu.api.views import Wait as Wait
from kemu.runlog.frames import Event as Event

__version__: str
