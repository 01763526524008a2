/** MySQL, and what speaks its protocol: Kysely's dialect on a pool of mysql2. */
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type Kysely,
  MysqlIntrospector,
  MysqlQueryCompiler,
  type QueryResult,
  type TransactionSettings,
} from 'kysely'
import {
  createConnection,
  createPool,
  type FieldPacket,
  type Pool,
  type PoolConnection,
  type PoolOptions,
  type ResultSetHeader,
  type RowDataPacket,
} from 'mysql2'
import { Deadline } from './deadline.ts'
import {
  DatabaseUnavailableError,
  databaseError,
  NoConsecutiveIdsError,
  OverloadedError,
  UnfitServerError,
} from './errors.ts'
import { LockingAdapter } from './mysql-lock.ts'
import type { Statement } from './statement.ts'
import type { Target } from './trace.ts'

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

// Some of them exist on some engines only, which `select @@name` would refuse.
const VARIABLES = `show variables where variable_name in
  ('hostname', 'port', 'version', 'auto_increment_increment', 'innodb_autoinc_lock_mode', 'wsrep_on')`

/** MYSQL_TYPE_LONGLONG of the protocol: `bigint`, and what `count` gives. */
const LONGLONG = 8

export interface PoolUsage {
  used: number
  waiting: number
}

export interface PoolSettings {
  /** Milliseconds that connecting, or a statement without a deadline of its own, may take. */
  timeout?: number | undefined
  /** Kept up to date with what the pool does. */
  usage?: PoolUsage
}

/** A dialect on a pool of connections to the server of `url` (mysql://user:password@host:port/database). */
export function mysqlDialect(url: string, settings: PoolSettings): Dialect {
  return {
    createDriver: () => new MysqlDriver(url, settings),
    createAdapter: () => new LockingAdapter(url),
    createQueryCompiler: () => new MysqlQueryCompiler(),
    createIntrospector: (db: Kysely<unknown>) => new MysqlIntrospector(db),
  }
}

type Server = ReturnType<typeof toServer>

/** What is known of the server at the other end of a connection. */
function toServer(rows: unknown[]) {
  const given = new Map(
    // The columns that `show variables` has.
    (rows as RowDataPacket[]).map((row) => [row.Variable_name, String(row.Value)]),
  )
  return {
    /** Tells servers apart: behind a load balancer two of them number their sessions alike. */
    name: `${given.get('hostname')}:${given.get('port')}`,
    /**
     * Whether the ids of one insert follow one another: https://dev.mysql.com/doc/refman/9.4/en/innodb-auto-increment-handling.html
     * promises it for all modes, Galera and group replication count by more than one, TiDB and
     * Vitess hand out ranges.
     */
    hasConsecutiveIds:
      ['0', '1', '2'].includes(given.get('innodb_autoinc_lock_mode') ?? '') &&
      given.get('auto_increment_increment') === '1' &&
      (given.get('wsrep_on') ?? 'OFF') === 'OFF' &&
      !/tidb|vitess/i.test(given.get('version') ?? 'vitess'),
  }
}

class MysqlDriver implements Driver {
  readonly #options: PoolOptions
  readonly #usage: PoolUsage
  /** It connects when it is asked for a connection. */
  readonly #pool: Pool
  readonly #idle: MysqlSession[] = []
  /** Milliseconds that a statement without a deadline of its own may take. */
  readonly timeout: number | undefined
  /** The servers of those connections that were set up. */
  readonly servers = new WeakMap<PoolConnection, Server>()
  /** What traces say of the server: https://opentelemetry.io/docs/specs/semconv/db/mysql/ */
  readonly target: Target

  constructor(url: string, { timeout, usage = { used: 0, waiting: 0 } }: PoolSettings) {
    this.timeout = timeout
    this.#usage = usage
    this.#options = {
      uri: url,
      charset: 'utf8mb4_bin',
      connectTimeout: timeout ?? CONNECT_TIMEOUT,
      supportBigNumbers: true,
      bigNumberStrings: true,
    }
    const limits = { connectionLimit: MAX_CONNECTIONS, queueLimit: MAX_WAITING }
    this.#pool = createPool({ ...this.#options, ...limits })
    const { hostname, port, pathname } = new URL(url)
    this.target = {
      'db.system.name': 'mysql',
      'db.namespace': decodeURIComponent(pathname.slice(1)),
      'server.address': hostname,
      'server.port': Number(port || 3306),
    }
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<MysqlSession> {
    return this.#idle.pop() ?? new MysqlSession(this)
  }

  async releaseConnection(session: MysqlSession): Promise<void> {
    session.release()
    this.#idle.push(session)
  }

  async beginTransaction(session: MysqlSession, settings: TransactionSettings): Promise<void> {
    if (settings.isolationLevel || settings.accessMode) throw new Error('Not supported')
    session.isToBegin = true
  }

  async commitTransaction(session: MysqlSession): Promise<void> {
    await session.commit()
  }

  async rollbackTransaction(session: MysqlSession): Promise<void> {
    await session.rollback()
  }

  async destroy(): Promise<void> {
    await this.#pool.promise().end()
  }

  /** A connection of the pool. Throws DatabaseUnavailableError, or the reason of the deadline. */
  take(deadline: Deadline | undefined): Promise<PoolConnection> {
    return new Promise((resolve, reject) => {
      let isGivenUp = false
      this.#usage.waiting++
      const forget = deadline?.onGiveUp((reason) => {
        isGivenUp = true
        this.#usage.waiting--
        reject(reason)
      })
      this.#pool.getConnection((error, connection) => {
        if (isGivenUp) return connection?.release()
        forget?.()
        this.#usage.waiting--
        if (error) return reject(connectionError(error))
        this.#usage.used++
        resolve(connection)
      })
    })
  }

  giveBack(connection: PoolConnection): void {
    this.#usage.used--
    connection.release()
  }

  /** Ends a connection and what the server does for it, over another that leads to the same server. */
  async end(connection: PoolConnection): Promise<void> {
    this.#usage.used--
    const { threadId } = connection
    const server = this.servers.get(connection)
    connection.destroy()
    if (!server) return // it was being set up, and did nothing that had to be ended
    const control = createConnection(this.#options)
    const ask = async (sql: string) => (await control.promise().query<RowDataPacket[]>(sql))[0]
    control.on('error', () => {}) // those who ask are told, too
    try {
      const isSame = toServer(await ask(VARIABLES)).name === server.name
      // A server that was started again numbers its sessions from the beginning.
      if (isSame && control.threadId > threadId) await ask(`kill ${threadId}`)
    } catch {
      // The server is beyond reach: there is nothing more to be done.
    } finally {
      control.destroy()
    }
  }
}

function connectionError(error: Error): DatabaseUnavailableError {
  return error.message === 'Queue limit reached.'
    ? new OverloadedError('Too many wait for a connection to the database')
    : new DatabaseUnavailableError(error, true)
}

/**
 * What Kysely takes for a connection. It takes one from the pool with its first statement, whose
 * deadline bounds the wait, and keeps it until it is released.
 */
class MysqlSession implements DatabaseConnection {
  readonly #driver: MysqlDriver
  #connection: PoolConnection | undefined
  /** Why there is no connection any more, though there was one. */
  #lost: Error | undefined
  /** A transaction that the server has not heard of, since it has no statement yet. */
  isToBegin = false
  /** The deadline of the latest statement, which bounds the end of the transaction too. */
  #deadline: Deadline | undefined
  /**
   * Whether the effect of every statement since the connection was taken is known. Once it is
   * not, no later failure proves that there was none.
   */
  #isCertain = true

  constructor(driver: MysqlDriver) {
    this.#driver = driver
  }

  executeQuery<Row>(query: CompiledQuery): Promise<QueryResult<Row>> {
    const { sql, parameters, deadline, needsConsecutiveIds }: Statement = query
    this.#deadline = deadline
    return this.#bounded(async (deadline) => {
      const connection = await this.#connect(deadline)
      if (needsConsecutiveIds && !this.#driver.servers.get(connection)?.hasConsecutiveIds) {
        throw new NoConsecutiveIdsError('The server does not promise consecutive ids')
      }
      if (this.isToBegin) {
        await this.#run(connection, deadline, 'begin')
        this.isToBegin = false
      }
      return await this.#run<Row>(connection, deadline, sql, parameters)
    })
  }

  /** Gives the work the deadline of the latest statement, or one of its own. */
  async #bounded<Result>(
    work: (deadline: Deadline | undefined) => Promise<Result>,
  ): Promise<Result> {
    const { timeout } = this.#driver
    if (this.#deadline || timeout === undefined) return await work(this.#deadline)
    const deadline = new Deadline(timeout)
    try {
      return await work(deadline)
    } finally {
      deadline.clear()
    }
  }

  /** The connection, taken from the pool and set up if need be. */
  async #connect(deadline: Deadline | undefined): Promise<PoolConnection> {
    if (deadline?.reason) throw deadline.reason
    if (this.#lost) throw this.#lost
    if (this.#connection) return this.#connection
    const connection = await this.#driver.take(deadline)
    this.#connection = connection
    if (this.#driver.servers.has(connection)) return connection
    try {
      await this.#run(connection, deadline, SESSION)
      const { rows } = await this.#run(connection, deadline, VARIABLES)
      this.#driver.servers.set(connection, toServer(rows))
      return connection
    } catch (error) {
      this.#lose(error as Error) // all that #run throws
      if (error === deadline?.reason) throw error
      const cause = error instanceof DatabaseUnavailableError ? error.cause : error
      throw new DatabaseUnavailableError(cause, true) // the statement itself was not sent
    }
  }

  /**
   * Runs a statement to its end, or ends it with its connection when it is given up: the one place
   * where time and failure are handled.
   */
  async #run<Row>(
    connection: PoolConnection,
    deadline: Deadline | undefined,
    sql: string,
    parameters: readonly unknown[] = [],
  ): Promise<QueryResult<Row>> {
    const { promise, resolve, reject } = Promise.withResolvers<QueryResult<Row>>()
    const forget = deadline?.onGiveUp((reason) => {
      this.#lose(reason)
      reject(reason)
    })
    const values = parameters as unknown[] // mysql2 leaves them as they are
    connection.query<RowDataPacket[] | ResultSetHeader>(sql, values, (error, result, fields) => {
      forget?.()
      if (error) reject(error)
      // The columns are those that the query asks for: its type is Kysely's word.
      else resolve(toResult(result, fields) as QueryResult<Row>)
    })
    const ended = deadline?.trace?.statement(sql, this.#driver.target)
    if (ended) promise.then(() => ended(), ended)
    try {
      return await promise
    } catch (thrown) {
      if (thrown === deadline?.reason) throw thrown
      const error = databaseError(thrown)
      if (!(error instanceof DatabaseUnavailableError)) throw error
      // Its connection leaves the pool: the next one may lead to a server that is fit.
      if (error instanceof UnfitServerError) this.#lose(error)
      this.#isCertain &&= error.hadNoEffect
      throw this.#isCertain ? error : new DatabaseUnavailableError(error.cause, false)
    }
  }

  // Nobody waits until it is ended: the server may be beyond reach.
  #lose(reason: Error): void {
    const connection = this.#connection
    this.#connection = undefined
    this.#lost = reason
    if (connection) void this.#driver.end(connection)
  }

  async commit(): Promise<void> {
    if (this.#lost) throw this.#lost
    if (this.#deadline?.reason) throw this.#deadline.reason
    await this.#end('commit')
  }

  /** Never throws: a connection that cannot roll back is ended, and its transaction with it. */
  async rollback(): Promise<void> {
    try {
      await this.#end('rollback')
    } catch (error) {
      this.#lose(error as Error) // all that #run throws
    }
  }

  async #end(sql: 'commit' | 'rollback'): Promise<void> {
    const connection = this.#connection
    if (!connection || this.isToBegin) return // there was no statement
    await this.#bounded((deadline) => this.#run(connection, deadline, sql))
  }

  release(): void {
    if (this.#connection) this.#driver.giveBack(this.#connection)
    this.#connection = undefined
    this.#lost = undefined
    this.#deadline = undefined
    this.isToBegin = false
    this.#isCertain = true
  }

  // biome-ignore lint/correctness/useYield: Kysely wants the method; nothing here streams.
  async *streamQuery(): AsyncGenerator<never> {
    throw new Error('Streaming is not supported')
  }
}

function toResult(
  result: RowDataPacket[] | ResultSetHeader,
  fields: FieldPacket[],
): QueryResult<unknown> {
  if (!Array.isArray(result)) {
    const { insertId, affectedRows } = result
    return {
      rows: [],
      numAffectedRows: BigInt(affectedRows),
      ...(String(insertId) !== '0' && { insertId: BigInt(insertId) }),
    }
  }
  for (const { name, columnType } of fields) {
    if (columnType !== LONGLONG) continue
    for (const row of result) if (row[name] !== null) row[name] = BigInt(row[name])
  }
  return { rows: result }
}
