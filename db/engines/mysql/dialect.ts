/** Kysely's dialect for MySQL and MariaDB, on a pool of mysql2. */
import { type Dialect, type Kysely, MysqlIntrospector, MysqlQueryCompiler } from 'kysely'
import type { SslOptions } from 'mysql2'
import type { PoolUsage } from '../../engine.ts'
import { type SslMode, sslModeOf } from '../../url.ts'
import { createDriver } from '../driver.ts'
import { MysqlConnection } from './connection.ts'
import { MysqlEngine } from './engine.ts'
import { MysqlPool } from './pool.ts'
import { COLLATION } from './variables.ts'

/** Milliseconds after which a server that does not answer counts as unreachable, by default. */
const CONNECT_TIMEOUT = 5_000

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
  /** The pool keeps these numbers current. */
  usage?: PoolUsage
}

/**
 * Returns a dialect for the server of `url` (mysql://user:password@host:port/database), which may end in
 * an `ssl-mode`. Throws for any other query.
 */
export function mysqlDialect(url: string, { timeout, usage }: PoolSettings): Dialect {
  const server = new URL(url)
  const sslMode = sslModeOf(server)
  server.search = '' // mysql2 would take it for its own options
  const options = {
    uri: server.href,
    ...(sslMode && { ssl: TLS[sslMode] }),
    charset: COLLATION,
    connectTimeout: timeout ?? CONNECT_TIMEOUT,
    supportBigNumbers: true,
  }
  const pool = new MysqlPool(options, usage)
  const shared = { pool, options, timeout: timeout ?? Number.POSITIVE_INFINITY }
  return {
    createDriver: () =>
      createDriver(() => new MysqlConnection(shared), { close: () => pool.end() }),
    createAdapter: () => new MysqlEngine(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}
