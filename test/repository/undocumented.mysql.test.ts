/**
 * What the service uses of Node and of libraries without a promise of theirs: the table of CONTRIBUTING, row by
 * row, as the code uses it. Here an upgrade that drops one fails, and the row says what to do.
 */
import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { constants, openSync, readSync } from 'node:fs'
import type { RequestListener, Server } from 'node:http'
import { type AddressInfo, connect, Server as NetServer, type Socket } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { type AnyTRPCRouter, initTRPC, lazy } from '@trpc/server'
import { fetchRequestHandler } from '@trpc/server/adapters/fetch'
import {
  DummyDriver,
  Kysely,
  MysqlAdapter,
  MysqlIntrospector,
  MysqlQueryCompiler,
  sql,
} from 'kysely'
import { createConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2'
import { pino } from 'pino'
import { generateOpenApiDocument } from 'trpc-to-openapi'
import { expect, inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { SERVICE_FLAGS } from '../../bench/service.ts'
import { routerOf } from '../../src/surface/trpc/functions.ts'
import { newDatabase, newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { openTerminal } from '../support/terminal.ts'

interface Tables {
  pets: { id: unknown }
}

const kysely = new Kysely<Tables>({
  dialect: {
    createAdapter: () => new MysqlAdapter(),
    createDriver: () => new DummyDriver(),
    createIntrospector: (db) => new MysqlIntrospector(db),
    createQueryCompiler: () => new MysqlQueryCompiler(),
  },
})

const trpc = initTRPC.meta<{ of: string }>().create()
const [input, output] = [z.string(), z.string()]
const router = trpc.router({
  greet: trpc.procedure
    .meta({ of: 'greet' })
    .input(input)
    .output(output)
    .query((given) => `${given.input}!`),
})

/** Runs a program of Node, and returns what it prints. */
const printed = (program: string, ...flags: string[]) =>
  execFileSync(process.execPath, [...flags, '--input-type=module', '-e', program], {
    encoding: 'utf8',
  })

/** Starts an HTTP server, and opens a connection to it. */
async function connected(serve: RequestListener, settings: object = {}) {
  const server: Server = Object.assign(
    process.getBuiltinModule('node:http').createServer(serve),
    settings,
  ).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close().closeAllConnections())
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const client = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  return { server, client }
}

const REQUEST = 'GET / HTTP/1.1\r\nHost: a\r\n\r\n'

/** Opens a session with the server of these tests, as the service does. */
async function session() {
  const database = await newDatabase()
  const { hostname, port } = new URL(inject('mysqlUrl'))
  const socket = connect({ host: hostname, port: Number(port) })
  const connection = createConnection({ uri: database.url, stream: socket, connectTimeout: 0 })
  connection.on('error', () => {}) // of its end
  onTestFinished(async () => {
    socket.destroy()
    await database.remove()
  })
  return { database, socket, connection, query: connection.promise() }
}

const checks: Record<string, () => void | Promise<void>> = {
  async 'tRPC, `_def` of a procedure'() {
    const { _def } = router._def.procedures.greet
    expect(_def).toMatchObject({ type: 'query', meta: { of: 'greet' }, inputs: [input], output })
    interface Definition {
      middlewares: { _type?: string }[]
      resolver(options: object): Promise<unknown>
    }
    const { middlewares, resolver } = _def as unknown as Definition
    // The last one calls the resolver, and is not among the steps of a chain.
    expect(middlewares.map(({ _type }) => _type)).toEqual(['input', 'output', undefined])
    const pass = ({ next }: { next(): unknown }) => next() as never
    const more = trpc.procedure
      .use(pass)
      .input(input)
      .errors(() => undefined)
    const { _def: of } = more.query(() => '') as unknown as { _def: Definition }
    expect(of.middlewares[0]).toBe(pass)
    expect(of.middlewares.map(({ _type }) => _type)).toEqual([
      ...[undefined, 'input', 'errors', undefined],
    ])
    expect(await resolver({ ctx: {}, input: 'Rex' })).toBe('Rex!')
  },

  async 'tRPC, `_def` of a router'() {
    const call = async (context: unknown) => `called with ${context}`
    const response = await fetchRequestHandler({
      endpoint: '',
      router: routerOf(router, { 0: { type: 'query', call }, 1: { type: 'query', call } }),
      req: new Request('http://localhost/0,1?batch=1'),
      createContext: () => 'context' as never,
    })
    const result = { result: { data: 'called with context' } }
    expect(await response.json()).toEqual([result, result])
    const { _def } = trpc.router({ inner: lazy(async () => router) })
    expect(Object.keys(_def.lazy)).toEqual(['inner'])
    expect(_def._config.errorFormatter).toBe(router._def._config.errorFormatter)
  },

  'trpc-to-openapi, `_def` of a router'() {
    const meta = { openapi: { method: 'GET', path: '/greet' } }
    const greet = { _def: { type: 'query', inputs: [z.object({ name: input })], output, meta } }
    const read = { _def: { procedures: { greet } } } as unknown as AnyTRPCRouter
    const options = { title: '', version: '', baseUrl: 'http://localhost' }
    const { paths } = generateOpenApiDocument(read, options)
    expect(paths?.['/greet']?.get?.parameters).toMatchObject([{ name: 'name' }])
  },

  'zod, `_zod.def`'() {
    const of = (schema: z.ZodType) => (schema as unknown as z.core.$ZodTypes)._zod.def
    for (const schema of [
      input.optional(),
      input.default(''),
      input.prefault(''),
      input.nullable(),
    ]) {
      expect(of(schema)).toMatchObject({ innerType: input })
    }
    expect(of(input.pipe(output))).toMatchObject({ type: 'pipe', in: input })
    expect(of(z.union([input, output]))).toMatchObject({ type: 'union', options: [input, output] })
    expect(of(input.array())).toMatchObject({ type: 'array', element: input })
    expect(of(z.object({ input }))).toMatchObject({ type: 'object', shape: { input } })
  },

  async 'Node, `httpAllowHalfOpen`'() {
    const serve: RequestListener = (req, res) => void req.socket.on('end', () => res.end('answer'))
    const { client } = await connected(serve, { httpAllowHalfOpen: true })
    client.end(REQUEST)
    expect(await text(client)).toContain('answer')
  },

  async 'Node, `destroySoon`'() {
    const { promise, resolve } = Promise.withResolvers<void>()
    const { server, client } = await connected((_, res) =>
      res.setHeader('Connection', 'close').end('answer'),
    )
    server.on('connection', (socket: Socket) => Object.assign(socket, { destroySoon: resolve }))
    client.write(REQUEST)
    await promise
    const [answer] = await once(client, 'data')
    expect(`${answer}`).toContain('answer')
    expect(client.readableEnded).toBe(false)
  },

  async 'Node, `close` of `node:net`'() {
    const { server, client } = await connected((_, res) => res.end('answer'))
    client.write(REQUEST)
    await once(client, 'data')
    NetServer.prototype.close.call(server)
    expect(server.listening).toBe(false)
    client.write(REQUEST)
    const [answer] = await once(client, 'data')
    expect(`${answer}`).toContain('answer')
    client.destroy()
    await once(server, 'close')
  },

  'Node, `getBuiltinModule`'() {
    const loads = 'console.log(process.moduleLoadList.some((name) => name.endsWith("/undici")))'
    expect(printed(`process.getBuiltinModule('node:http'); ${loads}`)).toBe('false\n')
    expect(printed(`await import('node:http'); ${loads}`), 'the reason').toBe('true\n')
  },

  'Node, `executionAsyncResource`'() {
    const program = `import { executionAsyncResource } from 'node:async_hooks'
      process.nextTick(() => console.log('callback' in executionAsyncResource()))`
    expect(printed(program)).toBe('true\n')
  },

  async 'Node, `_handle.setBlocking`'() {
    const terminal = await openTerminal({ onTestFinished })
    const [command = '', ...rest] = [...terminal.starter(1), process.execPath, '-e']
    const program = 'console.error(typeof process.stdout._handle.setBlocking)'
    expect(spawnSync(command, [...rest, program], { encoding: 'utf8' }).stderr).toBe('function\n')
  },

  'Node, flags of V8'() {
    const program = `gc({ type: 'major', flavor: 'last-resort' }); console.log('fine')`
    expect(printed(program, ...SERVICE_FLAGS)).toBe('fine\n')
  },

  'Kysely, objects among the parameters'() {
    class Placeholder {}
    const placeholder = new Placeholder()
    const { parameters } = kysely
      .selectFrom('pets')
      .select('id')
      .where('id', 'in', [placeholder, 7n])
      .compile()
    expect(parameters[0]).toBe(placeholder)
    const inserted = kysely.insertInto('pets').values({ id: placeholder }).compile().parameters
    expect(inserted[0]).toBe(placeholder)
  },

  'Kysely, an alias with a hint'() {
    const table = sql.table('pets').as(sql`${sql.id('pets')} force index (${sql.id('of_pets')})`)
    const query = kysely.selectFrom(table as unknown as 'pets').select('pets.id')
    expect(query.compile().sql).toBe(
      'select `pets`.`id` from `pets` as `pets` force index (`of_pets`)',
    )
  },

  async 'mysql2, `stream`'() {
    const { socket, query } = await session()
    const [[row]] = await query.query<RowDataPacket[]>('select 7 as seven')
    expect(row?.seven).toBe(7)
    // It is the socket of the statements: without it, the connection ends.
    socket.destroy()
    await expect(query.query('select 1')).rejects.toThrow()
  },

  async 'mysql2, `threadId` and `config`'() {
    const { database, connection, query } = await session()
    const [[row]] = await query.query<RowDataPacket[]>('select connection_id() as id')
    expect(connection.threadId).toBe(row?.id)
    expect(connection.config.database).toBe(new URL(database.url).pathname.slice(1))
  },

  async 'mysql2, `serverStatus`'() {
    const { query } = await session()
    const statusAfter = async (statement: string) =>
      (await query.query<ResultSetHeader>(statement))[0].serverStatus & 1
    expect(await statusAfter('begin')).toBe(1)
    expect(await statusAfter('rollback')).toBe(0)
  },

  'SonicBoom, a full pipe'() {
    const pipe = path.join(newFolder(), 'pipe')
    execFileSync('mkfifo', [pipe])
    const fd = openSync(pipe, constants.O_RDWR | constants.O_NONBLOCK)
    let asked = 0
    const destination = pino.destination({
      dest: fd,
      sync: true,
      maxLength: 100_000,
      retryEAGAIN: () => ++asked < 0,
    })
    const dropped: string[] = []
    destination.on('drop', (entries: string) => dropped.push(entries)).on('error', () => {})
    destination.write('x'.repeat(70_000))
    expect([asked, dropped], 'it does not wait, and keeps the rest').toEqual([1, []])
    destination.write('y'.repeat(99_000))
    expect(dropped).toEqual(['y'.repeat(99_000)])
    const read = () => readSync(fd, Buffer.alloc(200_000))
    const first = read()
    destination.write('') // repeats the write
    expect(first + read()).toBe(70_000)
    destination.destroy()
  },
}

const [, section = ''] = readRoot('CONTRIBUTING.md').split('\n## What others do not promise\n')
const [table = ''] = section.split('\n## ')
const rows = [...table.matchAll(/^\| ([^|]+), ([^|]+) \|/gm)].slice(1)

test('CONTRIBUTING has a row for each', () => {
  expect(rows.map(([, of, what]) => `${of}, ${what}`)).toEqual(Object.keys(checks))
})

test.each(Object.entries(checks))('%s', async (_, check) => await check())
