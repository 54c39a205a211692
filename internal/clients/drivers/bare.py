"""The barest client there is: it lists the tools of an MCP server with their
hints, then calls one, and prints what it sees. It asks nobody and checks nothing.

    python3 bare.py TOOL ARGUMENTS COMMAND [ARGS...]
"""

import json
import subprocess
import sys

HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def main(tool, arguments, *command):
    server = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(**message):
        server.stdin.write(json.dumps({"jsonrpc": "2.0"} | message) + "\n")
        server.stdin.flush()

    def request(number, method, **params):
        send(id=number, method=method, params=params)
        for line in server.stdout:
            answer = json.loads(line)
            if answer.get("id") == number:
                return answer["result"]
        sys.exit(f"{method}: no answer")

    client = {"name": "bare", "version": "0"}
    request(0, "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client)
    send(method="notifications/initialized")
    for t in request(1, "tools/list")["tools"]:
        hints = t.get("annotations", {})
        print(t["name"], *(f"{h}={hints[h]}" for h in HINTS if h in hints))
    result = request(2, "tools/call", name=tool, arguments=json.loads(arguments))
    print("call", tool, "isError", result.get("isError", False))
    for content in result["content"]:
        print(content.get("text", content["type"]))
    server.stdin.close()
    sys.exit(server.wait())


main(*sys.argv[1:])
