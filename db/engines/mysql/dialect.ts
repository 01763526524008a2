/** Kysely's dialect for MySQL and MariaDB, on a pool of connections of mysql2. */
import { type Dialect, type Kysely, MysqlIntrospector, MysqlQueryCompiler } from 'kysely'
import type { SslOptions } from 'mysql2'
import type { PoolUsage } from '../../engine.ts'
import { mysqlQueryOf, type SslMode } from '../../url.ts'
import { createDriver } from '../driver.ts'
import { MysqlConnection } from './connection.ts'
import { MysqlEngine } from './engine.ts'
import { MysqlPool } from './pool.ts'
import { COLLATION } from './session.ts'

/** Milliseconds after which a server that does not answer counts as unreachable, by default. */
const CONNECT_TIMEOUT = 5_000

/** Maximum number of connections, by default. */
const SIZE = 10

/**
 * mysql2's options. By default it checks the certificate against Node's authorities, to which
 * NODE_EXTRA_CA_CERTS adds others, and not the host name.
 */
const TLS: Record<SslMode, SslOptions> = {
  REQUIRED: { rejectUnauthorized: false },
  VERIFY_CA: {},
  VERIFY_IDENTITY: { verifyIdentity: true },
}

export interface PoolSettings {
  /** Milliseconds for connecting, and for a statement without a deadline; unlimited by default. */
  timeout?: number | undefined
  /** Maximum number of connections. */
  size?: number
  /** The pool keeps these numbers current. */
  usage?: PoolUsage
  /** Is called once with each thing that an operator should know about the server. */
  warn?(message: string): void
}

/**
 * Returns a dialect for the server of `url` (mysql://user:password@host:port/database), which may end in
 * an `ssl-mode` or a `socketPath`. Throws for any other query.
 */
export function mysqlDialect(
  url: string,
  { timeout, size = SIZE, usage = { used: 0, waiting: 0 }, warn = () => {} }: PoolSettings,
): Dialect {
  const server = new URL(url)
  const { sslMode, socketPath } = mysqlQueryOf(server)
  server.search = '' // mysql2 would take it for its own options
  const host = decodeURIComponent(server.hostname).replace(/^\[(.*)\]$/, '$1')
  const warned = new Set<string>()
  const address = {
    at: socketPath ? { path: socketPath } : { host, port: Number(server.port || 3306) },
    options: {
      uri: server.href,
      ...(sslMode && { ssl: TLS[sslMode] }),
      ...(socketPath && { socketPath }),
      charset: COLLATION,
      supportBigNumbers: true,
    },
    timeout: timeout ?? CONNECT_TIMEOUT,
    warn(message: string) {
      if (!warned.has(message)) warn(message)
      warned.add(message)
    },
  }
  const pool = new MysqlPool(address, { size, usage })
  const connect = () => new MysqlConnection(pool, timeout ?? Number.POSITIVE_INFINITY)
  return {
    createDriver: () => createDriver(connect, { close: () => pool.end() }),
    createAdapter: () => new MysqlEngine(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}
