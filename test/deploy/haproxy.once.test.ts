/** HAProxy with deploy/haproxy.cfg in front of two instances; test/cluster/ has its database clusters. */
import { spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, readFileSync } from 'node:fs'
import type { IncomingMessage } from 'node:http'
import { get } from 'node:https'
import { connect, createServer } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { describe, expect, onTestFinished, test } from 'vitest'
import { type Haproxy, startHaproxy } from '../cluster/haproxy.ts'
import { newFolder } from '../support/database.ts'
import { readRoot } from '../support/image.ts'
import { type Instance, startInstance, until } from '../support/instance.ts'
import { freePort } from '../support/mysql.ts'
import { requestText } from '../support/raw.ts'
import { keyedFetch } from '../support/rest.ts'

const env = { PATH: `${process.env.PATH}:/usr/sbin` }
const isInstalled =
  process.platform === 'linux' && spawnSync('haproxy', ['-v'], { env }).status === 0

/** Starts HAProxy in front of instances on these ports. No node of its database cluster runs. */
async function start(
  kind: 'galera' | 'group-replication',
  apps: readonly number[],
  certificate?: string,
): Promise<Haproxy> {
  const nodes = [{ port: await freePort() }, { port: await freePort() }, { port: await freePort() }]
  const haproxy = await startHaproxy(apps, { kind, nodes }, certificate)
  onTestFinished(haproxy.stop)
  return haproxy
}

/** Starts an instance as the configuration wants it. */
async function startApp(port: number): Promise<Instance> {
  const instance = await startInstance({ PORT: String(port), TRUST_PROXY: '1' })
  onTestFinished(async () => void (await instance.stop('SIGKILL')))
  return instance
}

/**
 * Starts an instance that looks ready, and closes the connection of each other request without an answer.
 * Returns these requests.
 */
async function startLosing(port: number): Promise<string[]> {
  const lost: string[] = []
  const server = createServer((socket) => {
    socket
      .on('error', () => {})
      .once('data', (chunk) => {
        if (/^GET \/readyz /.test(String(chunk))) {
          socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n')
        } else {
          lost.push(String(chunk))
          socket.destroy()
        }
      })
  }).listen(port, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return lost
}

const isUp = (haproxy: Haproxy, app: string) =>
  until(`${app} is up`, () => haproxy.log.includes(`petstore/${app} is UP`))

describe.runIf(isInstalled)('HAProxy', () => {
  test('returns 503 in the form of the service until an instance is ready, and tells it the client', async () => {
    const port = await freePort()
    const haproxy = await start('group-replication', [port, await freePort()])
    const answer = await fetch(`${haproxy.origin}/v1/pets`)
    const [head = '', body] = readRoot('deploy/503.http').split(/\r?\n\r?\n/)
    expect([answer.status, await answer.text()]).toEqual([503, body])
    for (const line of head.split(/\r?\n/).slice(1)) {
      const [name = '', value] = line.split(': ')
      expect(answer.headers.get(name)).toBe(value)
    }
    const { program } = await startApp(port)
    await isUp(haproxy, 'app1')
    const socket = connect({
      port: Number(new URL(haproxy.origin).port),
      host: '127.0.0.1',
      localAddress: '127.0.0.2',
    })
    // What a client makes up is not believed, whether it is sent once or twice.
    const madeUp = ['X-Forwarded-For: 192.0.2.1', 'X-Forwarded-For: 192.0.2.2, 192.0.2.3']
    const headers = [...madeUp, 'X-Request-Id: by-proxy', 'Connection: close']
    socket.write(requestText('GET /v1/pets', { headers }))
    expect(await text(socket)).toMatch(/^HTTP\/1\.1 401 /)
    expect(JSON.parse(await program.logged(/"by-proxy"/))).toMatchObject({ address: '127.0.0.2' })
    // The service itself decides about a head of the greatest size that it takes, and of a greater one.
    for (const [size, status] of [
      [16_000, 401],
      [17_000, 431],
    ] as const) {
      const answer = await fetch(`${haproxy.origin}/v1/pets?x=${'a'.repeat(size)}`)
      expect([answer.status, await answer.json()]).toEqual([
        status,
        expect.objectContaining({ status }),
      ])
    }
  })

  test('ends TLS, redirects HTTP to it, and has browsers use it for this host alone', async () => {
    const folder = newFolder()
    const [certificate, key] = [path.join(folder, 'petstore.pem'), path.join(folder, 'key.pem')]
    const made = spawnSync(
      'openssl',
      // biome-ignore format: one command
      ['req', '-x509', '-newkey', 'rsa:2048', '-noenc', '-subj', '/CN=petstore.example', '-keyout', key, '-out', certificate],
    )
    expect(made.status, String(made.stderr)).toBe(0)
    appendFileSync(certificate, readFileSync(key))
    const haproxy = await start('galera', [await freePort(), await freePort()], certificate)
    const { port } = new URL(haproxy.origin)
    for (const host of ['127.0.0.1', '[::1]']) {
      const plain = await fetch(`http://${host}:${port}/v1/pets?limit=1`, { redirect: 'manual' })
      expect([plain.status, plain.headers.get('strict-transport-security')]).toEqual([308, null])
      expect(plain.headers.get('location')).toMatch(/^https:\/\/.+\/v1\/pets\?limit=1$/)
      const url = `https://${host}:${haproxy.tlsPort}/v1/pets`
      const [answer] = (await once(get(url, { rejectUnauthorized: false }), 'response')) as [
        IncomingMessage,
      ]
      answer.resume()
      expect(answer.statusCode, 'no instance is ready').toBe(503)
      expect(answer.headers['strict-transport-security']).toBe('max-age=31536000')
    }
  })

  test('repeats a request whose connection is lost at the other instance, where that is safe', async () => {
    const [port, losingPort] = [await freePort(), await freePort()]
    const haproxy = await start('galera', [port, losingPort])
    const lost = await startLosing(losingPort)
    const { key } = await startApp(port)
    await isUp(haproxy, 'app1')
    await isUp(haproxy, 'app2')
    // On a connection with earlier requests, HAProxy may close it without a response.
    const connection = 'close'
    const list = () => keyedFetch(haproxy.origin, key)('/v1/pets', { headers: { connection } })
    const create = (name: string, headers = {}) =>
      keyedFetch(haproxy.origin, key)('/v1/pets', {
        method: 'POST',
        headers: { connection, ...headers },
        body: JSON.stringify({ name, categoryId: 1 }),
      })
    // The instances get the requests in turn.
    for (let request = 0; request < 4; request++) expect((await list()).status).toBe(200)
    expect(lost.length).toBeGreaterThan(0)
    const lostReads = lost.length
    for (let request = 0; request < 4; request++) {
      const headers = { 'idempotency-key': `"${crypto.randomUUID()}"` }
      expect((await create('Rex', headers)).status).toBe(201)
    }
    expect(lost.length).toBeGreaterThan(lostReads)
    const before = lost.length
    const statuses: number[] = []
    for (let request = 0; request < 4; request++) {
      const answer = await create('Bea')
      statuses.push(answer.status)
      if (answer.status !== 201) {
        expect(await answer.json()).toMatchObject({ code: 'SERVICE_UNAVAILABLE', status: 503 })
      }
    }
    const failed = lost.length - before
    expect(failed).toBeGreaterThan(0)
    expect(statuses.filter((status) => status === 503)).toHaveLength(failed)
    expect(new Set(statuses)).toEqual(new Set([201, 503]))
    const beforePatches = lost.length
    const patch = () =>
      keyedFetch(haproxy.origin, key)('/v1/pets/1', { method: 'PATCH', headers: { connection } })
    const patched = [(await patch()).status, (await patch()).status].sort()
    expect([patched, lost.length - beforePatches]).toEqual([[405, 503], 1])
    const pets = (await (await list()).json()) as { name: string }[]
    const count = (name: string) => pets.filter((pet) => pet.name === name).length
    expect([count('Rex'), count('Bea')]).toEqual([4, 4 - failed])
  })
})
