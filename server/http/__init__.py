"""The HTTP layer that all routes share: protocol, middleware, request bodies, responses."""
