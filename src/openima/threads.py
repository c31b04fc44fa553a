"""Threads that wait sleep, instead of spinning until the others are done.

On a machine whose cores have other work too, spinning threads take turns with the very threads they
wait for, and a run of ten seconds takes minutes. OpenMP reads this setting once, when the first
library that uses it is loaded, so the package imports this file before all others. Whoever has set
it to something else keeps that.
"""

from __future__ import annotations

import os

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
