/** Opens a connection to a MySQL server: the socket, the log-in, the session. */
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { promisify } from 'node:util'
import { type Connection, type ConnectionOptions, createConnection } from 'mysql2'
import { openError } from './errors.ts'
import { type Server, setUp } from './session.ts'

/**
 * Milliseconds that the log-in may take after TCP has accepted the connection: longer than a call waits,
 * because a server that hangs counts each connection that a client closes before, and after a hundred of
 * them blocks the client's address for good (error 1129):
 * https://dev.mysql.com/doc/refman/9.4/en/server-system-variables.html#sysvar_max_connect_errors
 */
const LOG_IN_TIMEOUT = 60_000

/**
 * Milliseconds of silence after which TCP probes the server; after ten seconds more without a reply the
 * connection is lost: https://nodejs.org/api/net.html#socketsetkeepaliveenable-initialdelay
 */
const KEEP_ALIVE_DELAY = 10_000

/** A server, and how a connection to it is opened. */
export interface Address {
  /** Where it listens: a host and a port, or a socket of this machine. */
  at: { host: string; port: number } | { path: string }
  options: ConnectionOptions
  /** Milliseconds for TCP, and for the session. */
  timeout: number
  /** Is called with what an operator should know. */
  warn(message: string): void
}

/** A connection to a server. All times are those of performance.now(). */
export interface Opened {
  readonly connection: Connection
  /** Ends the connection at once, without a message to the server, which may be unreachable. */
  readonly socket: Socket
  readonly server: Server
  readonly openedAt: number
}

/** Opens a connection, and sets up its session. Throws the reason, for the operator. */
export async function open(
  { at, options, timeout, warn }: Address,
  signal: AbortSignal,
): Promise<Opened> {
  const openedAt = performance.now()
  const keepAlive = { keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_DELAY, noDelay: true }
  const socket = connect({ ...at, ...keepAlive }).on('error', () => {}) // each step throws it
  const close = () => socket.destroy(new Error('The server does not answer'))
  signal.addEventListener('abort', close)
  const within = async <Result>(milliseconds: number, step: Promise<Result>): Promise<Result> => {
    const timer = setTimeout(close, milliseconds)
    return await step.finally(() => clearTimeout(timer))
  }
  try {
    await within(timeout, once(socket, 'connect'))
    const connection = createConnection({ ...options, stream: socket, connectTimeout: 0 })
    connection.on('error', () => {}) // as above
    await within(LOG_IN_TIMEOUT, promisify(connection.connect).call(connection))
    const server = await within(timeout, setUp(connection, warn))
    return { connection, socket, server, openedAt }
  } catch (error) {
    socket.destroy()
    throw openError(error as Error, options.ssl !== undefined) // Node and mysql2 throw nothing else
  } finally {
    signal.removeEventListener('abort', close)
  }
}
