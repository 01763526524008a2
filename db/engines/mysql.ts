/** Kysely's dialect for MySQL and MariaDB, on a pool of mysql2. */
import { type Dialect, type Kysely, MysqlIntrospector, MysqlQueryCompiler } from 'kysely'
import { createDriver } from './driver.ts'
import { MysqlConnection } from './mysql-connection.ts'
import { MysqlEngine } from './mysql-engine.ts'
import { MysqlPool, type PoolUsage } from './mysql-pool.ts'
import { COLLATION } from './mysql-variables.ts'

/** Milliseconds after which a server that does not answer counts as unreachable, by default. */
const CONNECT_TIMEOUT = 5_000

export interface PoolSettings {
  /** Milliseconds for connecting, and for a statement without a deadline; unlimited by default. */
  timeout?: number | undefined
  /** The pool keeps these numbers current. */
  usage?: PoolUsage
}

/** Returns a dialect for the server of `url` (mysql://user:password@host:port/database). */
export function mysqlDialect(url: string, { timeout, usage }: PoolSettings): Dialect {
  const options = {
    uri: url,
    charset: COLLATION,
    connectTimeout: timeout ?? CONNECT_TIMEOUT,
    supportBigNumbers: true,
  }
  const { hostname, port, pathname } = new URL(url)
  // https://opentelemetry.io/docs/specs/semconv/db/mysql/
  const attributes = {
    'db.system.name': 'mysql',
    'db.namespace': decodeURIComponent(pathname.slice(1)),
    'server.address': hostname,
    'server.port': Number(port || 3306),
  }
  const pool = new MysqlPool(options, usage)
  const server = { pool, options, timeout: timeout ?? Number.POSITIVE_INFINITY, attributes }
  return {
    createDriver: () =>
      createDriver(() => new MysqlConnection(server), { close: () => pool.end() }),
    createAdapter: () => new MysqlEngine(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}
