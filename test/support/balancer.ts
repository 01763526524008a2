/** A TCP load balancer: each new connection leads to the next one of its servers. Open ones are never cut. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'

/** The servers of a balancer, by the ports on which they listen. A test may change them. */
export interface Balancer {
  port: number
  ports: number[]
  /** When the latest connection was opened (performance.now()). */
  openedAt: number
}

const portOf = (server: ReturnType<typeof createServer>) => (server.address() as AddressInfo).port

export async function startBalancer(...ports: number[]): Promise<Balancer> {
  let turn = 0
  const server = createServer((client) => {
    balancer.openedAt = performance.now()
    const upstream = connect(balancer.ports[turn++ % balancer.ports.length] as number, '127.0.0.1')
    client.pipe(upstream).pipe(client)
    for (const socket of [client, upstream]) {
      socket.on('error', () => {}).on('close', () => [client, upstream].map((one) => one.destroy()))
    }
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  const balancer = { port: portOf(server), ports, openedAt: 0 }
  return balancer
}

/** A server that accepts connections and says nothing; it counts those that are open, and those that were. */
export async function startSilent() {
  const silent = { port: 0, clients: 0, closed: 0 }
  const server = createServer((socket) => {
    silent.clients++
    const onClose = () => {
      silent.clients--
      silent.closed++
    }
    socket
      .on('error', () => {})
      .on('close', onClose)
      .resume()
  })
  server.listen(0, '127.0.0.1').unref()
  await once(server, 'listening')
  silent.port = portOf(server)
  return silent
}
