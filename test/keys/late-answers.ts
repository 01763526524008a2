/** A proxy to a server that can hold back its answers, as a network that is slow one way. */
import { once } from 'node:events'
import { connect, createServer, type Socket } from 'node:net'
import { freePort } from '../support/mysql.ts'

export interface LateAnswers {
  port: number
  /** Holds back what the server sends from now on, until `release` is called. */
  hold(): Held
  close(): void
}

export interface Held {
  /** Resolves when the server has sent something that is held back. */
  answered: Promise<void>
  release(): void
}

export async function startLateAnswers(host: string, port: number): Promise<LateAnswers> {
  const sockets = new Set<Socket>()
  let keepBack: ((send: () => void) => void) | undefined
  const server = createServer((client) => {
    const upstream = connect(port, host)
    client.pipe(upstream)
    upstream.on('data', (chunk: Buffer) => {
      if (keepBack) keepBack(() => client.write(chunk))
      else client.write(chunk)
    })
    for (const socket of [client, upstream]) {
      sockets.add(socket)
      socket.on('error', () => {})
      socket.on('close', () => {
        client.destroy()
        upstream.destroy()
      })
    }
  })
  const own = await freePort()
  server.listen(own, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: own,
    hold() {
      const { promise: answered, resolve } = Promise.withResolvers<void>()
      const kept: (() => void)[] = []
      keepBack = (send) => {
        kept.push(send)
        resolve()
      }
      return {
        answered,
        release() {
          keepBack = undefined
          for (const send of kept) send()
        },
      }
    },
    close() {
      server.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
