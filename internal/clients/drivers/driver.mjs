// The loop that all drivers share. It reads one JSON object a line from standard
// input, {"do": ...}, and answers each with one JSON object a line:
//
//   connect {command: [...]} or {url, token}, era: "legacy" | "auto", log
//                      -> {protocol, server}
//   list               -> {tools}
//   call {tool, arguments, cancel}
//                      -> {result} or {cancelled: true} or {error: {code, message}},
//                         all with {progress, log}
//   changed            -> {changed: true}, once the server has said so
//   close              -> {closed: true}
//
// What a client throws is an answer too: {error: {code, message}}.
import { createInterface } from 'node:readline'

// notes collects what the server says beside results.
export class Notes {
  progress = []
  log = []
  #changed = false
  #waiting = null

  listChanged() {
    this.#changed = true
    this.#waiting?.()
  }

  async changed() {
    if (!this.#changed) await new Promise((resolve) => (this.#waiting = resolve))
    this.#changed = false
  }

  take() {
    const { progress, log } = this
    this.progress = []
    this.log = []
    return { progress, log }
  }
}

function failure(e) {
  return { error: { code: typeof e?.code === 'number' ? e.code : 0, message: String(e?.message ?? e) } }
}

// drive runs a client. open(options, notes) returns {protocol, server, client};
// the client has listTools, callTool(params, options) and close.
export async function drive(open) {
  const notes = new Notes()
  let session

  async function call({ tool, arguments: args, cancel }) {
    const stop = new AbortController()
    const onprogress = (p) => {
      notes.progress.push(p.progress)
      if (cancel) stop.abort('the user changed their mind')
    }
    try {
      const result = await session.call({ name: tool, arguments: args }, { signal: stop.signal, onprogress })
      return { result, ...notes.take() }
    } catch (e) {
      return { ...(stop.signal.aborted ? { cancelled: true } : failure(e)), ...notes.take() }
    }
  }

  const steps = {
    connect: async (o) => {
      session = await open(o, notes)
      return { protocol: session.protocol, server: session.server }
    },
    list: async () => ({ tools: (await session.list()).tools }),
    call,
    changed: async () => {
      await notes.changed()
      return { changed: true }
    },
    close: async () => {
      await session.close()
      return { closed: true }
    },
  }

  for await (const line of createInterface({ input: process.stdin })) {
    const { do: step, ...o } = JSON.parse(line)
    let answer
    try {
      answer = await steps[step](o)
    } catch (e) {
      answer = failure(e)
    }
    process.stdout.write(JSON.stringify(answer) + '\n')
    if (step === 'close') process.exit(0)
  }
}
