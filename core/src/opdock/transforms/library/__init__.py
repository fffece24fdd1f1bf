"""opdock's own transforms: each is the function of its module's name."""
