"""Every table of the paper and those beyond it, as data, and the runner that measures them."""
