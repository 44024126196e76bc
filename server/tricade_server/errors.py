"""What can stop `tricade serve`.

ServeError
├── NoTriton        no server, or one that this Python cannot be used with
├── PortTaken       a port is not free
├── BadRepository   the folder is not a rendered repository
├── BadSamples      the folder for samples cannot be written
└── LoadFailed      a model loads neither as it is nor on ONNX Runtime, or the server ended
"""


class ServeError(Exception):
    """Printed in one line; the command exits 1."""


class NoTriton(ServeError):
    """There is no Triton here that can run."""


class PortTaken(ServeError):
    """Another process listens on a port that was asked for."""


class BadRepository(ServeError):
    """The folder holds no pipeline, or a configuration that cannot be read."""


class BadSamples(ServeError):
    """The folder for samples cannot be made or written."""


class LoadFailed(ServeError):
    """A pipeline cannot be served."""
