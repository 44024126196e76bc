"""What can end `tricade tune` without a setting.

TuneError               one message for the user: what was expected, what came, what to do
├── BadObjects          --objects is not a list of shares, or asks for counts that no picture has
├── BadPictures         the folder holds no pictures that the pipeline answers
├── BadPipelineFile     a value of the pipeline file cannot be changed alone, or the file has changed meanwhile
├── BadPipelineModels   the repository does not hold this pipeline
└── ProcessDied         the pipeline file's own setting does not live through the first pictures
"""


class TuneError(Exception):
    """Printed; the command exits 1, and the pipeline file is as it was."""


class BadObjects(TuneError):
    """What is expected of --objects is in the message."""


class BadPictures(TuneError):
    """No picture, one that cannot be read, or one that the pipeline refuses."""


class BadPipelineFile(TuneError):
    """A person has to write the setting into it."""


class BadPipelineModels(TuneError):
    """`tricade build` has to come first."""


class ProcessDied(TuneError):
    """The server's log says more."""
