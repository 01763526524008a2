/** Raw HTTP/1.1, for requests that fetch does not send. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import type { Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'

export interface RawAnswer {
  status: number
  headers: Headers
  body: string
}

interface RequestParts {
  /** An API key. */
  key?: string
  headers?: readonly string[]
  /** JSON. */
  body?: string
  version?: '1.0' | '1.1'
}

/** The text of a request with this method and target. */
export function requestText(line: string, { key, headers = [], body, version }: RequestParts = {}) {
  return [
    `${line} HTTP/${version ?? '1.1'}`,
    'Host: petstore.example',
    ...(key === undefined ? [] : [`Authorization: Bearer ${key}`]),
    ...headers,
    ...(body === undefined
      ? []
      : ['Content-Type: application/json', `Content-Length: ${Buffer.byteLength(body)}`]),
    '',
    body ?? '',
  ].join('\r\n')
}

/** Opens a keep-alive connection to a server of this machine, which is idle after a response. */
export async function keepAlive(port: number): Promise<Socket> {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(requestText('GET /healthz'))
  const [answer] = await once(socket, 'data')
  if (!String(answer).includes('200 OK')) throw new Error(`The server answered ${answer}`)
  return socket
}

/** Returns the first line that a connection receives, the error that ends it, or an empty text if it only ends. */
export const firstLine = (socket: Socket): Promise<string> =>
  Promise.race([once(socket, 'data'), once(socket, 'close').then(() => [''])]).then(
    ([data]) => String(data).split('\r\n', 1)[0] ?? '',
    (error: Error) => error.message,
  )

/** Sends a request on a connection of its own, which a client that leaves resets by `resetAndDestroy`. */
export async function abortable(port: number, ...request: Parameters<typeof requestText>) {
  const socket = await keepAlive(port)
  await new Promise((resolve) => socket.write(requestText(...request), resolve))
  return socket
}

/** Milliseconds to wait for an unexpected additional response. */
const SURPLUS = 50

/**
 * Sends bytes to the server at `origin` and reads until it closes the connection, `expected` responses
 * have arrived, or `timeout` milliseconds have passed. Several parts are sent one after another. With
 * `inTurn`, each one waits for the response to the part before it. Returns the responses in order,
 * including interim ones (1xx), and whether the server closed the connection.
 */
export async function converse(
  origin: string,
  parts: string | Uint8Array | readonly (string | Uint8Array)[],
  { expected = 1, timeout = 20_000, inTurn = false } = {},
) {
  const { hostname, port } = new URL(origin)
  const socket = connect(Number(port), hostname)
  let text = ''
  let closed = false
  const finished = new Promise<void>((resolve) => {
    socket.on('data', (chunk) => {
      text += chunk.toString('latin1')
      if (finalAnswers(text) >= expected) resolve()
    })
    socket.on('close', resolve).on('end', () => {
      closed = true
      resolve()
    })
    // Some servers close with a reset; the data before it is still checked.
    socket.on('error', () => {
      closed = true
    })
  })
  const list = typeof parts === 'string' || parts instanceof Uint8Array ? [parts] : parts
  for (const [index, part] of list.entries()) {
    while (inTurn && !closed && finalAnswers(text) < index) await setTimeout(1)
    if (!closed) socket.write(part)
    if (!inTurn) await setTimeout(5)
  }
  const abort = new AbortController()
  await Promise.race([finished, setTimeout(timeout, undefined, abort)])
  abort.abort()
  if (!closed) await setTimeout(SURPLUS)
  socket.destroy()
  return { answers: parse(text), closed }
}

/**
 * Sends what are no whole requests, each as `converse` does, to a server of this process that has no other
 * connections. The server times out once it has read all of them: a span of time could end before that.
 */
export async function unfinished(origin: string, requests: readonly (readonly string[])[]) {
  const requested = heard<{ server: Server }>('http.server.request.start')
  await fetch(`${origin}/healthz`, { headers: { connection: 'close' } })
  const { server } = await requested
  const { headersTimeout, requestTimeout } = server
  const conversations: ReturnType<typeof converse>[] = []
  for (const parts of requests) {
    const serving = accepted()
    conversations.push(converse(origin, parts, { expected: 2 }))
    const served = await serving
    while (served.bytesRead < parts.join('').length) await setTimeout(1)
  }
  Object.assign(server, { headersTimeout: 1, requestTimeout: 1 })
  const all = Promise.all(conversations)
  return await all.finally(() => Object.assign(server, { headersTimeout, requestTimeout }))
}

/** Whether a port accepts connections. */
export async function isListening(port: number, host = '127.0.0.1'): Promise<boolean> {
  const socket = connect(port, host)
  const accepts = await once(socket, 'connect').then(
    () => true,
    () => false,
  )
  socket.destroy()
  return accepts
}

/** The next connection that this process accepts. */
export const accepted = async (): Promise<Socket> =>
  (await heard<{ socket: Socket }>('net.server.socket')).socket

/** The next message of this channel: https://nodejs.org/api/diagnostics_channel.html#built-in-channels */
const heard = <Message>(channel: string) =>
  new Promise<Message>((resolve) => {
    const hear = (message: unknown) => {
      unsubscribe(channel, hear)
      resolve(message as Message) // as documented
    }
    subscribe(channel, hear)
  })

/**
 * Sends a request repeatedly without reading, each after the response before it was written, until
 * the kernel accepts no more data: then the server holds a part of the last response. Returns both
 * sides of the connection, and the number of requests.
 */
export async function unreadAnswer(origin: string, request: string) {
  const { hostname, port } = new URL(origin)
  const serving = accepted()
  const socket = connect(Number(port), hostname).on('error', () => {})
  socket.pause()
  const served = await serving
  let sent = 0
  while (served.writableLength === 0) {
    const before = served.bytesWritten
    socket.write(request)
    sent++
    while (served.bytesWritten === before) {
      if (served.destroyed) throw new Error('The server has closed the connection')
      await setTimeout(1)
    }
  }
  return { socket, served, sent }
}

const finalAnswers = (text: string) => parse(text).filter(({ status }) => status >= 200).length

/** The complete responses in a text. Throws if the text is not HTTP. */
function parse(text: string): RawAnswer[] {
  const answers: RawAnswer[] = []
  let rest = text
  while (rest !== '') {
    const end = rest.indexOf('\r\n\r\n')
    if (end === -1) break
    const [first = '', ...lines] = rest.slice(0, end).split('\r\n')
    const status = Number(first.match(/^HTTP\/1\.1 (\d{3}) /)?.[1])
    if (!status) throw new Error(`Not an answer: ${JSON.stringify(rest.slice(0, 80))}`)
    const headers = new Headers(lines.map((line) => line.split(/: ?(.*)/s, 2) as [string, string]))
    const after = rest.slice(end + 4)
    // Without a Content-Length a body ends with the connection, as in HTTP/1.0.
    const length = status < 200 || status === 204 ? '0' : headers.get('content-length')
    const size = Number(length ?? after.length)
    if (after.length < size) break
    answers.push({ status, headers, body: Buffer.from(after.slice(0, size), 'latin1').toString() })
    rest = after.slice(size)
  }
  return answers
}
