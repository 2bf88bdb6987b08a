"""The control socket beside a mount: how commands ask a running daemon. ``protocol`` is what goes over it."""
