"""Programs as one page: the data that it shows, and the page itself."""
