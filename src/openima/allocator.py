"""Large pages for torch's tensors, where Linux lends them on request.

A step allocates hundreds of megabytes of temporaries, and clearing them page by page takes up to
a tenth of its time. Torch reads this setting once, when it makes its first tensor, so the package
imports this file before all others. Whoever has set it to something else keeps that.
"""

from __future__ import annotations

import os

os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
