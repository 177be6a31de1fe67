"""A model on loopback that answers from a script and records what it receives.

    mock_model.py SCRIPT.json REQUESTS_DIR COMMAND...

Run as the first program of a network namespace of its own. It brings up the loopback device, serves the APIs that coding agents
call (Messages, Responses, Chat Completions, generateContent), runs the command with MODEL_URL set, and exits with its code.

The script is a list of steps. Each request that offers tools takes the next one: {"text": "..."} answers, {"call": "proc_start",
"arguments": {...}} calls the tool whose name ends so. "before" is a shell command that runs before the answer. After the last
step the answer is "nothing left to do". A request without tools (a title, a check of the key) gets "ok" and takes no step.
Requests are stored as REQUESTS_DIR/N.json, those without tools as REQUESTS_DIR/other-N.json, complete when they appear.
"""

import fcntl
import json
import os
import socket
import struct
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 1
BEFORE_TIMEOUT_S = 30

steps = []
requests_dir = ""
lock = threading.Lock()
taken = {"main": 0, "other": 0}


def bring_up_loopback():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        request = struct.pack("16sh14s", b"lo", 0, b"")
        _, flags, _ = struct.unpack("16sh14s", fcntl.ioctl(probe, SIOCGIFFLAGS, request))
        fcntl.ioctl(probe, SIOCSIFFLAGS, struct.pack("16sh14s", b"lo", flags | IFF_UP, b""))


def take(body):
    """Stores a request and returns its step."""
    kind = "main" if body.get("tools") else "other"
    with lock:
        number = taken[kind]
        taken[kind] += 1
    name = f"{number}.json" if kind == "main" else f"other-{number}.json"
    path = os.path.join(requests_dir, name)
    with open(path + ".new", "w") as file:
        json.dump(body, file)
    os.rename(path + ".new", path)
    if kind == "other":
        return {"text": "ok"}
    step = steps[number] if number < len(steps) else {"text": "nothing left to do"}
    if "before" in step:
        subprocess.run(step["before"], shell=True, timeout=BEFORE_TIMEOUT_S, check=True, stdin=subprocess.DEVNULL)
    return step


def tool_names(body):
    """Yields (namespace, name) of each tool offered."""
    for tool in body.get("tools", []):
        if tool.get("type") == "namespace":
            for inner in tool["tools"]:
                yield tool["name"], inner.get("name", "")
        elif "functionDeclarations" in tool:
            for inner in tool["functionDeclarations"]:
                yield None, inner.get("name", "")
        else:
            yield None, tool.get("name") or tool.get("function", {}).get("name", "")


def find_tool(body, wanted):
    for namespace, name in tool_names(body):
        if name == wanted or name.endswith("_" + wanted):
            return namespace, name
    return None, wanted


def messages_events(body, step):
    """The stream of the Messages API."""
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    message = {"id": f"msg_{taken['main']}_{taken['other']}", "type": "message", "role": "assistant", "model": body.get("model"),
               "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage}
    yield {"type": "message_start", "message": message}
    if "call" in step:
        _, name = find_tool(body, step["call"])
        block = {"type": "tool_use", "id": f"toolu_{taken['main']:04}", "name": name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step["arguments"])}
    else:
        block = {"type": "text", "text": ""}
        delta = {"type": "text_delta", "text": step["text"]}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    stop = "tool_use" if "call" in step else "end_turn"
    yield {"type": "message_delta", "delta": {"stop_reason": stop, "stop_sequence": None}, "usage": usage}
    yield {"type": "message_stop"}


def responses_events(body, step):
    """The stream of the Responses API."""
    identity = f"resp_{taken['main']}"
    yield {"type": "response.created", "response": {"id": identity}}
    if "call" in step:
        namespace, name = find_tool(body, step["call"])
        item = {"type": "function_call", "id": f"fc_{taken['main']}", "call_id": f"call_{taken['main']}", "name": name,
                "arguments": json.dumps(step["arguments"]), "status": "completed"}
        if namespace:
            item["namespace"] = namespace
    else:
        item = {"type": "message", "id": f"m_{taken['main']}", "role": "assistant", "status": "completed",
                "content": [{"type": "output_text", "text": step["text"], "annotations": []}]}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": 10, "output_tokens": 5, "total_tokens": 15, "input_tokens_details": {"cached_tokens": 0},
             "output_tokens_details": {"reasoning_tokens": 0}}
    yield {"type": "response.completed", "response": {"id": identity, "status": "completed", "usage": usage, "output": [item]}}


def chat_events(body, step):
    """The stream of the Chat Completions API."""
    def chunk(delta, finish=None):
        return {"id": f"chat_{taken['main']}", "object": "chat.completion.chunk", "created": 1, "model": body.get("model"),
                "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}
    if "call" in step:
        _, name = find_tool(body, step["call"])
        call = {"index": 0, "id": f"call_{taken['main']}", "type": "function",
                "function": {"name": name, "arguments": json.dumps(step["arguments"])}}
        yield chunk({"role": "assistant", "content": None, "tool_calls": [call]})
        yield chunk({}, "tool_calls")
    else:
        yield chunk({"role": "assistant", "content": step["text"]})
        yield chunk({}, "stop")


def gemini_events(body, step):
    """The stream of generateContent."""
    if "call" in step:
        part = {"functionCall": {"name": find_tool(body, step["call"])[1], "args": step["arguments"]}}
    else:
        part = {"text": step["text"]}
    yield {"candidates": [{"index": 0, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}],
           "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15}}


STREAMS = {":streamGenerateContent": gemini_events, "/messages": messages_events, "/responses": responses_events, "/chat/completions": chat_events}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def send_body(self, kind, data):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_HEAD(self):
        self.send_body("text/plain", b"")

    def do_GET(self):
        self.send_body("application/json", json.dumps({"data": [], "models": []}).encode())

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        path = self.path.split("?")[0]
        stream = next((make for end, make in STREAMS.items() if path.endswith(end)), None)
        if stream is None:
            return self.send_body("application/json", b'{"input_tokens": 10}')
        body = json.loads(text)
        lines = []
        for event in stream(body, take(body)):
            kind = f"event: {event['type']}\n" if "type" in event else ""
            lines.append(f"{kind}data: {json.dumps(event)}\n\n")
        if stream is chat_events:
            lines.append("data: [DONE]\n\n")
        self.send_body("text/event-stream", "".join(lines).encode())


def main():
    global steps, requests_dir
    script, requests_dir, *command = sys.argv[1:]
    with open(script) as file:
        steps = json.load(file)
    bring_up_loopback()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    os.environ["MODEL_URL"] = f"http://127.0.0.1:{server.server_port}"
    sys.exit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
