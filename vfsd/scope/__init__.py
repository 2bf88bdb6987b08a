"""One mounted scope: its tree in memory, the store behind it, and every change that is made to it."""
