/** Kysely's dialect for MySQL and MariaDB, on a pool of mysql2. */
import {
  type Dialect,
  type Driver,
  type Kysely,
  MysqlIntrospector,
  MysqlQueryCompiler,
  type TransactionSettings,
} from 'kysely'
import { refuseInTransaction } from '../transaction-scope.ts'
import { MysqlConnection, type MysqlServer } from './mysql-connection.ts'
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
export function mysqlDialect(url: string, settings: PoolSettings): Dialect {
  return {
    createDriver: () => new MysqlDriver(url, settings),
    createAdapter: () => new MysqlEngine(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}

class MysqlDriver implements Driver {
  readonly #server: MysqlServer

  constructor(url: string, { timeout, usage = { used: 0, waiting: 0 } }: PoolSettings) {
    const options = {
      uri: url,
      charset: COLLATION,
      connectTimeout: timeout ?? CONNECT_TIMEOUT,
      supportBigNumbers: true,
    }
    const { hostname, port, pathname } = new URL(url)
    this.#server = {
      pool: new MysqlPool(options, usage),
      options,
      timeout: timeout ?? Number.POSITIVE_INFINITY,
      // https://opentelemetry.io/docs/specs/semconv/db/mysql/
      attributes: {
        'db.system.name': 'mysql',
        'db.namespace': decodeURIComponent(pathname.slice(1)),
        'server.address': hostname,
        'server.port': Number(port || 3306),
      },
    }
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<MysqlConnection> {
    refuseInTransaction()
    return new MysqlConnection(this.#server)
  }

  async releaseConnection(connection: MysqlConnection): Promise<void> {
    connection.release()
  }

  async beginTransaction(connection: MysqlConnection, settings: TransactionSettings) {
    if (settings.isolationLevel || settings.accessMode) throw new Error('Not supported')
    connection.begin()
  }

  async commitTransaction(connection: MysqlConnection): Promise<void> {
    await connection.commit()
  }

  async rollbackTransaction(connection: MysqlConnection): Promise<void> {
    await connection.rollback()
  }

  async destroy(): Promise<void> {
    await this.#server.pool.end()
  }
}
