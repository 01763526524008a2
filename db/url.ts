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

/** What a connection with TLS checks, and the files of its certificates, by the names of Node's options. */
export interface Tls {
  mode: SslMode
  files: Partial<Record<'ca' | 'cert' | 'key', string>>
}

/**
 * Returns what the query of a MySQL URL says: TLS, or the `socketPath` of a server on this machine, or nothing for
 * clear text over TCP. Throws for any other query.
 */
export function mysqlQueryOf({ searchParams, hostname }: URL): { tls?: Tls; socketPath?: string } {
  if (searchParams.size === 0) return {}
  const { socketPath, 'ssl-mode': name, ...named } = Object.fromEntries(searchParams)
  if (searchParams.size === 1 && socketPath?.startsWith('/')) return { socketPath }
  const mode = SSL_MODES.find((mode) => mode === name)
  const { 'ssl-ca': ca, 'ssl-cert': cert, 'ssl-key': key } = named
  const files = { ...(ca && { ca }), ...(cert && { cert }), ...(key && { key }) }
  // Not so with another option, one without a value, or one that is there twice.
  const isKnown = searchParams.size === Object.keys(files).length + 1
  const isPair = (cert === undefined) === (key === undefined)
  if (!mode || !isKnown || !isPair) {
    throw new TypeError('The query is neither ssl-mode, with its certificates, nor socketPath')
  }
  // mysql2 would compare the certificate of an IP address with the name `localhost`.
  const isAddress = isIP(decodeURIComponent(hostname).replace(/^\[(.*)\]$/, '$1')) > 0
  if (mode === 'VERIFY_IDENTITY' && isAddress) throw new TypeError('An IP address has no name')
  return { tls: { mode, files } }
}
