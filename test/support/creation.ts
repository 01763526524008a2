/** A creation whose body the server has not yet received completely. */
import { once } from 'node:events'
import { connect } from 'node:net'
import { requestText } from './raw.ts'

/**
 * Sends `POST /v1/pets` without the last byte of its body. When it resolves, the server
 * has accepted the request: it has sent 100 Continue (RFC 9110, section 10.1.1).
 */
export async function beginCreation(
  port: number,
  key: string,
  headers: Record<string, string> = {},
) {
  const body = JSON.stringify({ name: 'Rex', categoryId: 3 })
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const text = requestText('POST /v1/pets', {
    key,
    headers: ['Expect: 100-continue', ...lines],
    body,
  })
  const socket = connect(port, '127.0.0.1')
  let received = ''
  socket.on('data', (chunk) => (received += chunk)).on('error', () => {})
  const closed = new Promise((resolve) => socket.once('close', resolve))
  socket.write(text.slice(0, -body.length))
  const invited = 'HTTP/1.1 100 Continue\r\n\r\n'
  while (!received.includes(invited)) {
    if (socket.closed) throw new Error(`The server did not ask for the body: ${received}`)
    await Promise.race([once(socket, 'data'), closed])
  }
  socket.write(body.slice(0, -1))
  return {
    /** Sends the last byte, and returns the response after the server has closed the connection. */
    async finish() {
      socket.write(body.slice(-1))
      await closed
      return received.replace(invited, '')
    },
    /** Resets the connection without sending the last byte. */
    leave: () => socket.resetAndDestroy(),
    /** The server has closed the connection. */
    closed,
  }
}
