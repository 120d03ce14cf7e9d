"""What every part of a resolved case is."""

from pydantic import BaseModel, ConfigDict


class Part(BaseModel):
    """A frozen value that reads and writes as JSON; unknown keys are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)
