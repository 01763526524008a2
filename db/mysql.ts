/** MySQL, and what speaks its protocol, through mysql2 behind Kysely's MysqlDialect. */
import {
  type AbortableOperationOptions,
  type CompiledQuery,
  type DatabaseConnection,
  type Driver,
  MysqlDialect,
  type QueryResult,
} from 'kysely'
import {
  type Connection,
  type ConnectionOptions,
  createConnection,
  createPool,
  type PoolOptions,
  type RowDataPacket,
  type TypeCast,
} from 'mysql2'
import { DatabaseTimeoutError, DatabaseUnavailableError, databaseError } from './errors.ts'
import { within } from './within.ts'

/** How many connections a pool has at most. */
export const MAX_CONNECTIONS = 10

/** How many may wait for one of them. */
const MAX_WAITING = 1_000

/** Milliseconds until a server that does not answer counts as unreachable, if nothing else is said. */
const CONNECT_TIMEOUT = 5_000

// mysql2 escapes values into the text of a statement with backslashes, which the mode
// NO_BACKSLASH_ESCAPES would make unsafe; without a strict mode MySQL truncates in silence.
// Nobody shall wait long for another's lock: https://dev.mysql.com/doc/refman/9.4/en/innodb-parameters.html
const SESSION = `set session sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION', innodb_lock_wait_timeout = 1`

// Behind a load balancer two connections may lead to two servers, which number sessions alike.
const SERVER = "select concat(@@hostname, ':', @@port) as server"

/** How a pool is used at this moment. */
export interface PoolUsage {
  used: number
  waiting: number
}

export interface PoolSettings {
  /** Milliseconds that a statement, or the wait for a connection, may take. */
  timeout?: number | undefined
  /** Kept up to date with what the pool does. */
  usage?: PoolUsage
}

/** A dialect on a pool of connections to the server of `url` (mysql://user:password@host:port/database). */
export function mysqlDialect(url: string, settings: PoolSettings): MysqlDialect {
  const { timeout: connectTimeout = CONNECT_TIMEOUT } = settings
  const options: PoolOptions = {
    uri: url,
    connectionLimit: MAX_CONNECTIONS,
    queueLimit: MAX_WAITING,
    charset: 'utf8mb4_bin',
    connectTimeout,
    supportBigNumbers: true,
    bigNumberStrings: true,
    typeCast: bigintCast,
  }
  return new GuardedDialect(options, settings)
}

const bigintCast: TypeCast = (field, next) => {
  if (field.type !== 'LONGLONG') return next()
  const text = field.string()
  return text === null ? null : BigInt(text)
}

/**
 * Kysely's dialect, with bounds on all waiting. What only means "not now" is thrown as
 * DatabaseUnavailableError, a broken unique index as DuplicateError.
 */
class GuardedDialect extends MysqlDialect {
  readonly #timeout: number | undefined
  readonly #usage: PoolUsage

  constructor(options: PoolOptions, { timeout, usage = { used: 0, waiting: 0 } }: PoolSettings) {
    super({
      async pool() {
        const pool = createPool(options)
        // The first statements of each connection: what follows waits its turn behind them.
        pool.on('connection', (connection) => {
          connection.query(SESSION, (error) => error && connection.destroy())
          connection.query<RowDataPacket[]>(SERVER, (_error, rows) => {
            connection.config = Object.assign({}, connection.config, { server: rows?.[0]?.server })
          })
        })
        return pool
      },
      controlConnection,
    })
    this.#timeout = timeout
    this.#usage = usage
  }

  override createDriver(): Driver {
    const driver = super.createDriver()
    const acquire = driver.acquireConnection.bind(driver)
    const release = driver.releaseConnection.bind(driver)
    const timeout = this.#timeout
    const usage = this.#usage
    const guarded = new WeakSet<DatabaseConnection>()

    driver.acquireConnection = async (options) => {
      const signal = options?.signal
      usage.waiting++
      const acquired = acquire(options)
      const connection = await within(acquired, timeout, signal, () => {
        acquired.then(release, () => {})
        return new DatabaseTimeoutError(timeout ?? 0)
      })
        .catch((error) => {
          if (signal?.aborted) return nobodyWaits
          throw error instanceof DatabaseUnavailableError
            ? error
            : new DatabaseUnavailableError(error, true)
        })
        .finally(() => usage.waiting--)
      usage.used++
      if (!guarded.has(connection)) {
        guarded.add(connection)
        await connection.collectSessionInfo?.() // local: mysql2 knows the connection's id
        guard(connection, timeout)
      }
      return connection
    }
    driver.releaseConnection = async (connection) => {
      usage.used--
      await release(connection)
    }
    return driver
  }
}

const otherServer = Object.assign(new Error('The connection leads to another server'), {
  code: 'OTHER_SERVER',
  fatal: false,
})

/** A connection like another one, to end what that is doing. Fails if it leads to another server. */
function controlConnection(config: object | string): Connection {
  const { server, ...options } = config as ConnectionOptions & { server?: string }
  const connection = createConnection(options)
  const connect = connection.connect.bind(connection)
  connection.connect = (callback) =>
    connect((failure) => {
      if (failure) return callback?.(failure)
      connection.query<RowDataPacket[]>(SERVER, (error, rows) => {
        callback?.(error ?? (rows[0]?.server === server ? null : otherServer))
      })
    })
  return connection
}

/** Ends statements that take too long, or are not wanted any more, on the server too. */
function guard(connection: DatabaseConnection, timeout: number | undefined): void {
  const execute = connection.executeQuery
  // Once the effect of one statement is unknown, no later one proves that there was none.
  let isCertain = true

  connection.executeQuery = async <Row>(
    query: CompiledQuery,
    options?: AbortableOperationOptions,
  ): Promise<QueryResult<Row>> => {
    const signal = options?.signal
    const execution = execute.call<typeof connection, [CompiledQuery], Promise<QueryResult<Row>>>(
      connection,
      query,
    )
    try {
      return await within(execution, timeout, signal, () => {
        execution.catch(() => {})
        connection.killSession?.(noControlConnection).catch(() => {}) // the server is beyond reach
        return new DatabaseTimeoutError(timeout ?? 0)
      })
    } catch (thrown) {
      if (signal?.aborted) return { rows: [] } // likewise: nobody looks at them
      const error = databaseError(thrown)
      if (!(error instanceof DatabaseUnavailableError)) throw error
      isCertain &&= error.hadNoEffect
      throw isCertain ? error : new DatabaseUnavailableError(error.cause, false)
    }
  }
}

// Kysely has turned away from what was aborted, and would print on the console how it failed.
const nobodyWaits = new Promise<never>(() => {})

// The dialect makes control connections of its own, beside the pool.
const noControlConnection = async () => {}
