#!/usr/bin/env python3
"""Compares what an agent gets of a language server through `agents mcp serve` and through another MCP server.

    tests/bench/peers.py --agents target/release/agents --server basedpyright-langserver --peer /path/to/agent-lsp

Both have the same server over a copy of the same generated repository, and are asked in turns:

- after an edit: a file is broken or mended on disk, then its diagnostics are asked for. An answer counts as wrong when it does
  not tell the broken file from the mended one.
- impact: everything that refers to a symbol used in many files. Counted are the places found, and the calls and characters that took.

Prints a table and one JSON document. Times say something about the machine, too. `--peer` is agent-lsp (PyPI); without it only ours
is measured.
"""
import argparse
import json
import os
import queue
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MODULES = 150
USERS = 40
BROKEN = "    return missing_name\n"
MENDED = "    return 1\n"


class Mcp:
    """A client of a server that speaks MCP over stdin and stdout."""

    def __init__(self, command, folder, env):
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, env=env
        )
        self.answers = queue.Queue()
        self.next = 0
        threading.Thread(target=self.read, daemon=True).start()
        client = {"name": "bench", "version": "1"}
        self.request("initialize", {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": client})
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def read(self):
        for line in self.process.stdout:
            message = json.loads(line)
            if "method" in message and "id" in message:
                self.send({"jsonrpc": "2.0", "id": message["id"], "result": {"roots": []}})
            elif "id" in message:
                self.answers.put(message)

    def send(self, message):
        self.process.stdin.write((json.dumps(message) + "\n").encode())
        self.process.stdin.flush()

    def request(self, method, params):
        self.next += 1
        self.send({"jsonrpc": "2.0", "id": self.next, "method": method, "params": params})
        while True:
            answer = self.answers.get(timeout=180)
            if answer["id"] == self.next:
                return answer.get("result", answer)

    def call(self, tool, arguments):
        """The text of a tool's answer."""
        result = self.request("tools/call", {"name": tool, "arguments": arguments})
        return "\n".join(part.get("text", "") for part in result.get("content", [])) or json.dumps(result)

    def close(self):
        self.process.stdin.close()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()


def make_repository(folder):
    os.makedirs(folder)
    with open(f"{folder}/shape.py", "w") as file:
        file.write('class Shape:\n    """A shape."""\n\n    def area(self) -> float:\n        return 1.0\n')
    for n in range(MODULES):
        with open(f"{folder}/m{n}.py", "w") as file:
            file.write(f"import json\n\n\ndef f{n}() -> int:\n{MENDED}")
            if n < USERS:
                file.write(f"\n\nfrom shape import Shape\n\n\ndef g{n}() -> float:\n    return Shape().area()\n")
    subprocess.run(["git", "init", "-q", folder], check=True)


class Ours:
    name = "agents"

    def __init__(self, options, folder, home):
        env = dict(os.environ, HOME=home, CLEVERAGENTS_DATA_DIR=f"{home}/data")
        entry = {"name": "local/server", "languages": ["python"], "command": options.server, "args": ["--stdio"]}
        with open(f"{home}/server.yaml", "w") as file:
            json.dump(entry, file)
        quiet = subprocess.DEVNULL
        subprocess.run([options.agents, "lsp", "add", "--config", f"{home}/server.yaml"], env=env, check=True, stdout=quiet)
        self.mcp = Mcp([options.agents, "mcp", "serve", "--root", folder, "--no-plans"], folder, env)

    def diagnostics(self, path):
        return self.mcp.call("lsp_diagnostics", {"path": path})

    def impact(self):
        text = self.mcp.call("lsp_impact", {"path": "shape.py", "symbol": "Shape.area"})
        return [text], json.loads(text)["references"]


class AgentLsp:
    name = "agent-lsp"

    def __init__(self, options, folder, home):
        self.folder = folder
        self.mcp = Mcp([options.peer, f"python:{options.server},--stdio"], folder, dict(os.environ, HOME=home))
        self.mcp.call("start_lsp", {"root_dir": folder})

    def diagnostics(self, path):
        uri = f"file://{self.folder}/{path}"
        self.mcp.call("did_change_watched_files", {"changes": [{"uri": uri, "type": 2}]})
        with open(f"{self.folder}/{path}") as file:
            text = file.read()
        self.mcp.call("open_document", {"file_path": f"{self.folder}/{path}", "language_id": "python", "text": text})
        return self.mcp.call("get_diagnostics", {"file_path": f"{self.folder}/{path}"})

    def impact(self):
        at = {"file_path": f"{self.folder}/shape.py", "language_id": "python", "line": 4, "column": 9}
        texts = [self.mcp.call("find_references", at), self.mcp.call("find_callers", at)]
        return texts, len(set(re.findall(r"m\d+\.py", texts[0])))


def milliseconds(times):
    ordered = sorted(times)
    at = lambda part: round(ordered[min(len(ordered) - 1, int(len(ordered) * part))] * 1000)
    return {"p50_ms": round(statistics.median(ordered) * 1000), "p90_ms": at(0.9), "max_ms": round(ordered[-1] * 1000)}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--agents", required=True)
    parser.add_argument("--server", default="basedpyright-langserver")
    parser.add_argument("--peer")
    parser.add_argument("--rounds", type=int, default=20)
    options = parser.parse_args()
    options.agents, options.server = shutil.which(options.agents), shutil.which(options.server)
    place = tempfile.mkdtemp(prefix="agents-peers-")
    sides = []
    for kind in [Ours] + ([AgentLsp] if options.peer else []):
        folder, home = f"{place}/{kind.name}/repository", f"{place}/{kind.name}/home"
        os.makedirs(home)
        make_repository(folder)
        sides.append((kind(options, folder, home), folder))
    found = {side.name: {"edits": [], "wrong": 0, "impact": []} for side, _ in sides}
    for side, _ in sides:
        side.diagnostics("m0.py")
        side.impact()
    for turn in range(options.rounds):
        broken = turn % 2 == 0
        for side, folder in sides:
            path = f"{folder}/m0.py"
            with open(path) as file:
                text = file.read()
            with open(path, "w") as file:
                file.write(text.replace(MENDED, BROKEN) if broken else text.replace(BROKEN, MENDED))
            begun = time.monotonic()
            answer = side.diagnostics("m0.py")
            found[side.name]["edits"].append(time.monotonic() - begun)
            found[side.name]["wrong"] += ("missing_name" in answer) != broken
    for _ in range(max(options.rounds // 4, 1)):
        for side, _ in sides:
            begun = time.monotonic()
            texts, places = side.impact()
            found[side.name]["impact"].append(time.monotonic() - begun)
            found[side.name].update(calls=len(texts), characters=sum(map(len, texts)), places=places)
    report = {}
    print(f"{'':12}{'after an edit p50, p90, max ms':34}{'wrong':>6}{'impact p50 ms':>16}{'places':>8}{'calls':>7}{'chars':>8}", file=sys.stderr)
    for side, _ in sides:
        one = found[side.name]
        edits, impact = milliseconds(one["edits"]), milliseconds(one["impact"])
        kept = {key: one[key] for key in ("wrong", "calls", "characters", "places")}
        report[side.name] = {"after_an_edit": edits, "impact": impact, **kept}
        times = ", ".join(str(edits[key]) for key in edits)
        print(f"{side.name:12}{times:34}{one['wrong']:>6}{impact['p50_ms']:>16}{one['places']:>8}{one['calls']:>7}{one['characters']:>8}", file=sys.stderr)
        side.mcp.close()
    print(json.dumps(report, indent=1))
    shutil.rmtree(place, ignore_errors=True)


if __name__ == "__main__":
    main()
