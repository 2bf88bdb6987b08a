"""The operations of the control socket: arguments in, an answer out."""
