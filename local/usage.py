"""What one can do with the stack that is now running."""

from local.stack_file import StackFile

# The keys stay in the file: the shell takes them from there when the command runs.
_KEYS = (
    """"$(python3 -c 'import json; s = json.load(open("local/stack.json")); """
    """print(s["access_key_id"], s["secret_access_key"], sep=":")')\""""
)


def usage(stack: StackFile, job_id: str) -> str:
    return f"""
Duetime is serving at {stack.api_url}

  .venv/bin/duetime --help                     submit jobs and follow them
  .venv/bin/duetime status {job_id}

Any client that signs with AWS credentials will do; the keys are in local/stack.json:

  curl --aws-sigv4 aws:amz:{stack.region}:execute-api --user {_KEYS} \\
    {stack.api_url}/jobs/{job_id}/status

Ctrl-C ends it."""
