"""The child's side: `python -m attnlab.bench.<module> <job> <file>` does the job and writes numbers to the file."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from attnlab.bench.peak import peak
from attnlab.bench.work import Job
from attnlab.errors import UserError

Values = dict[str, float]


def main(measure: Callable[[Job], Values]) -> None:
    """Entry point of each child. The last line it prints is the reason, where it fails."""
    job, result = Job.from_json(sys.argv[1]), Path(sys.argv[2])
    try:
        values = measure(job)
    except UserError as error:
        sys.exit(str(error))
    result.write_text(json.dumps({"peak_mb": peak()} | values))
