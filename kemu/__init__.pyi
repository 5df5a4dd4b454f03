from kemu.api.runs import Run as Run
from kemu.api.runs import run as run
from kemu.api.views import Finding as Finding
from kemu.api.views import Moment as Moment
from kemu.api.views import Pod as Pod
from kemu.api.views import Wait as Wait

__version__: str
