"""Third-party verifiers, called as their own libraries call them: one module a package, each name an auditable callable.

`spectheory audit spectheory.audit.adapters.transformers:speculative_sampling --black-box`. The packages are optional: an
adapter imports its package when it is first called.
"""
