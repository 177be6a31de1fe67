"""A server of the Model Context Protocol that does what real ones do, and what they must not do. Standard library only."""

import argparse
import json
import os
import sys
import threading
import time

args = argparse.ArgumentParser()
args.add_argument("--era", default="legacy", choices=["legacy", "modern", "silent", "strict", "mute", "future"])
args.add_argument("--version", default="2025-11-25")
args.add_argument("--dir", required=True, help="what it did, and gates that it waits for")
args.add_argument("--page", type=int, default=0, help="tools in a page")
args.add_argument("--end", default="\n", help="end of a line")
args.add_argument("--exit", type=int, default=None, help="exit at once")
args.add_argument("--noise", action="store_true", help="print lines that are not messages")
args = args.parse_args()
end = {"crlf": "\r\n"}.get(args.end, args.end)
lock = threading.Lock()
tools = {}
asked = {}
listening = []


def note(text):
    """Records an effect, in the order of effects."""
    with open(os.path.join(args.dir, "effects"), "a") as file:
        file.write(text + "\n")


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + end)
        sys.stdout.flush()


def tool(**more):
    def add(function):
        schema = {"type": "object", "properties": {"text": {"type": "string"}, "gate": {"type": "string"}, "n": {"type": "integer"}}}
        tools[function.__name__] = (function, {"name": function.__name__, "description": function.__doc__, "inputSchema": schema, **more})
        return function
    return add


def text(value, **more):
    return {"content": [{"type": "text", "text": value}], **more}


def wait_for(gate):
    while not os.path.exists(os.path.join(args.dir, gate)):
        time.sleep(0.005)


@tool()
def echo(call, text="", **_):
    """Return the text."""
    return globals()["text"](text)


@tool()
def effect(call, gate="", text="", **_):
    """Have an effect, and answer when the gate is open."""
    note(f"effect {text}")
    if gate:
        wait_for(gate)
    return globals()["text"]("done " + text)


@tool(annotations={"readOnlyHint": True})
def look(call, gate="", text="", **_):
    """Change nothing."""
    note(f"look {text}")
    if gate:
        wait_for(gate)
    return globals()["text"]("seen " + text)


@tool()
def structured(call, n=0, **_):
    """Return a structure."""
    return text(json.dumps({"n": n}), structuredContent={"n": n})


@tool()
def fail(call, text="", **_):
    """Fail."""
    return globals()["text"](text, isError=True)


@tool()
def die(call, **_):
    """End the server without an answer."""
    note("die")
    print("last line on stderr", file=sys.stderr, flush=True)
    os._exit(3)


@tool(annotations={"readOnlyHint": True})
def die_once(call, **_):
    """End the server without an answer, the first time."""
    note("die_once")
    if open(os.path.join(args.dir, "effects")).read().count("die_once") == 1:
        os._exit(3)
    return text("alive")


@tool()
def twice(call, id=None, **_):
    """Answer twice, and with an unknown id."""
    send({"jsonrpc": "2.0", "id": "never asked", "result": text("unknown")})
    send({"jsonrpc": "2.0", "id": id, "result": text("first")})
    return text("second")


@tool()
def huge(call, n=0, **_):
    """Answer with a long text."""
    return text("x" * n)


@tool()
def broken(call, id=None, **_):
    """Answer with JSON that is too deep to be read."""
    with lock:
        sys.stdout.write('{"jsonrpc":"2.0","id":%s,"result":%s}%s' % (json.dumps(id), "[" * 200 + "]" * 200, end))
        sys.stdout.flush()


@tool()
def flood(call, n=0, **_):
    """Print notifications of n bytes altogether, then answer."""
    line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "y" * 65000}})
    with lock:
        for _ in range(n // 65000):
            sys.stdout.write(line + end)
        sys.stdout.flush()
    return text("flooded")


@tool()
def ask(call, text="", **_):
    """Send the client a request and return its answer."""
    done = threading.Event()
    asked["q"] = (done, [])
    send({"jsonrpc": "2.0", "id": "q", "method": text, "params": {}})
    done.wait(30)
    return globals()["text"](json.dumps(asked["q"][1][0]))


@tool()
def grow(call, text="", **_):
    """Add a tool and report that."""
    tools[text] = (echo, {"name": text, "description": "new", "inputSchema": {"type": "object"}})
    changed = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
    if args.era == "modern":
        changed["params"] = {"_meta": {"io.modelcontextprotocol/subscriptionId": listening[0]}}
    send(changed)
    return globals()["text"]("grown")


@tool()
def meta(call, request=None, **_):
    """Return the metadata of the request."""
    return text(json.dumps(request["params"].get("_meta")))


def listed(params):
    every = [definition for _, definition in tools.values()]
    if not args.page:
        return {"tools": every}
    start = int(params.get("cursor", "0"))
    result = {"tools": every[start:start + args.page]}
    if start + args.page < len(every):
        result["nextCursor"] = str(start + args.page)
    return result


def run(request):
    params = request["params"]
    found = tools.get(params["name"])
    if not found:
        return send({"jsonrpc": "2.0", "id": request["id"], "error": {"code": -32602, "message": "Unknown tool"}})
    given = dict(params.get("arguments") or {})
    extra = {"id": request["id"]} if params["name"] in ("twice", "broken") else {}
    extra |= {"request": request} if params["name"] == "meta" else {}
    result = found[0](params.get("_meta", {}).get("toold/call"), **given, **extra)
    if result is not None:
        send({"jsonrpc": "2.0", "id": request["id"], "result": result | ({"resultType": "complete"} if args.era == "modern" else {})})


def serve(message):
    method, id = message.get("method"), message.get("id")
    note_of = {"initialize": "initialize", "server/discover": "discover", "notifications/cancelled": "cancelled"}
    if method in note_of and args.era != "mute":
        note(note_of[method])
    if method is None:
        done, answers = asked[id]
        answers.append(message.get("result", message.get("error")))
        return done.set()
    if args.era == "mute":
        return None
    if args.era == "future":
        error = {"code": -32022, "message": "Unsupported protocol version", "data": {"supported": ["2031-01-01"]}}
        return send({"jsonrpc": "2.0", "id": id, "error": error})
    if args.era == "modern":
        if method.startswith("notifications/"):
            return None
        version = message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"]
        assert version == "2026-07-28" and "io.modelcontextprotocol/clientCapabilities" in message["params"]["_meta"]
        if method == "subscriptions/listen":
            listening.append(id)
            return send({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged", "params": {}})
        if method == "server/discover":
            result = {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}, "resultType": "complete"}
            return send({"jsonrpc": "2.0", "id": id, "result": result})
    if method == "server/discover":
        if args.era == "strict":
            print("expected initialize", file=sys.stderr, flush=True)
            os._exit(1)
        if args.era == "silent":
            return None
    if method == "initialize":
        result = {"protocolVersion": args.version, "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "fake", "version": "1"}}
        return send({"jsonrpc": "2.0", "id": id, "result": result})
    if method == "notifications/initialized" or method == "notifications/cancelled":
        return None
    if method == "tools/list":
        note("list")
        return send({"jsonrpc": "2.0", "id": id, "result": listed(message["params"])})
    if method == "tools/call":
        return threading.Thread(target=run, args=[message], daemon=True).start()
    return send({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})


if args.exit is not None:
    print("cannot read my config", file=sys.stderr, flush=True)
    sys.exit(args.exit)
if args.noise:
    print("Server started\n\n{not json\n42", flush=True)
note("start")
for line in sys.stdin:
    serve(json.loads(line))
note("eof")
