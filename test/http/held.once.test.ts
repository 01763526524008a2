/** The memory that clients make the process hold: 32 MiB of answers that are not read and bodies that do not end, and 32 of requests that wait. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import { once } from 'node:events'
import { request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { router } from '../../src/procedure/procedure.ts'
import { create } from '../../src/procedure/write.ts'
import { until } from '../support/instance.ts'
import { described, procedure, resourcesOf } from '../support/procedures.ts'
import { accepted, keepAlive, requestText, unreadAnswer } from '../support/raw.ts'
import { serviceForFile } from '../support/service.ts'

/** More bodies than the limit has room for. */
const CROWD = 600
let met = 0
const all = Promise.withResolvers<bigint>()
/** Resolves once as many calls run as the crowd has. */
function meet(): Promise<bigint> {
  if (++met === CROWD) all.resolve(1n)
  return all.promise
}

let counted = 0
let mayAnswer: Promise<void> | undefined

const served = router({
  large: procedure
    .meta(described('GET', '/large', { example: '' }))
    .input(z.object({ mebibytes: z.int().default(12) })) // more than a third of the limit
    .output(z.string())
    .query(async ({ input }) => {
      await mayAnswer
      return 'x'.repeat(input.mebibytes * 1024 * 1024)
    }),
  count: procedure
    .meta(described('GET', '/count', { example: '' }))
    .input(z.object({}))
    .output(z.string())
    .query(async () => String(++counted)),
  never: procedure
    .meta(described('GET', '/never', { example: '' }))
    .input(z.object({}))
    .output(z.string())
    .query(() => new Promise(() => {})),
  wait: procedure
    .meta(described('POST', '/wait', { takesKey: true, example: '', exampleInput: { text: '' } }))
    .input(z.object({ text: z.string() }).meta({ id: 'Text' }))
    .output(z.string())
    .mutation(({ ctx }) => create(ctx, { output: () => '', insert: meet }, undefined)),
})
const service = await serviceForFile({}, { resources: resourcesOf(served) })

/** A client that never reads its response. */
async function large(query = '', behind = '') {
  const { key } = service
  const text = requestText(`GET /v1/large${query}`, { key }) + behind
  const reader = await unreadAnswer(service.origin, text)
  onTestFinished(() => void reader.socket.destroy())
  return reader
}

test('of unread answers, the connection that is idle for longest is dropped; a read one holds nothing', async () => {
  const read = await large()
  read.socket.resume()
  await until('it is read', () => read.served.writableLength === 0)
  const [first, second] = [await large(), await large()]
  expect([first, second].map(({ served }) => served.destroyed)).toEqual([false, false])
  const third = await large()
  expect([read, first, second, third].map(({ served }) => served.destroyed)).toEqual([
    false,
    true,
    false,
    false,
  ])
})

test.for<[string, (socket: Socket) => unknown]>([
  ['are read in full', (socket) => socket.resume()],
  ['are lost with their connection', (socket) => socket.destroy()],
])('answers that %s no longer count', async ([, finish]) => {
  const first = await large()
  for (let round = 0; round < 3; round++) {
    const { socket, served } = await large()
    finish(socket)
    await until('it is over', () => served.closed || served.writableLength === 0)
  }
  expect(first.served.destroyed).toBe(false)
})

test('requests behind an answer that is not read count beside it', async () => {
  const first = await large('?mebibytes=16')
  const headers = [`x: ${'x'.repeat(15_000)}`]
  const behind = requestText('GET /v1/count', { key: service.key, headers }).repeat(90) // 2 MiB in the process
  const serving = accepted()
  const { promise, resolve } = Promise.withResolvers<void>()
  mayAnswer = promise
  const second = large('?mebibytes=15', behind)
  const served = await serving
  await until('all have arrived', () => served.bytesRead > behind.length)
  resolve()
  await second
  expect(first.served.destroyed).toBe(true)
})

test('requests behind an answer no longer count once their connection is closed', async () => {
  const first = await large('?mebibytes=23')
  const behind = requestText('GET /v1/count', { key: service.key }).repeat(99) // 0.6 MiB in the process
  for (let round = 0; round < 3; round++) {
    const { socket, served } = await large('?mebibytes=8', behind)
    socket.destroy()
    await until('it is closed', () => served.closed)
  }
  expect(first.served.destroyed).toBe(false)
})

test('of incomplete bodies, the connection that is idle for longest is dropped', async () => {
  const half = 'x'.repeat(60_000)
  const lines = ['Content-Type: application/json', 'Content-Length: 60002']
  const head = requestText('POST /trpc/large', { key: service.key, headers: lines })
  const begun: { socket: Socket; served: Socket }[] = []
  const send = async ({ socket, served }: { socket: Socket; served: Socket }, text: string) => {
    const end = served.bytesRead + text.length
    socket.write(text)
    while (served.bytesRead < end) await new Promise(setImmediate)
  }
  for (let count = 0; count < 570; count++) {
    const serving = accepted()
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1').on('error', () => {})
    const connection = { socket, served: await serving }
    onTestFinished(() => void socket.destroy())
    begun.push(connection)
    await send(connection, head + half)
    if (count === 400) await send(begun[0] as typeof connection, 'x')
  }
  const kept = () => begun.filter(({ served }) => !served.destroyed).length * half.length
  await until('it is at most the limit', () => kept() <= 32 * 1024 * 1024)
  expect(kept()).toBeGreaterThan(31 * 1024 * 1024)
  expect(begun.slice(0, 2).map(({ served }) => served.destroyed)).toEqual([false, true])
  const last = begun.at(-1)?.socket as Socket
  last.write('xx')
  expect(`${await once(last, 'data')}`).toMatch(/^HTTP\/1\.1 40\d /)
})

/** The most headers that a request may have, of few characters each beside the lines of `requestText`. */
const many = Array.from({ length: 90 }, (_, at) => `a${at}: b`)

test.each([
  ['behind a call that waits', 50, 'GET /v1/never', 50],
  ['whose bodies do not begin', 3_500, 'POST /trpc/large', 1],
])('requests with many headers %s hold what their heads take', async (_, crowd, line, each) => {
  const first = await large()
  const body = line.startsWith('POST')
    ? ['Content-Length: 9', 'Content-Type: application/json']
    : []
  const text = requestText(line, { key: service.key, headers: [...many, ...body] })
  for (let count = 0; count < crowd && !first.served.destroyed; count++) {
    const serving = accepted()
    const socket = connect(Number(new URL(service.origin).port), '127.0.0.1').on('error', () => {})
    onTestFinished(() => void socket.destroy())
    const served = await serving
    socket.write(text.repeat(each))
    while (served.bytesRead < text.length * each && !served.destroyed) {
      await new Promise(setImmediate)
    }
  }
  await until(
    'the connection that has not changed for longest is dropped',
    () => first.served.destroyed,
  )
})

test('of batches that arrive together, the first are answered before the last run', async () => {
  const call = Array.from({ length: 20 }, (_, at) => [at, '[{}]'])
  const input = encodeURIComponent(JSON.stringify(Object.fromEntries(call)))
  const text = requestText(`GET /trpc/${Array(20).fill('count')}?batch=1&input=${input}`, {
    key: service.key,
  })
  const before = Promise.withResolvers<number>()
  const onFinish = () => before.resolve(counted)
  const port = Number(new URL(service.origin).port)
  const sockets = await Promise.all(
    Array.from({ length: 20 }, async () => {
      const socket = await keepAlive(port)
      onTestFinished(() => void socket.destroy())
      return socket
    }),
  )
  subscribe('http.server.response.finish', onFinish)
  onTestFinished(() => void unsubscribe('http.server.response.finish', onFinish))
  for (const socket of sockets) socket.write(text)
  expect(await before.promise).toBeLessThan(200)
  await until('all are answered', () => counted === 400)
})

/** Sends a call that waits until the crowd is there, by a request that many bytes belong to. */
async function wait(bytes: number, more: string[] = [], isAsked = true): Promise<number> {
  const headers = {
    authorization: `Bearer ${service.key}`,
    'content-type': 'application/json',
    ...(isAsked && { expect: '100-continue' }),
    ...Object.fromEntries(more.map((header) => header.split(': '))),
  }
  const agent = isAsked ? undefined : false // a new connection
  const sent = request(`${service.origin}/v1/wait`, { method: 'POST', headers, agent })
  if (isAsked) await once(sent, 'continue') // the server reads what follows
  const [answer] = await once(sent.end(JSON.stringify({ text: 'x'.repeat(bytes) })), 'response')
  answer.resume()
  return answer.statusCode
}

test('of calls that wait, those whose bodies exceed the limit are 503, and usual ones wait on', async () => {
  onTestFinished(() => all.resolve(1n)) // the calls of a failed test would delay the stop
  const statuses: number[] = []
  const send = (bytes: number, more?: string[]) =>
    wait(bytes, more).then((status) => void statuses.push(status))
  const large = Array.from({ length: CROWD }, () => send(60_000))
  await until('some are refused', () => met + statuses.length === CROWD)
  expect(new Set(statuses)).toEqual(new Set([503]))
  expect(met * 60_000).toBeLessThanOrEqual(32 * 1024 * 1024)
  expect(met * 60_000).toBeGreaterThan(31 * 1024 * 1024)
  // A head of many headers counts as what it takes, which is more than its characters.
  const refused = statuses.length
  const heads = Array.from({ length: 12 }, () => send(1, many))
  await until('all are there', () => met + statuses.length === CROWD + heads.length)
  expect(statuses.length).toBeGreaterThan(refused)
  const usual = Array.from({ length: CROWD - met }, () => send(1_000))
  await Promise.all([...large, ...heads, ...usual])
  expect(statuses.filter((status) => status === 200)).toHaveLength(CROWD)
  expect(await Promise.all(Array.from({ length: 500 }, () => wait(60_000))), 'again').toEqual(
    Array(500).fill(200),
  )
})

test('a request whose answer is not read waits no longer', async () => {
  const unsent: (() => void)[] = []
  const onSocket = (message: unknown) => {
    const { socket } = message as { socket: Socket }
    const write = socket._write.bind(socket)
    // As where the kernel takes no more for a client that reads nothing.
    socket._write = (...args) => void unsent.push(() => write(...args))
    Object.assign(socket, { _writev: null })
  }
  subscribe('net.server.socket', onSocket)
  onTestFinished(() => void unsubscribe('net.server.socket', onSocket))
  const before = met
  const answers = Array.from({ length: CROWD }, () => wait(60_000, [], false))
  await until('all are answered', () => unsent.length >= CROWD)
  expect(met - before).toBe(CROWD)
  for (const send of unsent) send()
  expect(await Promise.all(answers)).toEqual(Array(CROWD).fill(200))
})
