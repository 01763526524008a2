/** The server side of a connection, from the diagnostics channel of Node. */
import { subscribe, unsubscribe } from 'node:diagnostics_channel'
import type { Socket } from 'node:net'

/** The next connection that this process accepts. */
export function accepted(): Promise<Socket> {
  return new Promise((resolve) => {
    const hear = (message: unknown) => {
      unsubscribe('net.server.socket', hear)
      resolve((message as { socket: Socket }).socket) // the documented message of this channel
    }
    subscribe('net.server.socket', hear)
  })
}
