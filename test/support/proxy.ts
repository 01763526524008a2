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
}

interface Fault {
  pattern: RegExp
  when: 'before' | 'after' | 'never'
  done: () => void
}

export async function startProxy(host: string, port: number): Promise<Proxy> {
  const sockets = new Set<Socket>()
  const statements: string[] = []
  const faults = new Set<Fault>()
  let isStalled = false
  let change = (statement: string) => statement

  const server = createServer((client) => {
    const upstream = connect(port, host)
    for (const [socket, peer] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(socket)
      socket.on('error', () => peer.destroy())
      socket.on('end', () => peer.end())
      socket.on('close', () => {
        sockets.delete(socket)
        peer.destroy()
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
      if (hangs) return
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
      if (breaking) end(breaking)
      else client.write(chunk)
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
  }
}

const HEADER = 4
const COM_QUERY = 3

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
