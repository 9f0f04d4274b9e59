"""The drawing library that pages carry in themselves: the basic bundle of plotly.js, which comes with the package."""

from __future__ import annotations

import importlib.resources


def plotly_script() -> str:
    """The whole of plotly.js (basic bundle, minified), for a `<script>` element or as a file to serve.

    Its version and licence are in the folder `plotly` beside this module.
    """
    return (importlib.resources.files("fairwave.report") / "plotly" / "plotly-basic.min.js").read_text("utf-8")
