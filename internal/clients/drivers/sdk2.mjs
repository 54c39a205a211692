// Driver of the TypeScript SDK 2.x, which speaks 2025-11-25 (era legacy) and
// 2026-07-28 (era auto):
//   node sdk2.mjs FOLDER   (where node_modules is)
import { createRequire } from 'node:module'
import { drive } from './driver.mjs'

const require = createRequire(`${process.argv[2]}/`)
const { Client, StreamableHTTPClientTransport } = require('@modelcontextprotocol/client')
const { StdioClientTransport } = require('@modelcontextprotocol/client/stdio')

// logLevel is the key in _meta by which a request of 2026-07-28 asks for log
// messages.
const logLevel = 'io.modelcontextprotocol/logLevel'

await drive(async ({ command, url, token, era, log }, notes) => {
  const client = new Client(
    { name: 'sdk2', version: '1.0.0' },
    {
      versionNegotiation: { mode: era },
      listChanged: { tools: { autoRefresh: false, debounceMs: 0, onChanged: () => notes.listChanged() } },
    },
  )
  client.setNotificationHandler('notifications/message', (n) => void notes.log.push(n.params.data))
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), {
        requestInit: token ? { headers: { Authorization: `Bearer ${token}` } } : {},
      })
    : new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' })
  await client.connect(transport)
  const protocol = client.getNegotiatedProtocolVersion()
  const modern = client.getProtocolEra() === 'modern'
  if (log && !modern) await client.setLoggingLevel(log)
  return {
    protocol,
    server: client.getServerVersion()?.name,
    list: () => client.listTools(),
    call: (params, options) =>
      client.callTool(log && modern ? { ...params, _meta: { [logLevel]: log } } : params, options),
    close: () => client.close(),
  }
})
