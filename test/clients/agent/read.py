"""An agent on the Python SDK of the protocol: calls the tools of the server, and prints their structured content."""

import asyncio
import json
import os

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client

settings = {name: os.environ[name] for name in ("API", "KEY", "PATH")}
server = StdioServerParameters(command=os.environ["NODE"], args=[os.environ["PROGRAM"]], env=settings)


async def main() -> None:
    async with stdio_client(server) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        tools = (await session.list_tools()).tools
        print(*[tool.name for tool in tools if tool.annotations.read_only_hint])
        for name, given in json.loads(os.environ["CALLS"]):
            answer = await session.call_tool(name, given)
            print(json.dumps([answer.is_error, answer.structured_content, answer.content[0].text]))


asyncio.run(main())
