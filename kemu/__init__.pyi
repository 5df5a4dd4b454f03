from kemu.doors.api.explorations import Exploration as Exploration
from kemu.doors.api.explorations import explore as explore
from kemu.doors.api.hunts import HuntResult as HuntResult
from kemu.doors.api.hunts import HuntUnsettled as HuntUnsettled
from kemu.doors.api.hunts import hunt as hunt
from kemu.doors.api.live_clusters import Cluster as Cluster
from kemu.doors.api.live_clusters import cluster as cluster
from kemu.doors.api.live_clusters import pod as pod
from kemu.doors.api.reports import RunFailed as RunFailed
from kemu.doors.api.results import Results as Results
from kemu.doors.api.results import results as results
from kemu.doors.api.run_logs import Event as Event
from kemu.doors.api.run_logs import events as events
from kemu.doors.api.runs import Run as Run
from kemu.doors.api.runs import run as run
from kemu.doors.api.simulations import simulate as simulate
from kemu.doors.api.sweeps import Sweep as Sweep
from kemu.doors.api.sweeps import compare as compare
from kemu.doors.api.sweeps import experiment as experiment
from kemu.doors.api.views import Finding as Finding
from kemu.doors.api.views import Moment as Moment
from kemu.doors.api.views import Pod as Pod
from kemu.doors.api.views import Wait as Wait

__version__: str
