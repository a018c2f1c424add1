"""What every request passes, whatever it asks for: protocol, middleware, bodies, responses."""
