"""What a program or a command uses to talk to a running daemon. It loads neither trio nor pyfuse3."""
