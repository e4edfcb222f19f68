"""OpenAI's API for the language models and embedding models of a server."""
