"""The operations of the control socket. A handler takes arguments, calls one function, and returns the result.

docs/control.md documents every operation. A test compares that page with the handlers and with the Python client.
"""
