"""What a tool in Python needs: a decorator, and serve.

    import sandboxd

    @sandboxd.tool
    def greet(name):
        return "Hello " + name

    sandboxd.serve()

A function is called with the arguments of the call by their names. A dict with the
key content is a result of MCP; a text is text; any other value is structured content.
What it raises is an error that the client is told; the traceback goes to the log.
When it returns the program ends at once: close what you write to.

What comes before serve() is done once where calls begin at its read of standard
input (reseeds: true in tool.yaml). serve() gives the generator of the module random a
new seed for each call; generators of your own are yours to seed after that.
"""

import json
import os
import random
import sys
import traceback

_tools = {}


def tool(function):
    """Registers a function as the tool of its name."""
    _tools[function.__name__] = function
    return function


def _result(value):
    if isinstance(value, str):
        return value
    if isinstance(value, dict) and isinstance(value.get("content"), list):
        return json.dumps(value)
    result = {"content": [{"type": "text", "text": json.dumps(value, ensure_ascii=False)}]}
    if isinstance(value, dict):
        result["structuredContent"] = value
    return json.dumps(result)


def serve():
    """Reads the request, has its tool answer, and ends the program."""
    request = json.loads(sys.stdin.buffer.read())
    random.seed()
    try:
        function = _tools[request["tool"]]
        answer = _result(function(**request["arguments"]))
    except Exception as e:
        traceback.print_exc()
        _end(f"{type(e).__name__}: {e}", 1)
    _end(answer, 0)


def _end(answer, status):
    # Without what the interpreter does at its end, which takes longer than most calls:
    # all that it holds goes with the call.
    sys.stdout.write(answer)
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)
