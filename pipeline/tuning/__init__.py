"""A search for hyper-parameters: trials, each a training of its own."""
