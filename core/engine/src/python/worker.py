"""Runs the code of tools. Each call runs in a process forked from this one, which stays warm; nothing a call leaves
behind reaches the next. Requests and answers are lines of JSON on what were standard input and output; whatever the code
prints goes into the answer's log."""
import sys

sys.path[:] = [folder for folder in sys.path if folder]

import ast
import asyncio
import inspect
import json
import os
import signal
import tempfile
import traceback

LOG_BYTES = 16_000
TEXT_KEYS = ("response", "content", "output", "result", "message", "text")


class Refused(Exception):
    """What the sandbox does not allow."""


def within(root, path):
    real = os.path.realpath(os.path.join(root, path))
    if real != root and os.path.commonpath([root, real]) != root:
        raise Refused(f"Path traversal detected: '{path}' escapes sandbox root '{root}'")
    if ".git" in os.path.relpath(real, root).lower().split(os.sep):
        raise Refused(f"'{path}': git's own files are off limits")
    return real


class Sandbox:
    def __init__(self, root):
        self.root = root


class Handler:
    """What a resource's type can do, by name."""

    def __init__(self, resource):
        self.read, self.write, self.list = resource.read, resource.write, resource.list

    def __getattr__(self, name):
        raise AttributeError(f"a resource offers read, write and list, not `{name}`")


class Resource:
    def __init__(self, changes, slot, name, type, path, read_only):
        self._changes = changes
        self.slot, self.name, self.type, self.path, self.read_only = slot, name, type, path, read_only
        self.sandbox = Sandbox(path)
        self.handler = Handler(self)

    def read(self, path):
        with open(within(self.path, path), encoding="utf-8", newline="") as file:
            return file.read()

    def list(self, path="."):
        return sorted(name for name in os.listdir(within(self.path, path)) if name.lower() != ".git")

    def write(self, path, content):
        if self.read_only:
            raise Refused(f"resource {self.name} is bound read-only")
        real = within(self.path, path)
        os.makedirs(os.path.dirname(real), exist_ok=True)
        if isinstance(content, bytes):
            with open(real, "wb") as file:
                file.write(content)
        else:
            with open(real, "w", encoding="utf-8", newline="") as file:
                file.write(content)
        self._changes.append({"resource": self.name, "path": path})


class Plan:
    def __init__(self, id):
        self.id = id


class Context:
    """What is around a call: resources by slot, the sandbox, the plan."""

    def __init__(self, scene):
        self.changes = []
        self.resources = {one["slot"]: Resource(self.changes, **one) for one in scene["resources"]}
        self.sandbox = Sandbox(scene["root"])
        self.plan = Plan(scene["plan"])

    def record_change(self, **change):
        self.changes.append(change)

    def spawn_subplan(self, *_, **__):
        raise Refused("a tool cannot start a child plan: its actor does, with `create_subplan`")

    def checkpoint(self, *_, **__):
        raise Refused("a checkpoint is made before and after each call of a tool that writes, not within one")


def returns(nodes):
    """Whether `return` stands outside of any function."""
    for node in nodes:
        if isinstance(node, ast.Return):
            return True
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Lambda)):
            continue
        if returns(ast.iter_child_nodes(node)):
            return True
    return False


def as_dict(value):
    if isinstance(value, dict):
        return value
    try:
        read = json.loads(value) if isinstance(value, str) else None
    except ValueError:
        read = None
    return read if isinstance(read, dict) else {"content": value, "message": value}


def as_text(value):
    if isinstance(value, str):
        return value
    if isinstance(value, dict):
        for key in TEXT_KEYS:
            if isinstance(value.get(key), str):
                return value[key]
    return json.dumps(value)


def settled(value):
    return asyncio.run(value) if inspect.isawaitable(value) else value


def call(function, first, extra):
    """Calls with the first argument, and those of the others that it asks for by name."""
    try:
        names = list(inspect.signature(function).parameters)[1:]
    except (TypeError, ValueError):
        names = []
    return settled(function(first, **{name: extra[name] for name in names if name in extra}))


def run(request):
    code, short, mode, given = request["code"], request["name"], request["mode"], request["input"]
    context = request.get("context") or {}
    ctx = Context(request["scene"])
    params = given if isinstance(given, dict) else as_dict(given)
    tree = ast.parse(code, "<tool>")
    functions = {n.name for n in tree.body if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))}
    scope = {
        "__name__": "__tool__",
        "input_data": given,
        "context": context,
        "params": params,
        "ctx": ctx,
        "result": None,
    }
    extra = {"ctx": ctx, "context": context, "params": params}
    future = [n for n in tree.body if isinstance(n, ast.ImportFrom) and n.module == "__future__"]
    if mode not in ("auto", "transform"):
        exec(compile(tree, "<tool>", "exec"), scope)
        wanted = mode if mode != "hook" else next(iter(functions), None)
        if wanted is None:
            return scope["result"], context
        if wanted not in scope:
            raise NameError(f"the code has no function `{wanted}`")
        return settled(scope[wanted](context)), context
    if mode == "transform" and "transform" in functions:
        exec(compile(tree, "<tool>", "exec"), scope)
        return call(scope["transform"], given, extra), context
    if "run" in functions:
        exec(compile(tree, "<tool>", "exec"), scope)
        return call(scope["run"], as_dict(given), extra), context
    if short in functions:
        exec(compile(tree, "<tool>", "exec"), scope)
        return settled(scope[short](**params)), context
    if returns(tree.body):
        names = ["params", "ctx", "input_data", "context", "tool_output"]
        arguments = ast.arguments(
            posonlyargs=[], args=[ast.arg(arg=name) for name in names], kwonlyargs=[], kw_defaults=[], defaults=[]
        )
        body = [n for n in tree.body if n not in future]
        made = ast.FunctionDef(name="__body__", args=arguments, body=body, decorator_list=[], type_params=[])
        module = ast.fix_missing_locations(ast.Module(body=[*future, made], type_ignores=[]))
        exec(compile(module, "<tool>", "exec"), scope)
        return settled(scope["__body__"](params, ctx, given, context, given)), context
    scope["input_data"] = as_text(given)
    scope["tool_output"] = given
    exec(compile(tree, "<tool>", "exec"), scope)
    return scope["result"], scope["context"]


def unserialisable(value, place):
    """Where the first value is that JSON has no form for."""
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, (str, int, float, bool, type(None))):
                return f"{place}: the key {key!r}"
            found = unserialisable(inner, f"{place}.{key}")
            if found:
                return found
        return None
    if isinstance(value, (list, tuple)):
        for at, inner in enumerate(value):
            found = unserialisable(inner, f"{place}[{at}]")
            if found:
                return found
        return None
    if isinstance(value, (str, int, float, bool, type(None))):
        return None
    return f"{place} is of type {type(value).__name__}"


WRITING = {
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.link", "os.symlink", "os.truncate", "os.chmod", "os.chown",
    "shutil.rmtree", "shutil.move", "shutil.copyfile", "subprocess.Popen", "os.system", "os.exec", "os.posix_spawn",
    "os.fork", "os.forkpty", "os.spawn", "ctypes.dlopen", "pty.spawn",
}


def guard(event, args):
    """Where nothing else confines code that must not write: weaker than that, since code in C is not seen."""
    if event.startswith("socket.") and event != "socket.__new__":
        raise Refused(f"no network here ({event})")
    if event in WRITING:
        raise Refused(f"nothing is written or started here ({event})")
    if event == "open" and not isinstance(args[0], int):
        path, mode, flags = args
        writes = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
        if isinstance(flags, int) and flags & writes and path != os.devnull:
            raise Refused(f"nothing is written here ({path})")


def answer(request):
    """Runs in the forked process; gives the answer as bytes."""
    log = tempfile.TemporaryFile()
    os.dup2(log.fileno(), 1)
    os.dup2(log.fileno(), 2)
    said = {}
    signal.setitimer(signal.ITIMER_REAL, request["seconds"])
    try:
        root = request["scene"]["root"]
        os.chdir(root)
        if request["scene"]["imports"]:
            sys.path.append(root)
        if request["guarded"]:
            sys.addaudithook(guard)
        result, context = run(request)
        wrong = unserialisable(result, "result") or unserialisable(context, "context")
        if wrong:
            raise TypeError(f"what code returns must be JSON: {wrong}")
        said = {"result": result, "context": context}
        json.dumps(said, allow_nan=False)
    except BaseException as error:  # `sys.exit` is a failure of the tool, too
        lines = traceback.format_exception(type(error), error, error.__traceback__)
        own = [line for line in lines if 'File "<string>"' not in line]
        said = {
            "error": {
                "type": type(error).__name__,
                "message": str(error),
                "traceback": "".join(own)[-8000:],
            }
        }
    try:
        sys.stdout.flush()
        sys.stderr.flush()
        size = log.seek(0, os.SEEK_END)
        log.seek(max(0, size - LOG_BYTES))
        said["log"] = log.read().decode("utf-8", "replace")
    except BaseException:
        said["log"] = ""
    return json.dumps(said).encode()


def serve(requests, answers):
    for line in requests:
        request = json.loads(line)
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.setpgid(0, 0)
            os.close(reading)
            requests.close()
            data = answer(request)
            with os.fdopen(writing, "wb") as pipe:
                pipe.write(data + b"\n")
            os._exit(0)
        os.close(writing)
        answers.write(json.dumps({"started": child}).encode() + b"\n")
        answers.flush()
        with os.fdopen(reading, "rb") as pipe:
            said = pipe.readline()
        try:
            os.killpg(child, signal.SIGKILL)
        except OSError:
            pass
        _, status = os.waitpid(child, 0)
        if not said.endswith(b"\n"):
            ended = f"signal {os.WTERMSIG(status)}" if os.WIFSIGNALED(status) else f"exit code {os.WEXITSTATUS(status)}"
            error = {"type": "ProcessEnded", "message": f"the code's process ended by itself ({ended})", "traceback": ""}
            said = json.dumps({"error": error, "log": ""}).encode() + b"\n"
        answers.write(said)
        answers.flush()


if __name__ == "__main__":
    requests = os.fdopen(os.dup(0), "rb")
    answers = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    os.dup2(nothing, 2)
    serve(requests, answers)
