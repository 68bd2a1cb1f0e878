#!/usr/bin/env python3
"""An MCP server over stdio whose behaviour, good or bad, is chosen by its arguments.

    page        lists its tools two at a time        loop    lists for ever: every page leads to itself
    noise       prints what is no message            old     speaks only the oldest protocol
    silent      never answers                        exit    prints why and ends with status 3
    stay        does not leave when it is told to    odd     lists tools that are none among its own
    no-tools    offers none                          log=F   appends every request to the file F
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

WORDS = sys.argv[1:]
LOG = next((word[4:] for word in WORDS if word.startswith("log=")), None)
LOCK = threading.Lock()
EXTRA = []


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def tool(name, properties=None, required=None, **more):
    schema = {"type": "object", "properties": properties or {}, "required": required or []}
    return {"name": name, "description": f"What {name} does", "inputSchema": schema, **more}


TEXT = {"type": "string"}
TOOLS = [
    tool("read_file", {"path": TEXT}, ["path"], annotations={"readOnlyHint": True, "idempotentHint": True}),
    tool("write_file", {"path": TEXT, "content": TEXT}, ["path", "content"]),
    tool("fail", {"how": TEXT}, ["how"]),
    tool("sleep", {"seconds": {"type": "number"}}, ["seconds"]),
    tool("die", {}),
    tool("get_and_die_once", {"path": TEXT}, ["path"], annotations={"readOnlyHint": True, "idempotentHint": True}),
    tool("add_tool", {"name": TEXT}, ["name"]),
    tool("get_env", {"name": TEXT}, ["name"]),
    tool("get_pids", {}),
    tool("get_cwd", {}),
    tool("get_roots", {}),
]


def text(*parts):
    return {"content": [{"type": "text", "text": part} for part in parts]}


def call(name, given, ident):
    if name == "read_file":
        with open(given["path"], encoding="utf-8") as file:
            return text(file.read())
    if name == "write_file":
        with open(given["path"], "w", encoding="utf-8") as file:
            file.write(given["content"])
        return text(f"wrote {given['path']}")
    if name == "fail":
        return {
            "text": {"isError": True, "content": [{"type": "text", "text": "it went wrong"}]},
            "nothing": {"isError": True},
            "malformed": {"isError": True, "content": "no list"},
            "top": {"error": "ignored", "content": []},
            "throw": None,
        }[given["how"]]
    if name == "sleep":
        time.sleep(given["seconds"])
        return text("awake")
    if name == "die":
        os._exit(7)
    if name == "get_and_die_once":
        if not os.path.exists(given["path"]):
            open(given["path"], "w", encoding="utf-8").close()
            os._exit(7)
        return text("alive")
    if name == "add_tool":
        EXTRA.append(tool(given["name"], {}))
        send({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"})
        return text("added")
    if name == "get_env":
        return text(os.environ.get(given["name"], "unset"))
    if name == "get_pids":
        child = subprocess.Popen(["sleep", "600"])
        return text(f"{os.getpid()} {child.pid}")
    if name == "get_cwd":
        return text(os.getcwd())
    if name == "get_roots":
        send({"jsonrpc": "2.0", "id": f"roots-{ident}", "method": "roots/list"})
        return text("asked")
    return text(f"called {name}")


def listed(params):
    tools = TOOLS + EXTRA
    if "no-tools" in WORDS:
        tools = []
    if "odd" in WORDS:
        tools = [{"name": ""}, {"description": "no name"}, *tools, {"name": "bare", "inputSchema": 3}]
    if "loop" in WORDS:
        return {"tools": tools, "nextCursor": "again"}
    if "page" not in WORDS:
        return {"tools": tools}
    at = int(params.get("cursor", "0"))
    page = {"tools": tools[at : at + 2]}
    if at + 2 < len(tools):
        page["nextCursor"] = str(at + 2)
    return page


def answer(message):
    method, params, ident = message.get("method"), message.get("params") or {}, message.get("id")
    try:
        if method == "initialize":
            asked = params["protocolVersion"]
            result = {
                "protocolVersion": "2024-11-05" if "old" in WORDS else asked,
                "capabilities": {"tools": {"listChanged": True}, "resources": {}, "prompts": {}},
                "serverInfo": {"name": "fake", "version": "1.2"},
            }
        elif method == "tools/list":
            result = listed(params)
        elif method == "tools/call":
            result = call(params["name"], params.get("arguments") or {}, ident)
            if result is None:
                raise RuntimeError("thrown")
        elif method == "resources/list":
            result = {"resources": [{"uri": "memo://one", "name": "one"}]}
        elif method == "resources/read":
            result = {"contents": [{"uri": params["uri"], "text": "remember"}]}
        elif method == "prompts/list":
            result = {"prompts": [{"name": "greet", "arguments": [{"name": "who"}]}]}
        elif method == "ping":
            result = {}
        else:
            send({"jsonrpc": "2.0", "id": ident, "error": {"code": -32601, "message": f"no {method}"}})
            return
    except Exception as error:  # noqa: BLE001
        send({"jsonrpc": "2.0", "id": ident, "error": {"code": -32000, "message": str(error)}})
        return
    send({"jsonrpc": "2.0", "id": ident, "result": result})


def main():
    if "exit" in WORDS:
        print("the token is wrong:", os.environ.get("FAKE_TOKEN", ""), file=sys.stderr)
        sys.exit(3)
    if "stay" in WORDS:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "noise" in WORDS:
        print("Starting the server...", flush=True)
        sys.stderr.write("x" * 300_000 + "\nready\n")
    for line in sys.stdin:
        message = json.loads(line)
        if LOG:
            with open(LOG, "a", encoding="utf-8") as file:
                file.write(line)
        if "noise" in WORDS:
            print("debug: a line came in", flush=True)
        if "silent" in WORDS or "id" not in message or "method" not in message:
            continue
        threading.Thread(target=answer, args=(message,), daemon=True).start()
    while "stay" in WORDS:
        time.sleep(60)


main()
