"""Words before attention: how a text is cut into tokens, and where their vectors lie."""
