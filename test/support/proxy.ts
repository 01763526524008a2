/** A TCP proxy in front of a MySQL server, which simulates failures of the server and the network. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { afterAll } from 'vitest'
import { newDatabase, type TestDatabase } from './database.ts'
import { freePort } from './mysql.ts'
import { createKey } from './service.ts'
import { openSql } from './sql.ts'

export type Proxy = Awaited<ReturnType<typeof startProxy>>

interface Fault {
  pattern: RegExp
  when: 'before' | 'after' | 'never' | 'held' | { error: number }
  done: (release: () => void) => void
}

/** The connection of a client, and its connection to the server. */
interface Link {
  client: Socket
  isForgotten: boolean
}

async function startProxy(host: string, port: number, localAddress?: string) {
  const sockets = new Set<Socket>()
  const statements: string[] = []
  const faults = new Set<Fault>()
  const links = new Set<Link>()
  let opened = 0
  let unheard = 0
  let isStalled = false
  let delay = 0
  let change = (statement: string) => statement

  // Half-open, so that a dropped connection does not answer a FIN.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect({ port, host, ...(localAddress && { localAddress }) })
    const link = { client, isForgotten: false }
    links.add(link)
    opened++
    for (const event of ['end', 'close']) client.on(event, () => links.delete(link))
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => link.isForgotten || peer.destroy())
      socket.on('end', () => link.isForgotten || peer.end())
      socket.on('close', () => {
        sockets.delete(socket)
        if (!link.isForgotten) peer.destroy()
      })
      if (isStalled) socket.pause()
    }
    let breaking: Fault | undefined
    let hangs = false
    let held: Buffer[] | undefined
    const pass = (to: Socket, data: Buffer) => {
      if (delay > 0) setTimeout(() => to.write(data), delay)
      else to.write(data)
    }
    const end = ({ done }: Fault) => {
      client.destroy()
      upstream.destroy()
      done(() => {})
    }
    const statementsOf = statementReader()
    client.on('data', (chunk: Buffer) => {
      if (link.isForgotten) unheard++
      if (hangs || link.isForgotten) return
      let passed = chunk
      for (const statement of statementsOf(chunk)) {
        statements.push(statement)
        passed = replaceStatement(passed, statement, change(statement))
        const fault = [...faults].find(({ pattern }) => pattern.test(statement))
        if (!fault) continue
        faults.delete(fault)
        if (fault.when === 'before') return end(fault)
        if (fault.when === 'never') {
          hangs = true
          return fault.done(() => {})
        }
        breaking = fault
      }
      pass(upstream, passed)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (link.isForgotten) return
      if (held) held.push(chunk)
      else if (!breaking) pass(client, chunk)
      else if (breaking.when === 'held') {
        held = [chunk]
        breaking.done(() => {
          client.write(Buffer.concat(held ?? []))
          held = undefined
        })
        breaking = undefined
      } else if (typeof breaking.when === 'object') {
        client.write(errorPacket(breaking.when.error, chunk[HEADER - 1] ?? 1))
        breaking.done(() => {})
        breaking = undefined
      } else end(breaking)
    })
    if (isStalled) for (const socket of [client, upstream]) socket.pause()
  })
  const own = await freePort()
  const listen = async () => {
    server.listen(own, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen()
  const addFault = (pattern: RegExp, when: Fault['when']) => {
    const added = new Promise<() => void>((done, fail) => {
      const fault = { pattern, when, done }
      faults.add(fault)
      const giveUp = () =>
        faults.delete(fault) && fail(new Error(`No statement came that matches ${pattern}`))
      setTimeout(giveUp, 30_000).unref()
    })
    added.catch(() => {}) // a test that has failed does not wait for it
    return added
  }
  return {
    port: own,
    /** The text of every statement so far, from the protocol of MySQL. */
    statements,
    /** Closes all connections and rejects new ones. */
    async cut() {
      server.close()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
    /** Accepts connections again, on the same port. */
    mend: listen,
    /** Forwards no more data in either direction; all connections stay open. */
    stall() {
      isStalled = true
      for (const socket of sockets) socket.pause()
    },
    /** Delays later data by these milliseconds, in both directions. */
    slow(milliseconds: number) {
      delay = milliseconds
    },
    /** Forwards the data that was held back, and later data. */
    flow() {
      isStalled = false
      for (const socket of sockets) socket.resume()
    },
    /**
     * Closes the connection of the next statement that matches: before the server receives it, or
     * after the server has executed it, before the client receives the result. Resolves then.
     */
    breakAt: (pattern: RegExp, when: 'before' | 'after') => addFault(pattern, when).then(() => {}),
    /** Drops the next statement that matches; its connection stays open and hangs. */
    hangAt: (pattern: RegExp) => addFault(pattern, 'never').then(() => {}),
    /** Holds back the result of the next statement that matches; resolves then, to its release. */
    holdAt: (pattern: RegExp) => addFault(pattern, 'held'),
    /**
     * Answers the next statement that matches with the error of this number after the server has
     * executed it, like an SQL proxy that has lost the server. Resolves then.
     */
    failAt: (pattern: RegExp, error: number) => addFault(pattern, { error }).then(() => {}),
    /** Removes the faults whose statement has not come, so that none affects a later test. */
    heal: () => faults.clear(),
    /** Replaces each later statement by the result of this function. */
    rewrite(by: typeof change) {
      change = by
    },
    /**
     * Drops all later data of the open connections in both directions, including their FIN, like a
     * router that has removed them from its table. New connections work.
     */
    forget() {
      for (const link of links) link.isForgotten = true
    },
    /** How often clients have sent something on a connection that `forget` has dropped. */
    get unheard() {
      return unheard
    },
    /** Ends all sessions as MySQL ends those that were idle for too long: with the error 4031. */
    expire() {
      for (const { client } of links) client.end(errorPacket(4031, 0))
    },
    /** The number of connections that clients have opened so far. */
    get opened() {
      return opened
    },
    /** The number of open connections of clients. */
    get clients() {
      return links.size
    },
  }
}

/** A new MySQL database whose URL leads through a proxy. */
export async function newProxiedDatabase(): Promise<TestDatabase & { proxy: Proxy }> {
  const database = await newDatabase()
  const { proxy, url } = await proxied(database.url)
  return { ...database, url, proxy }
}

/**
 * A migrated MySQL database for all tests of a file: `direct`, with `admin` to send it statements, and `url`
 * through a proxy.
 */
export async function sharedProxiedDatabase() {
  const direct = await newDatabase()
  const { proxy, url } = await proxied(direct.url)
  await createKey(direct.url) // migrates
  const admin = await openSql(direct.url)
  afterAll(async () => {
    await admin.close()
    await proxy.cut()
    await direct.remove()
  })
  return { direct, proxy, url, admin }
}

/**
 * Starts a proxy to the server of a DATABASE_URL; returns it with the URL through it. The server sees
 * `localAddress` as the address of its clients.
 */
export async function proxied(
  databaseUrl: string,
  localAddress?: string,
): Promise<{ proxy: Proxy; url: string }> {
  const url = new URL(databaseUrl)
  const proxy = await startProxy(url.hostname, Number(url.port || 3306), localAddress)
  url.host = `127.0.0.1:${proxy.port}`
  return { proxy, url: url.href }
}

const HEADER = 4
const COM_QUERY = 3

/** ERR_Packet: https://mariadb.com/docs/server/reference/clientserver-protocol/4-server-response-packets/err_packet */
function errorPacket(number: number, sequence: number): Buffer {
  const payload = Buffer.from('___#HY000Refused on the way')
  payload[0] = 0xff
  payload.writeUInt16LE(number, 1)
  const header = Buffer.from([0, 0, 0, sequence])
  header.writeUIntLE(payload.length, 0, 3)
  return Buffer.concat([header, payload])
}

/**
 * Returns a function that parses the data of a client, chunk by chunk, and returns the statements
 * that are complete: https://mariadb.com/docs/server/reference/clientserver-protocol
 */
function statementReader(): (chunk: Buffer) => string[] {
  let rest: Buffer = Buffer.alloc(0)
  return (chunk) => {
    rest = Buffer.concat([rest, chunk])
    const found: string[] = []
    while (rest.length > HEADER) {
      const end = HEADER + rest.readUIntLE(0, 3)
      if (rest.length < end) break
      if (rest[HEADER - 1] === 0 && rest[HEADER] === COM_QUERY) {
        // MySQL, unlike MariaDB, has query attributes first: 0 parameters in 1 set.
        const hasCounts = rest[HEADER + 1] === 0 && rest[HEADER + 2] === 1
        found.push(rest.toString('utf8', HEADER + (hasCounts ? 3 : 1), end))
      }
      rest = rest.subarray(end)
    }
    return found
  }
}

/** The packet with another statement. A client waits for each result, so a chunk has one packet. */
function replaceStatement(packet: Buffer, statement: string, other: string): Buffer {
  if (other === statement) return packet
  const start = packet.indexOf(statement)
  const replaced = Buffer.concat([packet.subarray(0, start), Buffer.from(other)])
  replaced.writeUIntLE(replaced.length - HEADER, 0, 3)
  return replaced
}
