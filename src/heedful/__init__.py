"""The whole Transformer: small enough to read, fast enough to ship."""
