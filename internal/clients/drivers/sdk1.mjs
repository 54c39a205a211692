// Driver of the TypeScript SDK 1.x, which speaks 2025-11-25:
//   node sdk1.mjs FOLDER   (where node_modules is)
import { createRequire } from 'node:module'
import { drive } from './driver.mjs'

const require = createRequire(`${process.argv[2]}/`)
const sdk = (name) => require(`@modelcontextprotocol/sdk/${name}.js`)
const { Client } = sdk('client/index')
const { StdioClientTransport } = sdk('client/stdio')
const { StreamableHTTPClientTransport } = sdk('client/streamableHttp')
const types = sdk('types')

await drive(async ({ command, url, token, log }, notes) => {
  const client = new Client({ name: 'sdk1', version: '1.0.0' })
  client.setNotificationHandler(types.ToolListChangedNotificationSchema, () => notes.listChanged())
  client.setNotificationHandler(types.LoggingMessageNotificationSchema, (n) => notes.log.push(n.params.data))
  const transport = url
    ? new StreamableHTTPClientTransport(new URL(url), {
        requestInit: token ? { headers: { Authorization: `Bearer ${token}` } } : {},
      })
    : new StdioClientTransport({ command: command[0], args: command.slice(1), stderr: 'inherit' })
  let protocol
  transport.setProtocolVersion = ((set) => (v) => {
    protocol = v
    set?.call(transport, v)
  })(transport.setProtocolVersion)
  await client.connect(transport)
  if (log) await client.setLoggingLevel(log)
  return {
    protocol,
    server: client.getServerVersion()?.name,
    list: () => client.listTools(),
    call: (params, options) => client.callTool(params, undefined, options),
    close: () => client.close(),
  }
})
