"""The daemon of one mount: its lifecycle, its process, and how it reports."""
