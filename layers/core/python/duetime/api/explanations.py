"""How an explanation looks to a caller."""

from typing import Any

from duetime.api.answers import show_time
from duetime.explaining import Explanation
from duetime.job import Job


def show_explanation(job: Job, explanation: Explanation) -> dict[str, Any]:
    last = explanation.steps[-1]
    return {
        "job_id": job.job_id,
        "at": show_time(explanation.at),
        "until": show_time(explanation.until),
        "verdict": explanation.verdict,
        "summary": last.detail,
        "trail": [
            {
                "code": step.code,
                "detail": step.detail,
                "at": show_time(step.at),
                "run_id": step.run_id,
                "by": step.by,
            }
            for step in explanation.steps
        ],
    }
