from kemu.api.explorations import Exploration as Exploration
from kemu.api.explorations import explore as explore
from kemu.api.live_clusters import Cluster as Cluster
from kemu.api.live_clusters import cluster as cluster
from kemu.api.live_clusters import pod as pod
from kemu.api.reports import RunFailed as RunFailed
from kemu.api.runs import Run as Run
from kemu.api.runs import run as run
from kemu.api.simulations import simulate as simulate
from kemu.api.views import Finding as Finding
from kemu.api.views import Moment as Moment
from kemu.api.views import Pod as Pod
from kemu.api.views import Wait as Wait

__version__: str
