/** A client of the language server of TypeScript, with the requests of an editor. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import path from 'node:path'
import { pathToFileURL } from 'node:url'
import { bin } from '../support/client-package.ts'

export interface LanguageServer {
  /** The hover text at the position of `marker` in a file of the project. */
  hover(file: string, marker: string): Promise<string>
  /** The names in a file that are struck through. */
  struckThrough(file: string): Promise<string[]>
  stop(): Promise<void>
}

interface Position {
  line: number
  character: number
}

/** The used fields of a response: https://microsoft.github.io/language-server-protocol */
interface Answer {
  contents?: { value: string }
  items?: { tags?: number[]; range: { start: Position; end: Position } }[]
}

const DEPRECATED = 2

/** Starts the language server of TypeScript in a folder. */
export async function startLanguageServer(folder: string): Promise<LanguageServer> {
  const child = spawn(bin('tsc'), ['--lsp', '--stdio'], {
    cwd: folder,
    stdio: ['pipe', 'pipe', 'ignore'],
  })
  const waiting = new Map<number, (answer: Answer) => void>()
  let received = Buffer.alloc(0)
  let count = 0

  const send = (message: object) => {
    const text = JSON.stringify({ jsonrpc: '2.0', ...message })
    child.stdin.write(`Content-Length: ${Buffer.byteLength(text)}\r\n\r\n${text}`)
  }
  const ask = (method: string, params: object) =>
    new Promise<Answer>((resolve) => {
      count += 1
      waiting.set(count, resolve)
      send({ id: count, method, params })
    })
  const tell = (method: string, params: object) => send({ method, params })

  child.stdout.on('data', (chunk: Buffer) => {
    received = Buffer.concat([received, chunk])
    for (;;) {
      const end = received.indexOf('\r\n\r\n')
      const length = Number(/Content-Length: (\d+)/.exec(received.toString('latin1', 0, end))?.[1])
      if (end < 0 || received.length < end + 4 + length) return
      const message = JSON.parse(received.toString('utf8', end + 4, end + 4 + length))
      received = received.subarray(end + 4 + length)
      // Requests of the server to its editor receive an empty response.
      if (message.method !== undefined && message.id !== undefined) {
        const items = message.params?.items as unknown[] | undefined
        send({ id: message.id, result: items?.map(() => null) ?? null })
      } else if (message.id !== undefined) {
        waiting.get(message.id)?.(message.result ?? {})
        waiting.delete(message.id)
      }
    }
  })

  const uri = (file: string) => pathToFileURL(path.join(folder, file)).href
  const open = (file: string) => {
    const text = readFileSync(path.join(folder, file), 'utf8')
    const textDocument = { uri: uri(file), languageId: 'typescript', version: 1, text }
    tell('textDocument/didOpen', { textDocument })
    return text.split('\n')
  }
  const opened = new Map<string, string[]>()
  const linesOf = (file: string) => {
    const lines = opened.get(file) ?? open(file)
    opened.set(file, lines)
    return lines
  }

  await ask('initialize', {
    processId: process.pid,
    rootUri: pathToFileURL(folder).href,
    capabilities: {
      textDocument: {
        hover: { contentFormat: ['markdown'] },
        diagnostic: { tagSupport: { valueSet: [DEPRECATED] } },
        publishDiagnostics: { tagSupport: { valueSet: [DEPRECATED] } },
      },
    },
  })
  tell('initialized', {})

  return {
    async hover(file, marker) {
      const lines = linesOf(file)
      const line = lines.findIndex((text) => text.includes(marker))
      if (line < 0) throw new Error(`There is no ${marker} in ${file}`)
      const character = `${lines[line]}`.indexOf(marker) + marker.search(/\w+\W*$/)
      const position = { line, character }
      const answer = await ask('textDocument/hover', { textDocument: { uri: uri(file) }, position })
      return answer.contents?.value ?? ''
    },
    async struckThrough(file) {
      const lines = linesOf(file)
      const { items = [] } = await ask('textDocument/diagnostic', {
        textDocument: { uri: uri(file) },
      })
      return items
        .filter(({ tags }) => tags?.includes(DEPRECATED))
        .map(({ range: { start, end } }) =>
          `${lines[start.line]}`.slice(start.character, end.character),
        )
    },
    async stop() {
      const exited = once(child, 'exit')
      child.kill()
      await exited
    },
  }
}
