/** A TCP proxy that tests cut, stall or break: what a server that went away looks like to its clients. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from './mysql.ts'

export interface Proxy {
  port: number
  /** The text of every statement that came by so far, in the protocol of MySQL. */
  statements: string[]
  /** Ends all connections and refuses new ones. */
  cut(): Promise<void>
  /** Lets connections through again, on the same port. */
  mend(): Promise<void>
  /** Lets nothing through any more, in either direction, while all connections stay open. */
  stall(): void
  /** Lets through what was held back, and what follows. */
  flow(): void
  /**
   * Ends the connection that brings the next statement like this: before the server has seen it, or
   * after the server has carried it out, but before the client hears of it. Resolves when it did.
   */
  breakAt(pattern: RegExp, when: 'before' | 'after'): Promise<void>
  /** Keeps the next statement like this from the server; its connection stays open, and hangs. */
  hangAt(pattern: RegExp): Promise<void>
  /** Brings the server, from now on, what this makes of each statement. */
  rewrite(change: (statement: string) => string): void
  /**
   * Answers the next statement like this with the error of this number after the server has carried
   * it out, as a proxy of SQL does that lost the server. Resolves when it did.
   */
  failAt(pattern: RegExp, number: number): Promise<void>
  /**
   * Swallows from now on what comes over the connections that are open, in both directions, their end
   * too, as a router does that has dropped them from its table; new connections go through.
   */
  forget(): void
  /** How many connections clients hold open. */
  readonly clients: number
}

interface Fault {
  pattern: RegExp
  when: 'before' | 'after' | 'never' | { error: number }
  done: () => void
}

/** A client's connection, and the one to the server that belongs to it. */
interface Link {
  isForgotten: boolean
}

export async function startProxy(host: string, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const statements: string[] = []
  const faults = new Set<Fault>()
  const links = new Set<Link>()
  let isStalled = false
  let change = (statement: string) => statement

  // With half-open connections one that is forgotten does not even answer the end of the other side.
  const server = createServer({ allowHalfOpen: true }, (client) => {
    const upstream = connect(port, host)
    const link = { isForgotten: false }
    links.add(link)
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
    const end = ({ done }: Fault) => {
      client.destroy()
      upstream.destroy()
      done()
    }
    const statementsOf = statementReader()
    client.on('data', (chunk: Buffer) => {
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
          return fault.done()
        }
        breaking = fault
      }
      upstream.write(passed)
    })
    upstream.on('data', (chunk: Buffer) => {
      if (link.isForgotten) return
      if (!breaking) client.write(chunk)
      else if (typeof breaking.when === 'object') {
        client.write(errorPacket(breaking.when.error, chunk[HEADER - 1] ?? 1))
        breaking.done()
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
  return {
    port: own,
    statements,
    async cut() {
      server.close()
      for (const socket of sockets) socket.destroy()
      if (server.listening) await once(server, 'close')
    },
    mend: listen,
    stall() {
      isStalled = true
      for (const socket of sockets) socket.pause()
    },
    flow() {
      isStalled = false
      for (const socket of sockets) socket.resume()
    },
    breakAt(pattern, when) {
      return new Promise((done) => void faults.add({ pattern, when, done }))
    },
    hangAt(pattern) {
      return new Promise((done) => void faults.add({ pattern, when: 'never', done }))
    },
    rewrite(by) {
      change = by
    },
    failAt(pattern, error) {
      return new Promise((done) => void faults.add({ pattern, when: { error }, done }))
    },
    forget() {
      for (const link of links) link.isForgotten = true
    },
    get clients() {
      return links.size
    },
  }
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
 * A function that takes what a client sends, chunk by chunk, and gives the statements that are
 * complete with it: https://mariadb.com/docs/server/reference/clientserver-protocol
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
        // MySQL, not MariaDB, is told first that there are no attributes: of them 0, in 1 set.
        const hasCounts = rest[HEADER + 1] === 0 && rest[HEADER + 2] === 1
        found.push(rest.toString('utf8', HEADER + (hasCounts ? 3 : 1), end))
      }
      rest = rest.subarray(end)
    }
    return found
  }
}

/** The packet with another statement. A client waits for each answer, so it is alone in its chunk. */
function replaceStatement(packet: Buffer, statement: string, other: string): Buffer {
  if (other === statement) return packet
  const start = packet.indexOf(statement)
  const replaced = Buffer.concat([packet.subarray(0, start), Buffer.from(other)])
  replaced.writeUIntLE(replaced.length - HEADER, 0, 3)
  return replaced
}
