"""What opdock is in a notebook: `%load_ext opdock` shows objects as HTML and brings `%%tf1`."""
