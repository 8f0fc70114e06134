"""Sphinx settings. Build with `make docs`: warnings are errors, nothing is fetched, notebooks and claims are run afresh."""

from __future__ import annotations

import os
import sys
from importlib.util import find_spec
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE / "_ext"))
sys.path.insert(0, str(HERE.parent))
# Notebook kernels are other processes: they find this checkout too, and leave the second core to the builder.
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(HERE.parent), os.environ.get("PYTHONPATH")]))
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from spectheory import __version__  # noqa: E402

project = "spectheory"
author = "The spectheory maintainers"
copyright = author
version = release = __version__

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.mathjax",
    "sphinx_proof",
    "sphinxcontrib.bibtex",
    "claims",
    "docstrings",
    "tutorials",
    "module_lists",
]
exclude_patterns = ["_build"]
suppress_warnings = ["mystnb.unknown_mime_type"]
nitpicky = False

myst_enable_extensions = ["amsmath", "attrs_block", "attrs_inline", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_timeout = 300  # seconds a cell, on a busy machine
nb_execution_raise_on_error = True
nb_merge_streams = True

bibtex_bibfiles = ["refs.bib"]
bibtex_reference_style = "author_year"

autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

# One self-contained file of MathJax, taken from its package: no reader's browser asks another host for it.
offline = find_spec("sphinx-mathjax-offline")
if offline is None:
    raise ModuleNotFoundError("the documentation needs the package sphinx-mathjax-offline (extra: docs)")
MATHJAX = Path(str(offline.origin)).parent / "static" / "mathjax" / "tex-svg.js"
mathjax_path = MATHJAX.name

html_theme = "furo"
html_title = "spectheory"
html_static_path = ["_static", str(MATHJAX)]
html_css_files = ["spectheory.css"]
html_show_copyright = False
html_copy_source = False
html_show_sourcelink = False
html_theme_options = {"navigation_with_keys": True}

# How many instances of each claim the build tries; the pages say this number beside what came of it.
claims_examples = 100
