"""Opens a session of an opencode server, sends it `start`, and prints its messages until the first answer is there."""

import json
import sys
import time
import urllib.request

# A request that comes while the server starts may stay without an answer.
ATTEMPTS, PAUSE_S, CALL_TIMEOUT_S = 300, 0.1, 5
base = sys.argv[1]


def call(path, body=None):
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(base + path, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=CALL_TIMEOUT_S) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def first(attempt):
    """Returns the first result of `attempt` that is true. The server may not listen yet."""
    for _ in range(ATTEMPTS):
        try:
            result = attempt()
        except OSError:
            result = None
        if result:
            return result
        time.sleep(PAUSE_S)
    sys.exit("opencode did not answer")


session = first(lambda: call("/session", {}))["id"]
call(f"/session/{session}/prompt_async", {"parts": [{"type": "text", "text": "start"}]})
first(lambda: "I wait for it" in json.dumps(call(f"/session/{session}/message")))
print("the answer is: I wait for it", flush=True)
