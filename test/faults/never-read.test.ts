/** Many clients that never read: the memory of the process is bounded, other clients are served. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { setTimeout } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { instanceForFile } from '../support/instance.ts'
import { residentMemory } from '../support/process.ts'

const CONNECTIONS = 2_000
const REQUESTS = 32

/** In MB: the heap of 256, and as much again less a reserve, for a container of 512. */
const MAX_MEMORY = 420

const NODE_OPTIONS = '--max-old-space-size=256' // as in a container of 512 MB
const { program: server, key, fetch: ask } = await instanceForFile({ NODE_OPTIONS })
const body = JSON.stringify({ name: '猫'.repeat(255), categoryId: 3 })
for (let made = 0; made < 100; made++) await ask('/v1/pets', { method: 'POST', body })

/** Resident memory of the server, in MB. */
const memory = () => residentMemory(server.child.pid)

/** Checks that a new client has a list. How soon, the benchmark measures. */
async function expectServed(): Promise<void> {
  const headers = { connection: 'close' }
  const answer = await ask('/v1/pets?limit=1', { headers })
  expect(answer.status).toBe(200)
  await answer.text()
}

async function silentReader(text: string): Promise<Socket> {
  const socket = connect(server.port, '127.0.0.1')
  socket.on('error', () => {}).pause()
  await once(socket, 'connect').catch(() => {})
  socket.write(text)
  return socket
}

test.for([
  ['the docs page', '/docs/', true],
  ['the document', '/v1/openapi.json', true],
  ['a rejected call', '/v1/pets', false],
  ['lists of 100', '/v1/pets?limit=100', true],
  ['a batch of lists', '/trpc/listPets,listPets,listPets,listPets,listPets?batch=1&input={}', true],
] as const)(
  '%s, requested by 2,000 clients that never read',
  { timeout: 120_000 },
  async ([, path, isKeyed]) => {
    const authorization = isKeyed ? `Authorization: Bearer ${key}\r\n` : ''
    const text = `GET ${path} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n`.repeat(REQUESTS)
    const sockets: Socket[] = []
    while (sockets.length < CONNECTIONS) {
      const batch = Array.from({ length: 100 }, () => silentReader(text))
      sockets.push(...(await Promise.all(batch)))
      await expectServed()
    }
    for (let round = 0; round < 20; round++) {
      await expectServed()
      await setTimeout(100)
    }
    const held = memory()
    console.log(path, { held: Math.round(held) })
    for (const socket of sockets) socket.destroy()
    // V8 and malloc keep what they once had, so each crowd must do with what the one before it left.
    expect(held).toBeLessThan(MAX_MEMORY)
  },
)
