/** The parts of a DATABASE_URL, without a driver. */
import { isIP } from 'node:net'

/** The end of an SQLite URL with which the service creates a missing file and its folder. */
export const CREATE = '?create'

/** Returns the engine of a DATABASE_URL, and the host and name, or the file. No password. */
export function describeUrl(databaseUrl: string): { engine: 'mysql' | 'sqlite'; location: string } {
  if (databaseUrl.startsWith('sqlite:')) {
    const end = databaseUrl.endsWith(CREATE) ? -CREATE.length : undefined
    return { engine: 'sqlite', location: databaseUrl.slice('sqlite:'.length, end) }
  }
  const { host, pathname } = new URL(databaseUrl)
  return { engine: 'mysql', location: host + pathname }
}

/**
 * How a connection to MySQL is encrypted, by the names of MySQL's own clients:
 * https://dev.mysql.com/doc/refman/9.4/en/connection-options.html#option_general_ssl-mode
 */
const SSL_MODES = ['REQUIRED', 'VERIFY_CA', 'VERIFY_IDENTITY'] as const

export type SslMode = (typeof SSL_MODES)[number]

/**
 * Returns what the query of a MySQL URL says: the `ssl-mode`, or the `socketPath` of a server on this
 * machine, or nothing for clear text over TCP. Throws for any other query.
 */
export function mysqlQueryOf({ search, searchParams, hostname }: URL): {
  sslMode?: SslMode
  socketPath?: string
} {
  if (search === '') return {}
  const socketPath = searchParams.get('socketPath')
  if (searchParams.size === 1 && socketPath?.startsWith('/')) return { socketPath }
  const sslMode = SSL_MODES.find((name) => search === `?ssl-mode=${name}`)
  if (!sslMode) throw new TypeError('The query is neither ssl-mode nor socketPath')
  // mysql2 would compare the certificate of an IP address with the name `localhost`.
  const isAddress = isIP(decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1')) > 0
  if (sslMode === 'VERIFY_IDENTITY' && isAddress) throw new TypeError('An IP address has no name')
  return { sslMode }
}
