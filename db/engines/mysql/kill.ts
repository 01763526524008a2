/** The end of a statement on a MySQL server, whose client no longer waits for it. */
import { type ConnectionOptions, createConnection, type RowDataPacket } from 'mysql2'
import { type Pooled, socketOf } from './pool.ts'
import { SET_UP, toServer, VARIABLES } from './variables.ts'

/** The query for the seconds since the start of the server. */
const UPTIME = `show global status like 'Uptime'`

/**
 * Kills the session of a connection over another connection to the same server. Gives up after the
 * timeout of connecting. Never throws.
 */
export async function kill(
  { connection: { threadId }, server, openedAt }: Pooled,
  options: ConnectionOptions,
): Promise<void> {
  if (!server) return // the session was never set up, so it runs no statement of a call
  const age = performance.now() - openedAt
  const control = createConnection(options).on('error', () => {}) // each query throws the error
  const query = async (sql: string) => (await control.promise().query<RowDataPacket[]>(sql))[0]
  const giveUp = () => socketOf(control).destroy(new Error('The server does not answer'))
  const timer = setTimeout(giveUp, options.connectTimeout)
  try {
    for (const sql of SET_UP) await query(sql)
    // A load balancer may have chosen another server.
    if (toServer(await query(VARIABLES)).name !== server.name) return
    const [uptime] = await query(UPTIME)
    // A server that was restarted may have given the number to another client.
    if (Number(uptime?.Value) * 1_000 > age) await query(`kill ${threadId}`)
  } catch {
    // An unreachable server ends the session by itself.
  } finally {
    clearTimeout(timer)
    socketOf(control).destroy()
  }
}
