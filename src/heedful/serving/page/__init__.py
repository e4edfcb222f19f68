"""The page at `/`, where people can try the served models and look inside them."""
