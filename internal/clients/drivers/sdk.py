"""Driver of the Python SDK (the package mcp), which speaks 2025-11-25 (era
legacy) and 2026-07-28 (era auto). The commands are those of driver.mjs.
"""

import contextlib
import json
import sys

import anyio
import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.streamable_http import streamable_http_client
from mcp_types import LoggingMessageNotification, ToolListChangedNotification


class Session:
    def __init__(self):
        self.exits = contextlib.AsyncExitStack()
        self.client = None
        self.subscription = None
        self.list_changed = anyio.Event()
        self.progress = []
        self.log = []

    async def note(self, message):
        if isinstance(message, ToolListChangedNotification):
            self.list_changed.set()

    async def logged(self, params):
        self.log.append(params.data)

    async def connect(self, era, command=None, url=None, token=None, log=None):
        if url:
            headers = {"Authorization": f"Bearer {token}"} if token else {}
            http = await self.exits.enter_async_context(httpx2.AsyncClient(headers=headers, timeout=60))
            server = streamable_http_client(url, http_client=http)
        else:
            server = StdioServerParameters(command=command[0], args=command[1:])
        self.client = await self.exits.enter_async_context(
            Client(
                server,
                mode=era,
                message_handler=self.note,
                logging_callback=self.logged,
                log_level=log,
            )
        )
        modern = self.client.protocol_version >= "2026-07-28"
        if modern:
            self.subscription = await self.exits.enter_async_context(self.client.listen(tools_list_changed=True))
        elif log:
            await self.client.set_logging_level(log)
        return {"protocol": self.client.protocol_version, "server": self.client.server_info.name}

    async def list(self):
        tools = await self.client.list_tools()
        return {"tools": [wire(t) for t in tools.tools]}

    async def call(self, tool, arguments, cancel=False):
        self.progress, self.log = [], []
        with anyio.CancelScope() as scope:

            async def reported(progress, total, message):
                self.progress.append(progress)
                if cancel:
                    scope.cancel()

            try:
                result = await self.client.call_tool(tool, arguments, progress_callback=reported)
                answer = {"result": wire(result)}
            except MCPError as e:
                answer = failure(e)
        if scope.cancelled_caught:
            answer = {"cancelled": True}
        return answer | {"progress": self.progress, "log": self.log}

    async def changed(self):
        if self.subscription:
            await anext(aiter(self.subscription))
        else:
            await self.list_changed.wait()
            self.list_changed = anyio.Event()
        return {"changed": True}

    async def close(self):
        await self.exits.aclose()
        return {"closed": True}


def wire(model):
    return model.model_dump(mode="json", by_alias=True, exclude_none=True)


def failure(e):
    code = e.error.code if isinstance(e, MCPError) else 0
    return {"error": {"code": code, "message": str(e) or type(e).__name__}}


async def main():
    session = Session()
    async for line in anyio.wrap_file(sys.stdin):
        request = json.loads(line)
        step = request.pop("do")
        try:
            answer = await getattr(session, step)(**request)
        except Exception as e:  # whatever a client raises is its answer
            answer = failure(e)
        print(json.dumps(answer), flush=True)
        if step == "close":
            return


anyio.run(main)
